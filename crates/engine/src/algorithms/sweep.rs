//! Accumulators of score-at-a-time without a heap: one addition for each posting, then one sweep.
//!
//! Ours, beyond the paper: all scores are zero between queries. A posting is added without checking a flag or a heap.
//! At the end pages are swept in document order for scores that reach the threshold, compared with SIMD, and reset to
//! zero. If there are few postings relative to documents, each marks its page, and only marked pages are swept.
#![allow(unsafe_code)]

use super::Task;
use crate::algorithms::topk::TopK;
use lanner_index::DocId;

/// A page has 2^8 documents: 512 bytes of 16-bit scores.
const PAGE_SHIFT: u32 = 8;
/// The number of scores that are compared together.
const GROUP: usize = 64;
/// Pages are marked if the number of postings times this is below the number of documents (decision 17).
const MARKED_BELOW: u64 = 4;

/// The type of an accumulator.
pub trait Score: Copy + Ord + Default {
    /// Converts a number that fits, as the planner has proved.
    fn of(units: u32) -> Self;
    /// Converts to a score.
    fn units(self) -> u32;
    /// Adds; the planner has proved that the sum fits.
    fn plus(self, other: Self) -> Self;
}

macro_rules! score {
    ($type:ty) => {
        impl Score for $type {
            #[inline(always)]
            fn of(units: u32) -> $type {
                units as $type
            }

            #[inline(always)]
            fn units(self) -> u32 {
                self.into()
            }

            #[inline(always)]
            fn plus(self, other: $type) -> $type {
                self.wrapping_add(other)
            }
        }
    };
}
score!(u16);
score!(u32);

/// Scores that are zero between queries.
#[derive(Default)]
pub struct SweptScores<S> {
    scores: Vec<S>,
    /// `marks[page]`: 1 if a posting was added to the page since it was swept; unused where all pages are swept.
    marks: Vec<u8>,
}

/// The scores of the documents starting at `start`, while postings are added.
pub struct Adding<'a, S, const MARKED: bool> {
    scores: &'a mut [S],
    marks: &'a mut [u8],
    start: u32,
}

impl<S: Score> SweptScores<S> {
    /// Returns whether pages should be marked for this number of postings.
    pub fn are_marked(postings: u64, documents: usize) -> bool {
        postings.saturating_mul(MARKED_BELOW) < documents as u64
    }

    /// Begins to add postings for a range of documents.
    pub fn add<const MARKED: bool>(&mut self, start: u32, documents: usize) -> Adding<'_, S, MARKED> {
        let padded = documents.next_multiple_of(1 << PAGE_SHIFT);
        if self.scores.len() < padded {
            self.scores.resize(padded, S::default());
            self.marks.resize(padded >> PAGE_SHIFT, 0);
        }
        Adding { scores: &mut self.scores[..documents], marks: &mut self.marks[..padded >> PAGE_SHIFT], start }
    }

    /// Pushes the documents that reach the threshold to `top`, resets all scores to zero, and returns the number of
    /// documents pushed.
    pub fn sweep(&mut self, task: &Task<'_>, is_marked: bool, top: &mut TopK) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the CPU has AVX2, by the line above.
            return unsafe { self.sweep_avx2(task, is_marked, top) };
        }
        self.sweep_any(task, is_marked, top)
    }

    /// The same loops, vectorized by the compiler for AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn sweep_avx2(&mut self, task: &Task<'_>, is_marked: bool, top: &mut TopK) -> u64 {
        self.sweep_any(task, is_marked, top)
    }

    #[inline(always)]
    fn sweep_any(&mut self, task: &Task<'_>, is_marked: bool, top: &mut TopK) -> u64 {
        let range = task.plan.range.clone();
        let pages = (range.len()).div_ceil(1 << PAGE_SHIFT);
        let mut pushed = 0;
        for (page, mark) in self.marks[..pages].iter_mut().enumerate() {
            if is_marked && std::mem::take(mark) == 0 {
                continue;
            }
            let first = page << PAGE_SHIFT;
            let scores = &mut self.scores[first..first + (1 << PAGE_SHIFT)];
            pushed += sweep_page(scores, range.start + first as u32, task, top);
            scores.fill(S::default());
        }
        pushed
    }
}

impl<S: Score, const MARKED: bool> Adding<'_, S, MARKED> {
    /// Adds a weight to the scores of some documents; those outside the range are ignored.
    #[inline]
    pub fn postings(&mut self, documents: &[u32], weight: S) {
        // In registers, not loaded again for each posting.
        let (scores, marks, start) = (&mut *self.scores, &mut *self.marks, self.start);
        for &document in documents {
            let offset = document.wrapping_sub(start) as usize;
            if let Some(score) = scores.get_mut(offset) {
                *score = score.plus(weight);
                if MARKED {
                    marks[offset >> PAGE_SHIFT] = 1;
                }
            }
        }
    }
}

#[inline(always)]
fn sweep_page<S: Score>(scores: &[S], first: u32, task: &Task<'_>, top: &mut TopK) -> u64 {
    let mut pushed = 0;
    let (groups, _) = scores.as_chunks::<GROUP>();
    for (group, scores) in groups.iter().enumerate() {
        // Documents come in order, so equality cannot enter once there are k hits.
        let mut threshold = top.threshold_in_order().max(1);
        let largest = scores.iter().fold(S::default(), |largest, &score| largest.max(score));
        if largest.units() < threshold {
            continue;
        }
        for (i, score) in scores.iter().enumerate() {
            let document = first + (group * GROUP + i) as u32;
            if score.units() >= threshold && task.passes(document) {
                top.push(DocId(document), score.units());
                threshold = top.threshold_in_order().max(1);
                pushed += 1;
            }
        }
    }
    pushed
}
