//! The filters of an index in device memory: those that batches used lately, each uploaded once.
//!
//! Queries mostly share filters: a language, a site, a user's rights. A filter is known by its `Arc`, not by its
//! documents, which would take long to compare. The cache holds a `Weak`, so that no other set can get the same address
//! while the filter is kept. On the device every filter of an index has the same size, a bit for each document, whatever
//! the set holds: kernels need not test whether a document lies behind its last word, and the memory of a filter that has
//! to go is used for the one that comes.
//!
//! A batch has at most as many filters as are kept, so that the least recently used one is never its own. A batch in
//! flight keeps the memory of its filters; one that is replaced meanwhile is freed when the batch has ended. So two
//! batches in flight can take twice the limit.

use super::documents::upload;
use crate::query::document_set::DocumentSet;
use lanner_gpu::device::Address;
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::{Gpu, Memory};
use std::sync::{Arc, Weak};

/// The most filters that are kept: few enough to be searched one by one.
const MOST: u64 = 64;

/// Filters in device memory.
pub struct Filters {
    /// Words of 64 documents that cover the index.
    words: usize,
    capacity: usize,
    /// The least recently used one comes first.
    kept: Vec<Kept>,
}

struct Kept {
    set: Weak<DocumentSet>,
    memory: Arc<Memory>,
}

/// The filters of a batch, which stay in device memory until this is dropped.
#[derive(Debug, Default)]
pub struct PlacedFilters {
    /// For each plan the address of its filter, null without one; empty if no plan has one.
    addresses: Vec<Address>,
    memory: Vec<Arc<Memory>>,
    pub bytes_uploaded: usize,
}

impl PlacedFilters {
    /// The address of a plan's filter, null without one.
    pub fn address_of(&self, plan: usize) -> Address {
        self.addresses.get(plan).copied().unwrap_or(Address::NULL)
    }
}

impl Filters {
    /// For an index of this many documents: up to `limit` bytes, but always one filter.
    pub fn new(documents: u32, limit: u64) -> Filters {
        let words = (documents as usize).div_ceil(64).max(1);
        Filters { words, capacity: (limit / (8 * words as u64)).clamp(1, MOST) as usize, kept: Vec::new() }
    }

    /// The most filters that a batch may have.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Finds or uploads the filters of the plans of a batch.
    pub fn place<'a>(
        &mut self,
        gpu: &Gpu,
        filters: impl IntoIterator<Item = Option<&'a Arc<DocumentSet>>>,
    ) -> Result<PlacedFilters, GpuError> {
        let mut placed = PlacedFilters::default();
        for (plan, set) in filters.into_iter().enumerate() {
            let Some(set) = set else { continue };
            let memory = self.find_or_upload(gpu, set, &mut placed.bytes_uploaded)?;
            placed.addresses.resize(plan, Address::NULL);
            placed.addresses.push(memory.address());
            if !placed.memory.last().is_some_and(|last| Arc::ptr_eq(last, memory)) {
                placed.memory.push(Arc::clone(memory));
            }
        }
        Ok(placed)
    }

    fn find_or_upload(
        &mut self,
        gpu: &Gpu,
        set: &Arc<DocumentSet>,
        bytes_uploaded: &mut usize,
    ) -> Result<&Arc<Memory>, GpuError> {
        let is_it = |kept: &Kept| std::ptr::eq(kept.set.as_ptr(), Arc::as_ptr(set));
        let kept = match self.kept.iter().rposition(is_it) {
            Some(position) => self.kept.remove(position),
            None => {
                let memory = self.free_memory(gpu)?;
                upload(gpu, &self.bytes_of(set), memory.address(), 0)?;
                *bytes_uploaded += 8 * self.words;
                Kept { set: Arc::downgrade(set), memory: Arc::new(memory) }
            }
        };
        self.kept.push(kept);
        Ok(&self.kept.last().expect("it was pushed").memory)
    }

    /// Memory for another filter: that of one that nobody has any more or, of too many, of the least recently used one.
    /// If a batch in flight uses it, new memory.
    fn free_memory(&mut self, gpu: &Gpu) -> Result<Memory, GpuError> {
        let dropped = self.kept.iter().position(|kept| kept.set.strong_count() == 0);
        let oldest = (self.kept.len() >= self.capacity).then_some(0);
        let replaced = dropped.or(oldest).map(|position| self.kept.remove(position));
        match replaced.and_then(|kept| Arc::into_inner(kept.memory)) {
            Some(memory) => Ok(memory),
            None => gpu.allocate(8 * self.words),
        }
    }

    /// The words of a set as bytes, as many as cover the index.
    fn bytes_of(&self, set: &DocumentSet) -> Vec<u8> {
        let mut bytes = vec![0; 8 * self.words];
        let targets = bytes.as_chunks_mut().0.iter_mut();
        targets.zip(set.words()).for_each(|(target, word)| *target = word.to_le_bytes());
        bytes
    }

    /// Forgets all filters; those of batches in flight are freed when these have ended.
    pub fn clear(&mut self) {
        self.kept.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanner_gpu::device::{Command, Stream};
    use lanner_gpu::faulty::{Fault, Faulty};
    use lanner_gpu::simulator::Simulator;
    use lanner_index::DocId;

    const DOCUMENTS: u32 = 200;
    const BYTES: usize = 32;

    fn gpu() -> Gpu {
        Gpu::new(Arc::new(Simulator::new(1)), 1 << 20)
    }

    fn set(documents: &[u32]) -> Arc<DocumentSet> {
        Arc::new(documents.iter().copied().map(DocId).collect())
    }

    fn place(filters: &mut Filters, gpu: &Gpu, sets: &[Option<&Arc<DocumentSet>>]) -> PlacedFilters {
        filters.place(gpu, sets.iter().copied()).unwrap()
    }

    fn words_at(gpu: &Gpu, from: Address) -> [u64; 4] {
        let pinned = gpu.pin(BYTES).unwrap();
        gpu.submit(Stream(0), Command::Copy { from, to: pinned.address(), bytes: BYTES }).unwrap();
        gpu.wait(Stream(0)).unwrap();
        let words = pinned.as_chunks().0;
        std::array::from_fn(|word| u64::from_le_bytes(words[word]))
    }

    #[test]
    fn a_filter_covers_the_index_and_is_uploaded_once() {
        let (gpu, mut filters) = (gpu(), Filters::new(DOCUMENTS, 1000));
        let (short, long, empty) = (set(&[0, 65]), set(&[199, 5000]), set(&[]));
        let first = place(&mut filters, &gpu, &[None, Some(&short), Some(&long), None, Some(&short), Some(&empty)]);
        let words = |plan| words_at(&gpu, first.address_of(plan));
        assert_eq!([words(1), words(2), words(5)], [[1, 2, 0, 0], [0, 0, 0, 1 << 7], [0; 4]]);
        assert_eq!([0, 3, 6].map(|plan| first.address_of(plan)), [Address::NULL; 3]);
        assert_eq!((first.address_of(4), first.bytes_uploaded), (first.address_of(1), 3 * BYTES));
        let again = place(&mut filters, &gpu, &[Some(&empty), Some(&long)]);
        assert_eq!([0, 1].map(|plan| again.address_of(plan)), [5, 2].map(|plan| first.address_of(plan)));
        assert_eq!(again.bytes_uploaded, 0);
    }

    #[test]
    fn the_least_recently_used_filter_goes_and_leaves_its_memory() {
        let (gpu, mut filters) = (gpu(), Filters::new(DOCUMENTS, 3 * BYTES as u64));
        let sets = [1, 2, 3, 4].map(|document| set(&[document]));
        let addresses = [0, 1, 2, 0].map(|number| place(&mut filters, &gpu, &[Some(&sets[number])]).address_of(0));
        assert_eq!((filters.capacity(), addresses[0]), (3, addresses[3]));
        let left = gpu.left();
        let fourth = place(&mut filters, &gpu, &[Some(&sets[3])]);
        assert_eq!((fourth.address_of(0), gpu.left()), (addresses[1], left));
        assert_eq!(words_at(&gpu, fourth.address_of(0)), [1 << 4, 0, 0, 0]);
        assert_eq!(place(&mut filters, &gpu, &[Some(&sets[2]), Some(&sets[0])]).bytes_uploaded, 0);
        assert_eq!(place(&mut filters, &gpu, &[Some(&sets[1])]).bytes_uploaded, BYTES);
    }

    #[test]
    fn a_filter_of_a_batch_in_flight_is_not_overwritten() {
        let (gpu, mut filters) = (gpu(), Filters::new(DOCUMENTS, 1));
        let (one, other) = (set(&[1]), set(&[2]));
        let in_flight = place(&mut filters, &gpu, &[Some(&one)]);
        let next = place(&mut filters, &gpu, &[Some(&other)]);
        assert_eq!(gpu.left(), (1 << 20) - 2 * BYTES as u64);
        assert_eq!(words_at(&gpu, in_flight.address_of(0)), [2, 0, 0, 0]);
        assert_eq!(words_at(&gpu, next.address_of(0)), [4, 0, 0, 0]);
        drop(in_flight);
        assert_eq!(gpu.left(), (1 << 20) - BYTES as u64);
        filters.clear();
        assert_eq!(words_at(&gpu, next.address_of(0)), [4, 0, 0, 0]);
        drop(next);
        assert_eq!(gpu.left(), 1 << 20);
    }

    #[test]
    fn a_new_set_is_never_taken_for_one_that_was_dropped() {
        let (gpu, mut filters) = (gpu(), Filters::new(DOCUMENTS, 1000));
        for document in 0..100 {
            let placed = place(&mut filters, &gpu, &[Some(&set(&[document]))]);
            assert_eq!(placed.bytes_uploaded, BYTES);
            let mut words = [0; 4];
            words[document as usize / 64] = 1 << (document % 64);
            assert_eq!(words_at(&gpu, placed.address_of(0)), words);
        }
        assert_eq!(gpu.left(), (1 << 20) - BYTES as u64, "a filter that nobody has leaves its memory to the next one");
    }

    #[test]
    fn what_could_not_be_uploaded_is_not_kept() {
        let filter = set(&[7]);
        // Allocating, writing, clearing nothing, waiting.
        for call in 0..4 {
            let faulty = Arc::new(Faulty::new(Arc::new(Simulator::new(1)), Fault::Once, call));
            let (gpu, mut filters) = (Gpu::new(faulty, 1 << 20), Filters::new(DOCUMENTS, 1000));
            assert!(filters.place(&gpu, [Some(&filter)]).is_err(), "call {call}");
            assert_eq!(gpu.left(), 1 << 20);
            let placed = place(&mut filters, &gpu, &[Some(&filter)]);
            assert_eq!((placed.bytes_uploaded, words_at(&gpu, placed.address_of(0))), (BYTES, [1 << 7, 0, 0, 0]));
        }
    }
}
