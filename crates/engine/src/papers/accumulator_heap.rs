//! The heap of score-at-a-time: the best k documents so far, while their scores still grow.
//!
//! Trotman and Crane, *Micro and Macro Optimization of SaaT Search*. The heap holds documents and reads their scores
//! from the accumulators. [`algorithm_1`] is the update of ATIRE and JASS; [`algorithm_2`] is the paper's, which needs
//! a single comparison in nearly all cases. Theirs compare scores only, and so cannot tell which of several documents
//! with the heap's lowest score are in it. Ours compare (score, document), which has no ties: a document is in a full
//! heap if and only if it is not worse than the worst, and the answer equals the oracle's.

use super::accumulator_pages::Pages;
use crate::algorithms::sweep::Score;
use crate::algorithms::topk::{TopK, key};
use lanner_index::DocId;

/// The documents in the heap, the worst first once there are k.
#[derive(Default)]
pub struct AccumulatorHeap {
    documents: Vec<u32>,
    /// The number of documents missing from a full heap.
    needed: usize,
    /// The least score that enters while the heap is not full: at least 1.
    start: u32,
    /// The score of the worst document of a full heap; `start` before.
    threshold: u32,
}

/// A posting on its way to the accumulators.
#[derive(Clone, Copy)]
pub struct Posting<S> {
    /// The document.
    pub document: u32,
    /// The weight to be added to its score.
    pub weight: S,
}

/// Counts which clauses of an update are executed.
pub trait Clauses {
    /// Counts an execution.
    fn count(&mut self, clause: Clause);
}

/// The clauses of Algorithm 1 and Algorithm 2, as in Tables 2 and 3 of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clause {
    /// The heap is not full.
    Filling,
    /// The document is in the full heap.
    Update,
    /// The document enters the full heap.
    Insert,
    /// The heap stays as it is.
    Nothing,
}

/// Counts nothing and costs nothing.
pub struct NoCounts;

impl Clauses for NoCounts {
    #[inline(always)]
    fn count(&mut self, _clause: Clause) {}
}

/// `counts[clause]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClauseCounts(pub [u64; 4]);

impl Clauses for ClauseCounts {
    #[inline]
    fn count(&mut self, clause: Clause) {
        self.0[clause as usize] += 1;
    }
}

/// Adds a posting with the update of ATIRE and JASS: three comparisons to find that nothing changes.
#[inline(always)]
pub fn algorithm_1<S: Score, P: Pages<S> + ?Sized, C: Clauses>(
    heap: &mut AccumulatorHeap,
    pages: &mut P,
    clauses: &mut C,
    Posting { document, weight }: Posting<S>,
) {
    let Some(sum) = pages.touch(document) else {
        return;
    };
    let old = *sum;
    let new = old.plus(weight);
    *sum = new;
    if heap.needed > 0 {
        clauses.count(Clause::Filling);
        heap.fill(pages, document, old.units(), new.units());
    } else if old.units() >= heap.threshold && key(DocId(document), old.units()) >= heap.worst(pages, document, old) {
        clauses.count(Clause::Update);
        heap.update(pages, document);
    } else if new.units() >= heap.threshold && key(DocId(document), new.units()) > heap.worst(pages, document, old) {
        clauses.count(Clause::Insert);
        heap.insert(pages, document);
    } else {
        clauses.count(Clause::Nothing);
    }
}

/// Adds a posting with the update of the paper: one comparison to find that nothing changes.
#[inline(always)]
pub fn algorithm_2<S: Score, P: Pages<S> + ?Sized, C: Clauses>(
    heap: &mut AccumulatorHeap,
    pages: &mut P,
    clauses: &mut C,
    Posting { document, weight }: Posting<S>,
) {
    let Some(sum) = pages.touch(document) else {
        return;
    };
    let old = *sum;
    let new = old.plus(weight);
    *sum = new;
    if new.units() < heap.threshold {
        clauses.count(Clause::Nothing);
        return;
    }
    clauses.count(heap.rise(pages, document, old, new));
}

impl AccumulatorHeap {
    /// Empties the heap for a query. Documents need a score of at least `seed` to enter.
    pub fn reset(&mut self, k: usize, seed: u32) {
        self.documents.clear();
        self.needed = k;
        self.start = seed.max(1);
        self.threshold = self.start;
    }

    /// Pushes the documents with their scores to `top`.
    pub fn give<S: Score, P: Pages<S> + ?Sized>(&self, pages: &P, top: &mut TopK) {
        for &document in &self.documents {
            top.push(DocId(document), pages.score(document).units());
        }
    }

    /// The rest of Algorithm 2, for a score that reaches the threshold.
    #[inline(never)]
    fn rise<S: Score, P: Pages<S> + ?Sized>(&mut self, pages: &P, document: u32, old: S, new: S) -> Clause {
        if self.needed > 0 {
            self.fill(pages, document, old.units(), new.units());
            return Clause::Filling;
        }
        let worst = self.worst(pages, document, old);
        if key(DocId(document), new.units()) < worst {
            return Clause::Nothing;
        }
        if key(DocId(document), old.units()) < worst {
            self.insert(pages, document);
            return Clause::Insert;
        }
        self.update(pages, document);
        Clause::Update
    }

    /// Inserts a document that reaches `start` for the first time into a heap that is not full.
    fn fill<S: Score, P: Pages<S> + ?Sized>(&mut self, pages: &P, document: u32, old: u32, new: u32) {
        if old >= self.start || new < self.start {
            return;
        }
        self.documents.push(document);
        self.needed -= 1;
        if self.needed == 0 {
            for position in (0..self.documents.len() / 2).rev() {
                self.sift_down(pages, position);
            }
            self.threshold = pages.score(self.documents[0]).units();
        }
    }

    /// The key of the worst document before this posting, which may be its own.
    fn worst<S: Score, P: Pages<S> + ?Sized>(&self, pages: &P, document: u32, old: S) -> u64 {
        let worst = self.documents[0];
        let score = if worst == document { old } else { pages.score(worst) };
        key(DocId(worst), score.units())
    }

    /// Replaces the worst document.
    #[inline(never)]
    fn insert<S: Score, P: Pages<S> + ?Sized>(&mut self, pages: &P, document: u32) {
        self.documents[0] = document;
        self.sift_down(pages, 0);
        self.threshold = pages.score(self.documents[0]).units();
    }

    /// Moves a document whose score has grown to its new position.
    #[inline(never)]
    fn update<S: Score, P: Pages<S> + ?Sized>(&mut self, pages: &P, document: u32) {
        if let Some(position) = self.documents.iter().position(|&other| other == document) {
            self.sift_down(pages, position);
        }
        self.threshold = pages.score(self.documents[0]).units();
    }

    fn sift_down<S: Score, P: Pages<S> + ?Sized>(&mut self, pages: &P, mut position: usize) {
        let documents = &mut self.documents[..];
        let key_at = |documents: &[u32], position: usize| {
            key(DocId(documents[position]), pages.score(documents[position]).units())
        };
        loop {
            let left = 2 * position + 1;
            if left >= documents.len() {
                return;
            }
            let right = left + 1;
            let is_right = right < documents.len() && key_at(documents, right) < key_at(documents, left);
            let child = if is_right { right } else { left };
            if key_at(documents, position) <= key_at(documents, child) {
                return;
            }
            documents.swap(position, child);
            position = child;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::accumulator_pages::Dynamic;
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;

    proptest! {
        #[test]
        fn both_algorithms_keep_the_best_while_scores_grow(
            postings in prop::collection::vec((0u32..60, 1u16..5), 0..400), k in 1usize..70,
        ) {
            let mut sums = [0u16; 60];
            postings.iter().for_each(|&(document, weight)| sums[document as usize] += weight);
            let mut expected: Vec<(u32, u32)> = (0..60).zip(sums.map(u32::from)).filter(|(_, sum)| *sum > 0).collect();
            expected.sort_by_key(|&(document, sum)| (Reverse(sum), document));
            expected.truncate(k);
            for is_second in [false, true] {
                let (mut heap, mut pages) = (AccumulatorHeap::default(), Dynamic::<u16>::default());
                let mut counts = ClauseCounts::default();
                heap.reset(k, 0);
                pages.reset(60);
                for &(document, weight) in &postings {
                    match is_second {
                        false => algorithm_1(&mut heap, &mut pages, &mut counts, Posting { document, weight }),
                        true => algorithm_2(&mut heap, &mut pages, &mut counts, Posting { document, weight }),
                    }
                }
                let mut top = TopK::new(k);
                heap.give(&pages, &mut top);
                let found: Vec<(u32, u32)> = top.take(|hit| hit).iter().map(|hit| (hit.document.0, hit.units)).collect();
                prop_assert_eq!(&found, &expected, "algorithm {}", 1 + u32::from(is_second));
                prop_assert_eq!(counts.0.iter().sum::<u64>(), postings.len() as u64);
            }
        }
    }
}
