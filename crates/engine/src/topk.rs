//! The best k hits, in the order that settles ties: higher score first, then the smaller document.

use lanner_index::DocId;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A document that answers a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Hit {
    /// The document.
    pub document: DocId,
    /// Its score in units, of which 65,536 make 1.0 (impacts are whole units).
    pub score: u32,
}

/// Keeps the best k of the hits it is given.
///
/// A *seed* is a score that at least k documents of the whole collection are known to reach: lower ones are refused
/// from the start, equal ones enter.
#[derive(Clone, Debug, Default)]
pub struct TopK {
    k: usize,
    seed: u32,
    /// The hits as keys, the worst on top.
    keys: BinaryHeap<Reverse<u64>>,
}

/// A hit as one number: the greater, the better.
fn key(document: DocId, score: u32) -> u64 {
    u64::from(score) << 32 | u64::from(!document.0)
}

fn hit(key: u64) -> Hit {
    Hit { document: DocId(!(key as u32)), score: (key >> 32) as u32 }
}

impl TopK {
    /// Room for the best `k`. Memory grows with the hits that come, not with `k`.
    pub fn new(k: usize) -> TopK {
        TopK { k, ..TopK::default() }
    }

    /// Empties it for another query; what was allocated stays.
    pub fn reset(&mut self, k: usize, seed: u32) {
        self.keys.clear();
        (self.k, self.seed) = (k, seed);
    }

    /// Hits so far.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is no hit yet.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The least score that can still enter, whichever document has it: at the k-th score the smaller document wins.
    #[inline]
    pub fn threshold(&self) -> u32 {
        match self.keys.peek() {
            Some(Reverse(worst)) if self.keys.len() >= self.k => hit(*worst).score,
            _ => self.seed,
        }
    }

    /// The least score that can still enter when all documents to come are greater than those that were.
    #[inline]
    pub fn threshold_in_order(&self) -> u32 {
        match self.keys.peek() {
            // A later document loses ties, so equality cannot enter.
            Some(Reverse(worst)) if self.keys.len() >= self.k => hit(*worst).score.saturating_add(1),
            _ => self.seed,
        }
    }

    /// Takes a hit if it is among the best k so far, and tells whether it was.
    #[inline]
    pub fn push(&mut self, document: DocId, score: u32) -> bool {
        if score < self.seed {
            return false;
        }
        let key = key(document, score);
        if self.keys.len() < self.k {
            self.keys.push(Reverse(key));
            return true;
        }
        match self.keys.peek_mut() {
            Some(mut worst) if key > worst.0 => {
                *worst = Reverse(key);
                true
            }
            _ => false,
        }
    }

    /// Moves the hits out, best first; what was allocated stays for the next query.
    pub fn take(&mut self) -> Vec<Hit> {
        let mut keys = std::mem::take(&mut self.keys).into_vec();
        keys.sort_unstable();
        let hits = keys.iter().map(|&Reverse(key)| hit(key)).collect();
        keys.clear();
        self.keys = BinaryHeap::from(keys);
        hits
    }

    /// The best `k` of several answers over disjoint documents: parts of a plan, devices, shards.
    pub fn merge<A: AsRef<[Hit]>>(k: usize, answers: impl IntoIterator<Item = A>) -> Vec<Hit> {
        let mut top = TopK::new(k);
        for answer in answers {
            for hit in answer.as_ref() {
                top.push(hit.document, hit.score);
            }
        }
        top.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hits_of(pairs: &[(u32, u32)]) -> Vec<Hit> {
        pairs.iter().map(|&(document, score)| Hit { document: DocId(document), score }).collect()
    }

    fn sorted(mut hits: Vec<Hit>, k: usize) -> Vec<Hit> {
        hits.sort_by_key(|hit| (Reverse(hit.score), hit.document));
        hits.truncate(k);
        hits
    }

    /// Distinct documents in any order, with scores that collide.
    fn some_hits() -> impl Strategy<Value = Vec<Hit>> {
        let scores = prop::collection::hash_map(0u32..500, 0u32..8, 0..200);
        scores.prop_map(|scores| scores.into_iter().map(|(d, score)| Hit { document: DocId(d), score }).collect())
    }

    proptest! {
        #[test]
        fn the_best_k_come_out_in_order_whatever_the_order_they_came_in(hits in some_hits(), k in 0usize..50) {
            let mut top = TopK::new(k);
            for hit in &hits {
                let is_below = hit.score < top.threshold();
                let entered = top.push(hit.document, hit.score);
                prop_assert!(!(is_below && entered), "what is below the threshold cannot enter");
            }
            prop_assert_eq!(top.take(), sorted(hits, k));
        }

        #[test]
        fn in_document_order_nothing_below_the_stricter_threshold_enters_and_all_else_does(
            hits in some_hits(), k in 1usize..50, seed in 0u32..4,
        ) {
            let mut hits = hits;
            hits.sort_by_key(|hit| hit.document);
            let mut top = TopK::default();
            top.reset(k, seed);
            for hit in &hits {
                let reaches = hit.score >= top.threshold_in_order();
                prop_assert_eq!(top.push(hit.document, hit.score), reaches);
            }
            hits.retain(|hit| hit.score >= seed);
            prop_assert_eq!(top.take(), sorted(hits, k));
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
        assert!(!top.push(DocId(0), 4));
        assert!(top.push(DocId(1), 5) && top.push(DocId(2), 5));
        assert_eq!((top.threshold(), top.threshold_in_order()), (5, 6));
        assert_eq!(top.take(), hits_of(&[(1, 5), (2, 5)]));
    }

    #[test]
    fn room_is_made_for_hits_and_not_for_k() {
        let mut top = TopK::new(usize::MAX);
        assert!(top.push(DocId(7), 1));
        assert_eq!(top.take(), hits_of(&[(7, 1)]));
        top.reset(0, 0);
        assert!(!top.push(DocId(7), u32::MAX));
        assert!(top.is_empty());
    }

    #[test]
    fn a_second_query_reuses_the_memory_of_the_first() {
        let mut top = TopK::new(1000);
        (0..1000).for_each(|document| assert!(top.push(DocId(document), document)));
        let capacity = top.keys.capacity();
        top.take();
        top.reset(1000, 0);
        (0..5000).for_each(|document| assert!(top.push(DocId(document), document)));
        assert_eq!(top.keys.capacity(), capacity);
        assert_eq!(top.len(), 1000);
    }
}
