//! Many queries by one caller, as a stream: how many an engine answers if it never waits for queries.
//!
//! The threads that answer also make the hash of each answer, which the caller compares. If it took the answers
//! themselves, it would have to free a million a second that other threads have allocated, and would be what is
//! measured.

use super::answers::{QuerySet, hash_of, hash_of_ids};
use crate::error::Result;
use lanner::{Answer, Engine, Query, SearchError};
use std::sync::Arc;
use std::time::Instant;

/// The clock is read once for this many queries, which are asked in any case.
const QUERIES_PER_LOOK: usize = 64;

/// How long a run lasts: at least `seconds`, then until `queries` were asked, but not longer than `longest_s`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunLength {
    pub seconds: f64,
    pub longest_s: f64,
    pub queries: usize,
}

impl RunLength {
    /// Whether no more queries are asked after `asked` of them and some seconds.
    pub fn is_over(&self, asked: usize, seconds: f64) -> bool {
        seconds >= self.longest_s || (seconds >= self.seconds && asked >= self.queries)
    }
}

/// A stream of a log's queries, over and over.
pub struct StreamLoad<'a> {
    pub engine: &'a Engine,
    pub set: &'a QuerySet,
    pub length: RunLength,
}

/// How many queries were answered in which time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answered {
    pub queries: usize,
    pub seconds: f64,
}

impl Answered {
    pub fn rate(&self) -> f64 {
        self.queries as f64 / self.seconds
    }
}

impl StreamLoad<'_> {
    /// From the text of each query to the external ids of its hits.
    pub fn texts_to_ids(&self) -> Result<Answered> {
        let index = Arc::clone(self.engine.index());
        let hash = move |_: Query, answer: Result<Answer, SearchError>| -> Result<u64, SearchError> {
            Ok(hash_of_ids(&index.ids(answer?.hits.iter().map(|hit| hit.document))?))
        };
        let queries = Arc::clone(&self.set.queries);
        let stream = self.engine.stream_map(self.numbers().map(move |number| queries[number].clone()), hash);
        self.read(stream, &self.set.id_hashes)
    }

    /// From plans that were made before to hits.
    pub fn plans_to_hits(&self) -> Result<Answered> {
        let hash = |_: usize, answer: Result<Answer, SearchError>| -> Result<u64, SearchError> {
            Ok(hash_of(answer?.hits.iter().map(|hit| (hit.document, hit.units))))
        };
        let plans = Arc::clone(&self.set.plans);
        let stream = self.engine.stream_plans(self.numbers(), move |number| plans[number].clone(), hash);
        self.read(stream, &self.set.hashes)
    }

    /// The numbers of the queries that are asked, over and over until the run ends.
    fn numbers(&self) -> impl Iterator<Item = usize> + use<> {
        let (count, length, start) = (self.set.len(), self.length, Instant::now());
        let is_over = move |asked: usize| {
            asked > 0 && asked.is_multiple_of(QUERIES_PER_LOOK) && length.is_over(asked, start.elapsed().as_secs_f64())
        };
        (0usize..).take_while(move |&asked| !is_over(asked)).map(move |asked| asked % count)
    }

    /// Reads the hashes of all answers, and checks them.
    fn read(&self, hashes: impl Iterator<Item = Result<u64, SearchError>>, expected: &[u64]) -> Result<Answered> {
        let (start, mut queries) = (Instant::now(), 0);
        for hash in hashes {
            if hash? != expected[queries % self.set.len()] {
                return Err(self.set.wrong(queries));
            }
            queries += 1;
        }
        Ok(Answered { queries, seconds: start.elapsed().as_secs_f64() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_lasts_for_its_seconds_and_its_queries_but_not_too_long() {
        let length = RunLength { seconds: 1.0, longest_s: 2.0, queries: 100 };
        for (asked, seconds, is_over) in
            [(0, 0.0, false), (200, 0.9, false), (99, 1.5, false), (100, 1.0, true), (5, 2.0, true)]
        {
            assert_eq!(length.is_over(asked, seconds), is_over, "{asked} after {seconds} s");
        }
    }
}
