//! Queries of a log with their plans and the answers that every run must give.

use crate::error::{BenchError, Result};
use crate::scale::random::mix;
use lanner::answer::Ids;
use lanner::internals::executors::{Cpu, Executor};
use lanner::internals::query::answer::Scored;
use lanner::internals::query::planner::Planner;
use lanner::{Answer, DocId, Index, Mode, Plan, Query, ScoreModel, SearchError};
use std::sync::Arc;

/// What is asked of each query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Questions {
    pub mode: Mode,
    pub k: usize,
    pub score: ScoreModel,
}

/// Queries and their expected answers. Query `i` of a run is number `i % len`.
pub struct QuerySet {
    pub questions: Questions,
    pub queries: Arc<Vec<Query>>,
    pub plans: Arc<Vec<Plan>>,
    /// [`hash_of`] the hits of each query.
    pub hashes: Vec<u64>,
    /// [`hash_of_ids`] of the hits of each query.
    pub id_hashes: Vec<u64>,
}

/// A number that differs, as good as certainly, between answers with other documents, scores or order.
pub fn hash_of(hits: impl Iterator<Item = (DocId, u32)>) -> u64 {
    hits.fold(0, |hash, (document, units)| mix(hash, u64::from(document.0) << 32 | u64::from(units)))
}

/// The same for external ids.
pub fn hash_of_ids(ids: &Ids) -> u64 {
    let of_id = |hash: u64, id: &str| {
        let chunks = id.as_bytes().chunks(8);
        let word = |chunk: &[u8]| chunk.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
        chunks.fold(mix(hash, id.len() as u64), |hash, chunk| mix(hash, word(chunk)))
    };
    ids.iter().fold(0, of_id)
}

impl QuerySet {
    /// Plans the queries, and answers them on the CPU.
    pub fn new(index: &Arc<Index>, texts: &[String], questions: Questions, threads: usize) -> Result<QuerySet> {
        let Questions { mode, k, score } = questions;
        let queries: Vec<Query> = texts.iter().map(|text| Query::new(text).mode(mode).k(k).score(score)).collect();
        let planner = Planner::new(index);
        let plans = queries.iter().map(|query| planner.plan(query)).collect::<Result<Vec<Plan>, _>>();
        let plans = plans.map_err(SearchError::from)?;
        let (mut hashes, mut id_hashes) = (Vec::with_capacity(plans.len()), Vec::with_capacity(plans.len()));
        for answer in Cpu::new(Arc::clone(index), threads).run(&plans)? {
            hashes.push(hash_of(answer.hits.iter().map(|&Scored { document, units }| (document, units))));
            id_hashes.push(hash_of_ids(&index.ids(answer.hits.iter().map(|hit| hit.document))?));
        }
        Ok(QuerySet { questions, queries: Arc::new(queries), plans: Arc::new(plans), hashes, id_hashes })
    }

    pub fn len(&self) -> usize {
        self.queries.len()
    }

    /// Fails if an answer is not the CPU's.
    pub fn check(&self, number: usize, answer: &Answer) -> Result<()> {
        let hash = hash_of(answer.hits.iter().map(|hit| (hit.document, hit.units)));
        if hash == self.hashes[number % self.len()] { Ok(()) } else { Err(self.wrong(number)) }
    }

    /// The error for an answer that is not the CPU's.
    pub fn wrong(&self, number: usize) -> BenchError {
        BenchError::Disagreement {
            engine: "the engine under load".to_owned(),
            reference: "the CPU",
            query: self.queries[number % self.len()].text.clone(),
            mode: self.questions.mode.to_string(),
            k: self.questions.k,
            difference: "other documents, scores or ids".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_differ_have_other_hashes() {
        let of = |hits: &[(u32, u32)]| hash_of(hits.iter().map(|&(document, units)| (DocId(document), units)));
        let hashes =
            [of(&[]), of(&[(0, 0)]), of(&[(1, 2)]), of(&[(2, 1)]), of(&[(1, 2), (3, 4)]), of(&[(3, 4), (1, 2)])];
        let distinct: std::collections::HashSet<u64> = hashes.into_iter().collect();
        assert_eq!(distinct.len(), hashes.len());
        assert_eq!(of(&[(1, 2), (3, 4)]), hashes[4]);
    }
}
