//! Passes over queries: each is asked once, as a stream from plans.
//!
//! An engine that learns which lists are asked for answers a repeated sample ever faster. In a pass no query is repeated.

use super::answers::{QuerySet, hash_of};
use crate::error::Result;
use lanner::{Answer, Engine, SearchError};
use std::ops::{AddAssign, Range};
use std::sync::Arc;
use std::time::Instant;

/// What one or several passes took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pass {
    pub queries: usize,
    pub seconds: f64,
    /// Bytes of lists that kernels read in host memory, as the engine predicts them.
    pub host_bytes: u64,
    /// Bytes that were uploaded with batches.
    pub uploaded_bytes: u64,
}

impl Pass {
    /// Asks each query once, and checks the answers.
    pub fn over(engine: &Engine, set: &QuerySet) -> Result<Pass> {
        Pass::over_some(engine, set, 0..set.len())
    }

    /// The same for some of the queries.
    pub fn over_some(engine: &Engine, set: &QuerySet, numbers: Range<usize>) -> Result<Pass> {
        let (start, first, plans) = (Instant::now(), numbers.start, Arc::clone(&set.plans));
        let make = |_: usize, answer: Result<Answer, SearchError>| -> Result<(u64, u64, u64), SearchError> {
            let answer = answer?;
            let hash = hash_of(answer.hits.iter().map(|hit| (hit.document, hit.units)));
            Ok((hash, answer.work.bytes_from_host, answer.work.bytes_uploaded))
        };
        let mut pass = Pass::default();
        for answer in engine.stream_plans(numbers, move |number| plans[number].clone(), make) {
            let (hash, host_bytes, uploaded_bytes) = answer?;
            if hash != set.hashes[first + pass.queries] {
                return Err(set.wrong(first + pass.queries));
            }
            pass += Pass { queries: 1, seconds: 0.0, host_bytes, uploaded_bytes };
        }
        pass.seconds = start.elapsed().as_secs_f64();
        Ok(pass)
    }

    /// Adds more passes until all of them have taken this long.
    pub fn and_more(mut self, seconds: f64, mut more: impl FnMut() -> Result<Pass>) -> Result<Pass> {
        while self.seconds < seconds {
            self += more()?;
        }
        Ok(self)
    }

    /// Queries per second.
    pub fn rate(&self) -> f64 {
        self.queries as f64 / self.seconds
    }
}

impl AddAssign for Pass {
    fn add_assign(&mut self, other: Pass) {
        self.queries += other.queries;
        self.seconds += other.seconds;
        self.host_bytes += other.host_bytes;
        self.uploaded_bytes += other.uploaded_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::BenchError;

    #[test]
    fn passes_go_on_for_as_long_as_they_are_told_however_short_they_are() {
        let pass = Pass { queries: 3, seconds: 0.03125, ..Pass::default() };
        let all = pass.and_more(1.0, || Ok(pass)).unwrap();
        assert_eq!((all.queries, all.seconds), (32 * 3, 1.0));
        let all = pass.and_more(0.0, || Err(BenchError::Usage("one is enough".to_owned()))).unwrap();
        assert_eq!(all, pass);
    }
}
