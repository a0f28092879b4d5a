//! Accumulators of score-at-a-time without a heap: nothing but an addition for each posting, then one sweep.
//!
//! Ours, beyond the paper: the scores are all zero between queries. A posting is added without looking at a flag or a
//! heap; at the end the pages are swept in document order for scores that reach the threshold, compared many at a time,
//! and left zero. Where postings are few beside the documents each marks its page, and only marked pages are swept.
#![allow(unsafe_code)]

use super::Task;
use crate::algorithms::topk::TopK;
use lanner_index::DocId;

/// Documents of a page are two to the power of this many: with 16-bit scores, 512 bytes.
const PAGE_SHIFT: u32 = 8;
/// Scores that are compared together.
const LANE: usize = 64;
/// Pages are marked when there are fewer postings than this share of the documents.
const MARKED_BELOW: u64 = 4;

/// The number an accumulator is.
pub trait Score: Copy + Ord + Default {
    /// From a number that fits, as the planner has proved.
    fn of(units: u32) -> Self;
    /// As a score.
    fn units(self) -> u32;
    /// The sum, which fits.
    fn plus(self, other: Self) -> Self;
}

impl Score for u16 {
    #[inline(always)]
    fn of(units: u32) -> u16 {
        units as u16
    }

    #[inline(always)]
    fn units(self) -> u32 {
        u32::from(self)
    }

    #[inline(always)]
    fn plus(self, other: u16) -> u16 {
        self.wrapping_add(other)
    }
}

impl Score for u32 {
    #[inline(always)]
    fn of(units: u32) -> u32 {
        units
    }

    #[inline(always)]
    fn units(self) -> u32 {
        self
    }

    #[inline(always)]
    fn plus(self, other: u32) -> u32 {
        self.wrapping_add(other)
    }
}

/// Scores that are zero between queries.
#[derive(Default)]
pub struct SweptScores<S> {
    scores: Vec<S>,
    /// `marks[page]`: 1 if anything was added to the page since it was swept; unused where all are swept.
    marks: Vec<u8>,
}

/// The scores of the documents from `start` on, as they are being added up.
pub struct Adding<'a, S, const MARKED: bool> {
    scores: &'a mut [S],
    marks: &'a mut [u8],
    start: u32,
}

impl<S: Score> SweptScores<S> {
    /// Whether pages should be marked for so many postings.
    pub fn are_marked(postings: u64, documents: usize) -> bool {
        postings.saturating_mul(MARKED_BELOW) < documents as u64
    }

    /// Makes room for the documents of a range.
    pub fn add<const MARKED: bool>(&mut self, start: u32, documents: usize) -> Adding<'_, S, MARKED> {
        let padded = documents.next_multiple_of(1 << PAGE_SHIFT);
        if self.scores.len() < padded {
            self.scores.resize(padded, S::default());
            self.marks.resize(padded >> PAGE_SHIFT, 0);
        }
        Adding { scores: &mut self.scores[..documents], marks: &mut self.marks[..padded >> PAGE_SHIFT], start }
    }

    /// Gives the documents that reach the threshold to `top`, leaves all scores zero, and returns how many it gave.
    pub fn sweep(&mut self, task: &Task<'_>, is_marked: bool, top: &mut TopK) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2, by the line above.
            return unsafe { self.sweep_avx2(task, is_marked, top) };
        }
        self.sweep_any(task, is_marked, top)
    }

    /// The same loops, for which the compiler may use AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn sweep_avx2(&mut self, task: &Task<'_>, is_marked: bool, top: &mut TopK) -> u64 {
        self.sweep_any(task, is_marked, top)
    }

    #[inline(always)]
    fn sweep_any(&mut self, task: &Task<'_>, is_marked: bool, top: &mut TopK) -> u64 {
        let range = task.plan.range.clone();
        let pages = (range.len()).div_ceil(1 << PAGE_SHIFT);
        let mut given = 0;
        for (page, mark) in self.marks[..pages].iter_mut().enumerate() {
            if is_marked && std::mem::take(mark) == 0 {
                continue;
            }
            let first = page << PAGE_SHIFT;
            let scores = &mut self.scores[first..first + (1 << PAGE_SHIFT)];
            given += sweep_page(scores, range.start + first as u32, task, top);
            scores.fill(S::default());
        }
        given
    }
}

impl<S: Score, const MARKED: bool> Adding<'_, S, MARKED> {
    /// Adds a weight to some documents; those outside the range are left out.
    #[inline]
    pub fn postings(&mut self, documents: &[u32], weight: S) {
        // In registers, not loaded again for each posting.
        let (scores, marks, start) = (&mut *self.scores, &mut *self.marks, self.start);
        for &document in documents {
            let place = document.wrapping_sub(start) as usize;
            if let Some(score) = scores.get_mut(place) {
                *score = score.plus(weight);
                if MARKED {
                    marks[place >> PAGE_SHIFT] = 1;
                }
            }
        }
    }
}

#[inline(always)]
fn sweep_page<S: Score>(scores: &[S], first: u32, task: &Task<'_>, top: &mut TopK) -> u64 {
    let mut given = 0;
    let (lanes, _) = scores.as_chunks::<LANE>();
    for (lane, scores) in lanes.iter().enumerate() {
        // In document order, so at a full heap equality cannot enter.
        let mut threshold = top.threshold_in_order().max(1);
        let largest = scores.iter().fold(S::default(), |largest, &score| largest.max(score));
        if largest.units() < threshold {
            continue;
        }
        for (place, score) in scores.iter().enumerate() {
            let document = first + (lane * LANE + place) as u32;
            if score.units() >= threshold && task.passes(document) {
                top.push(DocId(document), score.units());
                threshold = top.threshold_in_order().max(1);
                given += 1;
            }
        }
    }
    given
}
