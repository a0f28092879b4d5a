//! The best k hits: higher score first, ties by the smaller document.

use crate::query::answer::Scored;
use lanner_index::DocId;
use std::cmp::Reverse;

/// Keeps the best k of the hits it is given.
///
/// A *seed* is a score that at least k documents of the whole collection are known to reach: lower scores never enter,
/// equal ones do.
///
/// Hits are appended unsorted. At 1.5 k hits (k the first time) the best k are selected, and later hits must beat the
/// worst of them. That costs a few operations per hit for any k, where a heap costs O(log k).
#[derive(Clone, Debug, Default)]
pub struct TopK {
    k: usize,
    /// The hits so far as keys, among them the best k.
    keys: Vec<u64>,
    /// When there are this many keys, they are cut to the best k.
    limit: usize,
    /// Only keys above this enter.
    floor: u64,
    /// Whether there was a cut: `floor` is then the k-th best hit of the last one, and the seed before.
    is_full: bool,
    /// Whether there are hits of an earlier stage, whose documents may be greater than those to come.
    has_earlier: bool,
}

/// Packs a hit into one number: the greater, the better.
pub(crate) fn key(document: DocId, score: u32) -> u64 {
    u64::from(score) << 32 | u64::from(!document.0)
}

/// Unpacks the hit of a key.
pub(crate) fn hit(key: u64) -> Scored {
    Scored { document: DocId(!(key as u32)), units: (key >> 32) as u32 }
}

impl TopK {
    /// Keeps the best `k`. Memory grows with the number of hits, not with `k`.
    pub fn new(k: usize) -> TopK {
        let mut top = TopK::default();
        top.reset(k, 0);
        top
    }

    /// Empties it for another query and keeps its memory.
    pub fn reset(&mut self, k: usize, seed: u32) {
        self.keys.clear();
        // Below the keys of all hits with that score: no document has the largest number.
        let (keys, floor) = (std::mem::take(&mut self.keys), u64::from(seed) << 32);
        *self = TopK { k, keys, limit: k, floor, is_full: false, has_earlier: false };
    }

    /// Pushes the hits of an earlier stage, whose documents will not be pushed again.
    pub fn keep(&mut self, earlier: &[Scored]) {
        earlier.iter().for_each(|hit| _ = self.push(hit.document, hit.units));
        self.has_earlier = !earlier.is_empty();
    }

    /// Returns the number of hits, at most k.
    pub fn len(&self) -> usize {
        self.keys.len().min(self.k)
    }

    /// Returns whether there is no hit yet.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the least score that can still enter, for any document: at the k-th score the smaller document wins.
    #[inline]
    pub fn threshold(&self) -> u32 {
        (self.floor >> 32) as u32
    }

    /// Returns the least score that can still enter, for documents greater than all that were pushed.
    #[inline]
    pub fn threshold_in_order(&self) -> u32 {
        // A later document loses ties with the k-th hit, so equality cannot enter; with the seed it can.
        self.threshold().saturating_add(u32::from(self.is_full && !self.has_earlier))
    }

    /// Pushes a hit if it may be among the best k, and returns whether that raised the threshold.
    #[inline]
    pub fn push(&mut self, document: DocId, score: u32) -> bool {
        let key = key(document, score);
        if key <= self.floor || self.k == 0 {
            return false;
        }
        self.keys.push(key);
        let is_full = self.keys.len() >= self.limit;
        if is_full {
            self.cut();
        }
        is_full
    }

    /// Keeps the best k of at least k hits.
    fn cut(&mut self) {
        self.keys.select_nth_unstable_by(self.k - 1, |a, b| b.cmp(a));
        self.keys.truncate(self.k);
        self.floor = self.keys[self.k - 1];
        self.limit = self.k.saturating_add((self.k / 2).max(1));
        self.is_full = true;
    }

    /// Removes the hits and returns what `make` makes of each, best first; the memory stays for the next query.
    pub fn take<H>(&mut self, make: impl Fn(Scored) -> H) -> Vec<H> {
        if self.keys.len() > self.k {
            self.cut();
        }
        self.keys.sort_unstable_by(|a, b| b.cmp(a));
        let hits = self.keys.iter().map(|&key| make(hit(key))).collect();
        self.keys.clear();
        hits
    }

    /// Merges the hits of several answers over disjoint documents (parts of a plan, devices, shards) into the best `k`.
    pub fn merge<A: AsRef<[Scored]>>(k: usize, answers: impl IntoIterator<Item = A>) -> Vec<Scored> {
        let mut hits: Vec<Scored> = answers.into_iter().flat_map(|answer| answer.as_ref().to_vec()).collect();
        hits.sort_unstable_by_key(|hit| Reverse(key(hit.document, hit.units)));
        hits.truncate(k);
        hits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hits_of(pairs: &[(u32, u32)]) -> Vec<Scored> {
        pairs.iter().map(|&(document, score)| Scored { document: DocId(document), units: score }).collect()
    }

    fn sorted(mut hits: Vec<Scored>, k: usize) -> Vec<Scored> {
        hits.sort_by_key(|hit| (Reverse(hit.units), hit.document));
        hits.truncate(k);
        hits
    }

    /// Distinct documents in any order, with scores that collide.
    fn some_hits() -> impl Strategy<Value = Vec<Scored>> {
        let scores = prop::collection::hash_map(0u32..500, 0u32..8, 0..200);
        scores.prop_map(|scores| {
            scores.into_iter().map(|(d, score)| Scored { document: DocId(d), units: score }).collect()
        })
    }

    proptest! {
        #[test]
        fn the_best_k_come_out_in_order_whatever_the_order_they_came_in(hits in some_hits(), k in 0usize..50) {
            let mut top = TopK::new(k);
            for hit in &hits {
                let threshold = top.threshold();
                let raised = top.push(hit.document, hit.units);
                prop_assert!(top.threshold() >= threshold && (raised || top.threshold() == threshold));
            }
            prop_assert_eq!(top.take(|hit| hit), sorted(hits, k));
        }

        #[test]
        fn in_document_order_what_is_below_the_stricter_threshold_can_be_left_out(
            hits in some_hits(), k in 1usize..50, seed in 0u32..4,
        ) {
            let mut hits = hits;
            hits.sort_by_key(|hit| hit.document);
            let mut top = TopK::default();
            top.reset(k, seed);
            for hit in &hits {
                if hit.units >= top.threshold_in_order() {
                    top.push(hit.document, hit.units);
                }
            }
            hits.retain(|hit| hit.units >= seed);
            prop_assert_eq!(top.take(|hit| hit), sorted(hits, k));
        }

        #[test]
        fn merged_parts_give_the_answer_of_the_whole(hits in some_hits(), k in 0usize..50, parts in 1usize..5) {
            let answers = (0..parts).map(|part| {
                let own = hits.iter().copied().filter(|hit| hit.document.0 as usize % parts == part);
                sorted(own.collect(), k)
            });
            let answers: Vec<_> = answers.collect();
            prop_assert_eq!(TopK::merge(k, &answers), sorted(hits, k));
        }
    }

    #[test]
    fn a_score_equal_to_the_seed_enters_and_a_lower_one_does_not() {
        let mut top = TopK::default();
        top.reset(2, 5);
        assert_eq!((top.threshold(), top.threshold_in_order()), (5, 5));
        assert!(!top.push(DocId(0), 4) && !top.push(DocId(1), 5) && top.len() == 1);
        assert!(top.push(DocId(2), 5));
        assert_eq!((top.threshold(), top.threshold_in_order()), (5, 6));
        assert_eq!(top.take(|hit| hit), hits_of(&[(1, 5), (2, 5)]));
    }

    #[test]
    fn memory_is_reserved_for_hits_and_not_for_k() {
        let mut top = TopK::new(usize::MAX);
        top.push(DocId(7), 1);
        assert_eq!(top.take(|hit| hit), hits_of(&[(7, 1)]));
        top.reset(0, 0);
        assert!(!top.push(DocId(7), u32::MAX));
        assert!(top.is_empty());
    }

    #[test]
    fn a_second_query_reuses_the_memory_of_the_first() {
        let mut top = TopK::new(1000);
        (0..5000).for_each(|document| _ = top.push(DocId(document), document));
        let (capacity, hits) = (top.keys.capacity(), top.take(|hit| hit));
        top.reset(1000, 0);
        (0..5000).for_each(|document| _ = top.push(DocId(document), document));
        assert_eq!((top.keys.capacity(), top.len(), top.take(|hit| hit)), (capacity, 1000, hits));
    }
}
