//! In front of the workers: a cache of answers, and one flight for equal queries that are asked at the same time. This
//! is the query integrator of gpu-ir (Ding et al., section 5) on one machine.
//!
//! Answers are exact, since an index does not change while it is open. Two queries are equal if everything that can
//! change the answer is equal: the text, the mode, k, the score model, the algorithm and the budget. Queries with a
//! filter or a deadline are neither kept nor joined.

use super::SearchError;
use crate::query::answer::{Answer, Hit, Place, Step, Trace};
use crate::query::score::ScoreModel;
use crate::query::{Algorithm, Mode, Query};
use quick_cache::sync::Cache;
use quick_cache::{DefaultHashBuilder, Weighter};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

/// Bytes of a cached answer beside its text and its hits: keys, counters and links, as measured by the tests.
const OVERHEAD: u64 = 256;

/// Answers equal queries once.
#[derive(Default)]
pub struct Integrator {
    /// The cache and the flights; `None` without a memory budget.
    kept: Option<Kept>,
}

struct Kept {
    answers: Cache<Key, Arc<Answer>, Bytes>,
    flights: Mutex<HashMap<Key, Arc<Flight>>>,
    hits: AtomicU64,
    misses: AtomicU64,
    joined: AtomicU64,
}

/// What the cache has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Queries answered from the cache.
    pub hits: u64,
    /// Queries that were not in it.
    pub misses: u64,
    /// Queries that waited for an equal one.
    pub joined: u64,
    /// Bytes of the answers that it keeps.
    pub bytes: u64,
}

/// All of a query that can change its answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    text: String,
    mode: Mode,
    k: usize,
    /// The model, and the bits of its parameter.
    score: Option<(u8, u32)>,
    algorithm: Algorithm,
    budget: Option<u64>,
}

/// A query that a thread is answering; others wait for the answer.
#[derive(Default)]
struct Flight {
    landed: Mutex<Landed>,
    changed: Condvar,
}

#[derive(Default)]
enum Landed {
    #[default]
    No,
    /// With the answer; `None` if there was an error, which each query then gets for itself.
    Yes(Option<Arc<Answer>>),
}

#[derive(Clone)]
struct Bytes;

impl Weighter<Key, Arc<Answer>> for Bytes {
    fn weight(&self, key: &Key, answer: &Arc<Answer>) -> u64 {
        let (hits, steps) =
            (answer.hits.capacity() * size_of::<Hit>(), answer.trace.steps.capacity() * size_of::<Step>());
        OVERHEAD + (2 * key.text.capacity() + hits + steps) as u64
    }
}

impl Key {
    fn of(query: &Query) -> Option<Key> {
        if query.filter.is_some() || query.deadline.is_some() {
            return None;
        }
        let score = query.score.map(|model| match model {
            ScoreModel::Bm25 => (0, 0),
            ScoreModel::Impact => (1, 0),
            ScoreModel::RankBm25 { alpha } => (2, alpha.to_bits()),
        });
        let Query { mode, k, algorithm, budget, .. } = *query;
        Some(Key { text: query.text.clone(), mode, k, score, algorithm, budget })
    }
}

impl Integrator {
    /// Keeps answers in up to this many bytes.
    pub fn new(bytes: u64) -> Integrator {
        let answers =
            Cache::with((bytes / 1024) as usize, bytes, Bytes, DefaultHashBuilder::default(), Default::default());
        let count = || AtomicU64::new(0);
        let (hits, misses, joined) = (count(), count(), count());
        Integrator { kept: Some(Kept { answers, flights: Mutex::default(), hits, misses, joined }) }
    }

    pub fn counters(&self) -> CacheCounters {
        self.kept.as_ref().map_or_else(CacheCounters::default, |kept| CacheCounters {
            hits: kept.hits.load(Ordering::Relaxed),
            misses: kept.misses.load(Ordering::Relaxed),
            joined: kept.joined.load(Ordering::Relaxed),
            bytes: kept.answers.weight(),
        })
    }

    /// The answer that is kept for a query.
    pub fn kept(&self, query: &Query) -> Option<Answer> {
        let kept = self.kept.as_ref()?;
        let start = Instant::now();
        let answer = kept.answers.get(&Key::of(query)?);
        let counter = if answer.is_some() { &kept.hits } else { &kept.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        answer.map(|answer| from_cache(&answer, start))
    }

    /// Keeps an answer.
    pub fn keep(&self, query: &Query, answer: &Answer) {
        if let (Some(kept), Some(key)) = (&self.kept, Key::of(query)) {
            kept.answers.insert(key, Arc::new(answer.clone()));
        }
    }

    /// The answer to a query: one that is kept, that of an equal query which is being answered, or else a new one,
    /// which is kept.
    pub fn answer(
        &self,
        query: &Query,
        answer: impl Fn() -> Result<Answer, SearchError>,
    ) -> Result<Answer, SearchError> {
        let (Some(kept), Some(key)) = (&self.kept, self.kept.as_ref().and_then(|_| Key::of(query))) else {
            return answer();
        };
        let start = Instant::now();
        if let Some(answer) = self.kept(query) {
            return Ok(answer);
        }
        let flight = match kept.board(&key) {
            Ok(flight) => flight,
            Err(other) => {
                kept.joined.fetch_add(1, Ordering::Relaxed);
                return match other.wait() {
                    Some(answer) => Ok(from_cache(&answer, start)),
                    None => answer(),
                };
            }
        };
        // Lands also if answering panics.
        let mut landing = Landing { kept, key: &key, flight: &flight, answer: None };
        let found = answer()?;
        let shared = Arc::new(found.clone());
        kept.answers.insert(key.clone(), Arc::clone(&shared));
        landing.answer = Some(shared);
        Ok(found)
    }
}

impl Kept {
    /// A new flight for a query, or else the one that is under way.
    fn board(&self, key: &Key) -> Result<Arc<Flight>, Arc<Flight>> {
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(flight) = flights.get(key) {
            return Err(Arc::clone(flight));
        }
        let flight = Arc::new(Flight::default());
        flights.insert(key.clone(), Arc::clone(&flight));
        Ok(flight)
    }
}

impl Flight {
    fn wait(&self) -> Option<Arc<Answer>> {
        let mut landed = self.landed.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match &*landed {
                Landed::Yes(answer) => return answer.clone(),
                Landed::No => landed = self.changed.wait(landed).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// Ends a flight when it is dropped.
struct Landing<'a> {
    kept: &'a Kept,
    key: &'a Key,
    flight: &'a Flight,
    answer: Option<Arc<Answer>>,
}

impl Drop for Landing<'_> {
    fn drop(&mut self) {
        self.kept.flights.lock().unwrap_or_else(PoisonError::into_inner).remove(self.key);
        *self.flight.landed.lock().unwrap_or_else(PoisonError::into_inner) = Landed::Yes(self.answer.take());
        self.flight.changed.notify_all();
    }
}

/// An answer without its work, which was done for another query.
fn from_cache(answer: &Answer, arrived: Instant) -> Answer {
    let step = Step { name: "cache", place: Place::Cpu, started: arrived, duration: arrived.elapsed() };
    Answer {
        trace: Trace { arrived: Some(arrived), steps: vec![step] },
        hits: answer.hits.clone(),
        exact: answer.exact,
        ..Answer::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanner_index::DocId;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    fn answer(document: u32) -> Answer {
        Answer { hits: vec![Hit { document: DocId(document), units: 1, score: 1.0 }], ..Answer::default() }
    }

    #[test]
    fn an_answer_is_kept_for_equal_queries_alone() {
        let integrator = Integrator::new(1 << 20);
        let query = Query::new("falcon");
        assert_eq!(integrator.answer(&query, || Ok(answer(1))).unwrap().hits, answer(1).hits);
        assert_eq!(integrator.answer(&query, || unreachable!()).unwrap().hits, answer(1).hits);
        let others = [
            Query::new("falcons"),
            query.clone().k(11),
            query.clone().mode(Mode::And),
            query.clone().score(ScoreModel::Impact),
            query.clone().score(ScoreModel::RankBm25 { alpha: 0.5 }),
            query.clone().score(ScoreModel::RankBm25 { alpha: 0.25 }),
            query.clone().algorithm(Algorithm::Maxscore),
            query.clone().budget(7),
            query.clone().deadline(Duration::from_secs(9)),
            query.clone().filter(crate::query::document_set::DocumentSet::default()),
        ];
        for (other, number) in others.iter().zip(2..) {
            assert_eq!(integrator.answer(other, || Ok(answer(number))).unwrap().hits, answer(number).hits);
        }
        let counters = integrator.counters();
        assert_eq!((counters.hits, counters.misses, counters.joined), (1, 9, 0));
        assert!(counters.bytes >= 9 * OVERHEAD);
    }

    #[test]
    fn equal_queries_at_the_same_time_are_answered_once() {
        let (integrator, answered) = (Integrator::new(1 << 20), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let found = integrator.answer(&Query::new("falcon"), || {
                        answered.fetch_add(1, Ordering::Relaxed);
                        std::thread::sleep(Duration::from_millis(20));
                        Ok(answer(1))
                    });
                    assert_eq!(found.unwrap().hits, answer(1).hits);
                });
            }
        });
        assert_eq!(answered.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn an_error_is_not_kept_and_a_query_that_joined_it_is_answered_for_itself() {
        let (integrator, asked) = (Integrator::new(1 << 20), AtomicUsize::new(0));
        let ask = || {
            integrator.answer(&Query::new("falcon"), || match asked.fetch_add(1, Ordering::Relaxed) {
                0 => {
                    std::thread::sleep(Duration::from_millis(20));
                    Err(SearchError::Busy { limit: 1 })
                }
                _ => Ok(answer(1)),
            })
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            let failed =
                threads.into_iter().filter(|_| true).map(|thread| thread.join().unwrap()).filter(Result::is_err);
            assert_eq!(failed.count(), 1);
        });
        assert!(ask().is_ok());
    }

    #[test]
    fn memory_stays_within_its_bound() {
        let integrator = Integrator::new(64 << 10);
        for number in 0..2000 {
            integrator.keep(&Query::new(format!("query {number}")), &answer(number));
        }
        assert!(integrator.counters().bytes <= 64 << 10);
        assert!(integrator.kept(&Query::new("query 1999")).is_some() || integrator.counters().bytes > 0);
    }

    #[test]
    fn without_memory_nothing_is_kept() {
        let integrator = Integrator::default();
        integrator.keep(&Query::new("falcon"), &answer(1));
        assert!(integrator.kept(&Query::new("falcon")).is_none());
        assert_eq!(integrator.counters(), CacheCounters::default());
    }
}
