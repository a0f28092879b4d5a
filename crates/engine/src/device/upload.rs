//! Uploads the lists of a batch that are not resident: each list once, however many plans read it.
//!
//! Lists go through pinned memory, a slab at a time: threads of the host fill one slab while the device copies the slab
//! before it. Copies from pageable memory take several times as long, and so does filling by one thread.

use lanner_index::format::IndexError;
use lanner_index::format::list::UNIT;
use lanner_index::open::ListSpan;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

/// The upload limit divided by this is the size of a slab: small enough that filling and copying overlap. Like the
/// other constants here, measured in decision 17.
const SLABS: usize = 8;
/// The most bytes of a strip; a thread copies whole strips.
const STRIP: usize = 256 << 10;
/// Bytes that are worth another thread, which takes some tens of microseconds to start.
const WORTH_A_THREAD: usize = 2 << 20;

/// Which lists a batch uploads, and the offset of each.
#[derive(Debug, Default)]
pub struct UploadPlan {
    lists: Vec<(usize, ListSpan)>,
    starts: HashMap<ListSpan, usize>,
    bytes: usize,
}

impl UploadPlan {
    /// Adds a list, unless it was added before, and returns its offset.
    pub fn add(&mut self, span: ListSpan) -> usize {
        *self.starts.entry(span).or_insert_with(|| {
            let start = self.bytes.next_multiple_of(UNIT);
            self.lists.push((start, span));
            self.bytes = start + span.bytes();
            start
        })
    }

    /// Bytes of all lists together, with padding between them.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The slabs in which the lists are uploaded, in order, for an upload limit in bytes.
    pub fn slabs(&self, limit: usize) -> impl Iterator<Item = Range<usize>> {
        let slab = limit.div_ceil(SLABS).max(1);
        (0..self.bytes).step_by(slab).map(move |start| start..self.bytes.min(start + slab))
    }

    /// Copies the bytes of a slab to `to`, on up to `threads` threads. Padding between lists is not written.
    pub fn pack<'a>(
        &self,
        bytes_at: impl Fn(ListSpan) -> Result<&'a [u8], IndexError>,
        slab: Range<usize>,
        to: &mut [u8],
        threads: usize,
    ) -> Result<(), IndexError> {
        let first = self.lists.partition_point(|(start, _)| *start <= slab.start).saturating_sub(1);
        let (mut strips, mut rest, mut written) = (Vec::new(), to, slab.start);
        for &(start, span) in self.lists[first..].iter().take_while(|(start, _)| *start < slab.end) {
            let within = start.max(slab.start)..slab.end.min(start + span.bytes());
            if within.is_empty() {
                continue;
            }
            let behind = std::mem::take(&mut rest).split_at_mut(within.start - written).1;
            let (target, behind) = behind.split_at_mut(within.len());
            let bytes = &bytes_at(span)?[within.start - start..within.end - start];
            strips.extend(target.chunks_mut(STRIP).zip(bytes.chunks(STRIP)));
            (rest, written) = (behind, within.end);
        }
        copy(&mut strips, threads.min(slab.len().div_ceil(WORTH_A_THREAD)));
        Ok(())
    }
}

/// How many of the first items have lists of at most `limit` bytes together. The first always counts, and so do those
/// after it whose lists are all among its own.
pub fn first_within<L: Iterator<Item = ListSpan>>(items: impl Iterator<Item = L>, limit: usize) -> usize {
    let mut plan = UploadPlan::default();
    let fits = |(position, lists): (usize, L)| {
        let before = plan.bytes;
        lists.for_each(|list| _ = plan.add(list));
        position == 0 || plan.bytes <= limit.max(before)
    };
    items.enumerate().map(fits).take_while(|&fits| fits).count()
}

/// Copies strips on up to `threads` threads, or as many as the system starts, about the same number of bytes on each.
fn copy(mut strips: &mut [(&mut [u8], &[u8])], threads: usize) {
    let bytes: usize = strips.iter().map(|(to, _)| to.len()).sum();
    let share = bytes.div_ceil(threads.max(1)).max(1);
    let mut shares = Vec::with_capacity(threads);
    while !strips.is_empty() {
        let ends = strips.iter().scan(0, |end, (to, _)| {
            *end += to.len();
            Some(*end)
        });
        let count = strips.len().min(ends.take_while(|&end| end < share).count() + 1);
        let (own, others) = std::mem::take(&mut strips).split_at_mut(count);
        shares.push(own);
        strips = others;
    }
    let (others, shares) = (shares.len().saturating_sub(1), Mutex::new(shares));
    let next = || shares.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let copy = || {
        while let Some(strips) = next() {
            strips.iter_mut().for_each(|(to, from)| to.copy_from_slice(from));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..others {
            if Builder::new().spawn_scoped(scope, copy).is_err() {
                break;
            }
        }
        // The calling thread copies too.
        copy();
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn list(start: usize, bytes: usize) -> ListSpan {
        ListSpan { is_long: true, start, end: start + bytes }
    }

    proptest! {
        #[test]
        fn every_list_lies_where_the_plan_says(
            lengths in vec(prop_oneof![Just(0), 1usize..40, Just(STRIP), STRIP - 1..3 * STRIP], 0..20),
            again in vec(0usize..12, 0..4),
            slab in prop_oneof![1usize..50, STRIP / 2..2 * STRIP, Just(3 * WORTH_A_THREAD)],
            threads in 0usize..5,
        ) {
            let section: Vec<u8> = (0..lengths.iter().sum::<usize>()).map(|i| (i % 251) as u8).collect();
            let starts = lengths.iter().scan(0, |end, length| { *end += length; Some(*end - length) });
            let lists: Vec<ListSpan> = starts.zip(&lengths).map(|(start, &length)| list(start, length)).collect();
            let mut plan = UploadPlan::default();
            let added: Vec<usize> = lists.iter().map(|&list| plan.add(list)).collect();
            let bytes = plan.bytes();
            for &number in again.iter().filter(|&&number| number < lists.len()) {
                prop_assert_eq!(plan.add(lists[number]), added[number]);
            }
            prop_assert_eq!(plan.bytes(), bytes);
            // Small slabs would be many.
            let slab = if bytes > 10_000 * slab { bytes / 100 } else { slab };
            let mut packed = vec![0xA5; bytes];
            for start in (0..bytes).step_by(slab) {
                let end = bytes.min(start + slab);
                let to = &mut packed[start..end];
                plan.pack(|span| Ok(&section[span.start..span.end]), start..end, to, threads).unwrap();
            }
            let mut end = 0;
            for (&start, list) in added.iter().zip(&lists) {
                prop_assert!(start % UNIT == 0 && packed[end..start].iter().all(|&byte| byte == 0xA5));
                prop_assert!(packed[start..start + list.bytes()] == section[list.start..list.end]);
                end = start + list.bytes();
            }
            prop_assert_eq!(end, bytes);
        }
    }

    proptest! {
        #[test]
        fn any_number_of_threads_copies_every_strip(lengths in vec(0usize..9, 0..30), threads in 0usize..9) {
            let from: Vec<u8> = (0..lengths.iter().sum::<usize>()).map(|i| i as u8 + 1).collect();
            let mut to = vec![0; from.len()];
            let (mut targets, mut bytes, mut strips) = (&mut to[..], &from[..], Vec::new());
            for &length in &lengths {
                let (target, other_targets) = std::mem::take(&mut targets).split_at_mut(length);
                let (strip, other_bytes) = bytes.split_at(length);
                strips.push((target, strip));
                (targets, bytes) = (other_targets, other_bytes);
            }
            copy(&mut strips, threads);
            prop_assert_eq!(to, from);
        }
    }

    #[test]
    fn slabs_cover_the_whole_upload() {
        let mut plan = UploadPlan::default();
        assert_eq!(plan.slabs(100).count(), 0);
        plan.add(list(0, 25));
        assert_eq!(plan.slabs(10 * SLABS).collect::<Vec<_>>(), [0..10, 10..20, 20..25]);
        assert_eq!(plan.slabs(25 * SLABS).next(), Some(0..25));
        assert_eq!(plan.slabs(0).count(), 25);
    }

    #[test]
    fn a_batch_uploads_no_more_than_the_limit_and_each_list_once() {
        let lists = |item: u8| {
            let lists: &[(usize, usize)] = match item {
                b'a' => &[(0, 160), (160, 160)],
                b'b' => &[(160, 160)],
                b'c' => &[(320, 800)],
                _ => &[],
            };
            lists.iter().map(|&(start, bytes)| list(start, bytes))
        };
        let first = |items: &[u8], limit| first_within(items.iter().map(|&item| lists(item)), limit);
        assert_eq!(first(b"", 320), 0);
        assert_eq!(first(b"abab", 320), 4);
        assert_eq!((first(b"baba", 319), first(b"aba", 319)), (1, 3));
        assert_eq!((first(b"-c-ab", 320), first(b"c-ab", 320), first(b"ab-c", 320)), (1, 2, 3));
    }
}
