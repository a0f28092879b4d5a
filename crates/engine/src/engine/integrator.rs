//! In front of the workers: a cache of answers, and one flight for equal queries that are asked at the same time. This
//! is the query integrator of gpu-ir (Ding et al., section 5) on one machine.
//!
//! Answers are exact, since an index does not change while it is open. Two queries are equal if everything that can
//! change the answer is equal: the index, the text, the mode, k, the score model, the algorithm and the budget. Queries
//! with a filter or a deadline are neither kept nor joined.
//!
//! A [`Flight`] has one leader, who makes the answer, and followers, who are called when it lands. A follower is a
//! function, so that no thread has to wait: that of a submitted query delivers the answer to its future, or puts the
//! query back into the queue if there is none. Only a search blocks, since its caller does so anyway. It follows other
//! searches alone, whose threads are at work on the answer. A submitted query may wait for a thread of the pool, and
//! that thread for the caller of the search (in the source of a stream, for example): a search that finds such a flight
//! makes the answer itself and lands the flight, so it never waits for the pool.
//!
//! Streams look up answers and keep them, but lead and follow no flights. A reader that comes back for its next answer
//! late, or never, would keep the followers of its flights waiting for as long.

use super::SearchError;
use crate::query::answer::{Answer, Hit, Place, Step, Trace};
use crate::query::score::ScoreModel;
use crate::query::{Algorithm, Mode, Query};
use quick_cache::sync::Cache;
use quick_cache::{DefaultHashBuilder, Weighter};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Instant;

/// Bytes of a cached answer beside its text and its hits: keys, counters and links, as measured by the tests.
const OVERHEAD: u64 = 256;

/// Answers equal queries once.
#[derive(Default)]
pub struct Integrator {
    /// The cache and the flights, for all indexes of the engine; `None` without a memory budget.
    kept: Option<Arc<Kept>>,
    /// The number of the index.
    index: u64,
}

struct Kept {
    answers: Cache<Key, Arc<Answer>, Bytes>,
    flights: Mutex<Flights>,
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
    /// Those of them that waited for an equal one.
    pub joined: u64,
    /// Bytes of the answers that it keeps.
    pub bytes: u64,
}

/// All of a query that can change its answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    index: u64,
    text: String,
    mode: Mode,
    k: usize,
    /// The model, and the bits of its parameter.
    score: Option<(u8, u32)>,
    algorithm: Algorithm,
    budget: Option<u64>,
}

#[derive(Default)]
struct Flights {
    under_way: HashMap<Key, Flight>,
    /// Leaders so far.
    leaders: u64,
}

/// Equal queries that are being answered.
struct Flight {
    /// The number of the leader. One that was replaced can still land the flight, but not end it without an answer.
    leader: u64,
    /// Whether the leader is a search.
    is_searched: bool,
    followers: Vec<Follower>,
}

/// Called once, without a lock, when a flight lands.
pub type Follower = Box<dyn FnOnce(Landed) + Send>;

/// How a flight ended.
#[derive(Clone)]
pub enum Landed {
    Answered(Arc<Answer>),
    /// With an error, which every query is to get for itself: followers that formed a flight again could fail one by
    /// one.
    Failed,
    /// Its leader was cancelled or panicked; another may lead.
    Abandoned,
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// A thread that answers at once and may block.
    Search,
    /// A submitted query, which may follow any flight and lead one.
    Ticket,
    /// A stream, or a submitted query whose flight has failed: takes no part in flights.
    Alone,
}

/// What an asker gets.
pub enum Boarded<'a> {
    /// Nothing is kept for such queries.
    Passed,
    /// An answer that is kept.
    Kept(Answer),
    /// The asker makes the answer.
    Leader(Leader),
    /// An equal query is being answered.
    Follower(Boarding<'a>),
}

/// A flight that waits for a follower to join. Nothing lands meanwhile.
pub struct Boarding<'a> {
    flights: MutexGuard<'a, Flights>,
    key: Key,
}

/// Makes an answer, which is kept when it lands. If it is dropped instead, the followers are told.
pub struct Leader {
    kept: Arc<Kept>,
    key: Key,
    /// Its number; `None` without a flight.
    number: Option<u64>,
}

impl std::fmt::Debug for Leader {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Leader").field("key", &self.key).field("number", &self.number).finish_non_exhaustive()
    }
}

#[derive(Clone)]
struct Bytes;

impl Weighter<Key, Arc<Answer>> for Bytes {
    fn weight(&self, key: &Key, answer: &Arc<Answer>) -> u64 {
        OVERHEAD + (2 * key.text.capacity() + answer.hits.capacity() * size_of::<Hit>()) as u64
    }
}

impl Key {
    fn of(index: u64, query: &Query) -> Option<Key> {
        if query.filter.is_some() || query.deadline.is_some() {
            return None;
        }
        let score = query.score.map(|model| match model {
            ScoreModel::Bm25 => (0, 0),
            ScoreModel::Impact => (1, 0),
            ScoreModel::RankBm25 { alpha } => (2, alpha.to_bits()),
        });
        let Query { mode, k, algorithm, budget, .. } = *query;
        Some(Key { index, text: query.text.clone(), mode, k, score, algorithm, budget })
    }
}

impl Integrator {
    /// Keeps answers in up to this many bytes.
    pub fn new(bytes: u64) -> Integrator {
        let answers =
            Cache::with((bytes / 1024) as usize, bytes, Bytes, DefaultHashBuilder::default(), Default::default());
        let count = || AtomicU64::new(0);
        let (hits, misses, joined) = (count(), count(), count());
        Integrator { kept: Some(Arc::new(Kept { answers, flights: Mutex::default(), hits, misses, joined })), index: 0 }
    }

    /// One for another index that shares the memory. What is kept for an index that nobody asks any more is evicted as
    /// other answers come.
    pub fn share(&self) -> Integrator {
        /// No two indexes of a process have the same number.
        static SHARED: AtomicU64 = AtomicU64::new(1);
        Integrator { kept: self.kept.clone(), index: SHARED.fetch_add(1, Ordering::Relaxed) }
    }

    pub fn counters(&self) -> CacheCounters {
        self.kept.as_ref().map_or_else(CacheCounters::default, |kept| CacheCounters {
            hits: kept.hits.load(Ordering::Relaxed),
            misses: kept.misses.load(Ordering::Relaxed),
            joined: kept.joined.load(Ordering::Relaxed),
            bytes: kept.answers.weight(),
        })
    }

    /// Looks for the answer to a query, and says what its asker is to do.
    pub fn board(&self, query: &Query, asker: Asker) -> Boarded<'_> {
        let Some(kept) = &self.kept else {
            return Boarded::Passed;
        };
        match Key::of(self.index, query) {
            Some(key) => kept.board(key, asker),
            None => Boarded::Passed,
        }
    }

    /// The answer that is kept for a query, or else who keeps the one that is made; for askers without flights.
    pub fn look_up(&self, query: &Query) -> Result<Answer, Option<Leader>> {
        match self.board(query, Asker::Alone) {
            Boarded::Kept(answer) => Ok(answer),
            Boarded::Leader(leader) => Err(Some(leader)),
            Boarded::Passed | Boarded::Follower(_) => Err(None),
        }
    }

    /// The answer to a query: one that is kept, that of an equal query which another search is answering, or else a new
    /// one, which is kept.
    pub fn answer(
        &self,
        query: &Query,
        answer: impl Fn() -> Result<Answer, SearchError>,
    ) -> Result<Answer, SearchError> {
        match self.board(query, Asker::Search) {
            Boarded::Passed => answer(),
            Boarded::Kept(answer) => Ok(answer),
            Boarded::Leader(leader) => {
                let found = answer();
                leader.land(found.as_ref().ok());
                found
            }
            Boarded::Follower(boarding) => {
                let (start, (sender, landed)) = (Instant::now(), mpsc::channel());
                boarding.join(Box::new(move |landed| _ = sender.send(landed)));
                match landed.recv() {
                    Ok(Landed::Answered(answer)) => Ok(from_cache(&answer, start)),
                    _ => answer(),
                }
            }
        }
    }
}

impl Kept {
    fn lock(&self) -> MutexGuard<'_, Flights> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn board(self: &Arc<Kept>, key: Key, asker: Asker) -> Boarded<'_> {
        let (start, count) = (Instant::now(), |counter: &AtomicU64| _ = counter.fetch_add(1, Ordering::Relaxed));
        let found = |answer: Arc<Answer>| {
            count(&self.hits);
            Boarded::Kept(from_cache(&answer, start))
        };
        if let Some(answer) = self.answers.get(&key) {
            return found(answer);
        }
        if asker == Asker::Alone {
            count(&self.misses);
            return Boarded::Leader(Leader { kept: Arc::clone(self), key, number: None });
        }
        let is_search = asker == Asker::Search;
        let mut flights = self.lock();
        if flights.under_way.get(&key).is_some_and(|flight| flight.is_searched || !is_search) {
            count(&self.misses);
            count(&self.joined);
            return Boarded::Follower(Boarding { flights, key });
        }
        // A flight may have landed since the cache was read: its answer was kept before.
        if let Some(answer) = self.answers.peek(&key) {
            return found(answer);
        }
        count(&self.misses);
        let number = flights.lead(&key, is_search);
        Boarded::Leader(Leader { kept: Arc::clone(self), key, number: Some(number) })
    }
}

impl Flights {
    /// Makes a flight with a new leader, or gives one to a flight that is under way.
    fn lead(&mut self, key: &Key, is_searched: bool) -> u64 {
        self.leaders += 1;
        let leader = self.leaders;
        match self.under_way.get_mut(key) {
            Some(flight) => (flight.leader, flight.is_searched) = (leader, is_searched),
            None => _ = self.under_way.insert(key.clone(), Flight { leader, is_searched, followers: Vec::new() }),
        }
        leader
    }
}

impl Boarding<'_> {
    pub fn join(mut self, follower: Follower) {
        let flight = self.flights.under_way.get_mut(&self.key).expect("flights land under the lock that this holds");
        flight.followers.push(follower);
    }
}

impl Leader {
    /// Keeps the answer and gives it to the followers; `None` after an error.
    pub fn land(mut self, answer: Option<&Answer>) {
        let Some(answer) = answer else {
            return self.end(Landed::Failed);
        };
        let answer = Arc::new(Answer { hits: answer.hits.clone(), exact: answer.exact, ..Answer::default() });
        self.kept.answers.insert(self.key.clone(), Arc::clone(&answer));
        self.end(Landed::Answered(answer));
    }

    fn end(&mut self, landed: Landed) {
        let Some(number) = self.number.take() else {
            return;
        };
        let mut flights = self.kept.lock();
        // An answer is right for any flight of equal queries.
        let is_landed = |flight: &Flight| flight.leader == number || matches!(landed, Landed::Answered(_));
        if !flights.under_way.get(&self.key).is_some_and(is_landed) {
            return;
        }
        let flight = flights.under_way.remove(&self.key);
        drop(flights);
        for follower in flight.into_iter().flat_map(|flight| flight.followers) {
            // A waker that panics costs nobody else the answer.
            _ = catch_unwind(AssertUnwindSafe(|| follower(landed.clone())));
        }
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        self.end(Landed::Abandoned);
    }
}

/// An answer without its work, which was done for another query; `start` is when this one began to wait for it.
pub fn from_cache(answer: &Answer, start: Instant) -> Answer {
    let step = Step { name: "cache", place: Place::Cpu, started: start, duration: start.elapsed() };
    Answer {
        trace: Trace { arrived: Some(start), steps: vec![step] },
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

    fn lead(integrator: &Integrator, text: &str, asker: Asker) -> Leader {
        match integrator.board(&Query::new(text), asker) {
            Boarded::Leader(leader) => leader,
            _ => panic!("{asker:?} leads"),
        }
    }

    /// Lets a ticket follow, and returns where it learns how the flight ended.
    fn follow(integrator: &Integrator, text: &str) -> mpsc::Receiver<Landed> {
        let Boarded::Follower(boarding) = integrator.board(&Query::new(text), Asker::Ticket) else {
            panic!("a ticket follows");
        };
        let (sender, landed) = mpsc::channel();
        boarding.join(Box::new(move |landed| sender.send(landed).unwrap()));
        landed
    }

    fn keep(integrator: &Integrator, text: &str, answer: &Answer) {
        lead(integrator, text, Asker::Alone).land(Some(answer));
    }

    #[test]
    fn a_flight_tells_all_of_its_followers_once_how_it_ended() {
        let integrator = Integrator::new(1 << 20);
        for asker in [Asker::Ticket, Asker::Search] {
            let leader = lead(&integrator, "falcon", asker);
            let followers = [(); 3].map(|()| follow(&integrator, "falcon"));
            drop(leader);
            assert!(followers.iter().all(|landed| matches!(landed.recv(), Ok(Landed::Abandoned))));
            let leader = lead(&integrator, "falcon", asker);
            let followers = [(); 3].map(|()| follow(&integrator, "falcon"));
            leader.land(None);
            assert!(
                followers.iter().all(|landed| matches!(landed.recv(), Ok(Landed::Failed)) && landed.recv().is_err())
            );
        }
        let leader = lead(&integrator, "falcon", Asker::Ticket);
        let followers = [(); 3].map(|()| follow(&integrator, "falcon"));
        leader.land(Some(&answer(4)));
        for landed in followers {
            let Ok(Landed::Answered(landed)) = landed.recv() else { panic!("a follower has no answer") };
            assert_eq!(landed.hits, answer(4).hits);
        }
        assert!(matches!(integrator.board(&Query::new("falcon"), Asker::Ticket), Boarded::Kept(_)));
        assert_eq!(integrator.counters().joined, 15);
    }

    #[test]
    fn a_search_waits_for_no_ticket_but_answers_for_its_followers() {
        let integrator = Integrator::new(1 << 20);
        let ticket = lead(&integrator, "falcon", Asker::Ticket);
        let landed = follow(&integrator, "falcon");
        assert!(integrator.answer(&Query::new("falcon"), || Ok(answer(1))).is_ok());
        assert!(matches!(landed.try_recv(), Ok(Landed::Answered(_))));
        // The ticket's own end comes too late for anybody.
        drop(ticket);
        assert!(matches!(integrator.board(&Query::new("falcon"), Asker::Ticket), Boarded::Kept(_)));
    }

    #[test]
    fn a_leader_that_was_replaced_ends_the_flight_with_an_answer_alone() {
        let integrator = Integrator::new(1 << 20);
        let (cancelled, second) =
            (lead(&integrator, "falcon", Asker::Ticket), lead(&integrator, "heron", Asker::Ticket));
        let (falcon, heron) = (follow(&integrator, "falcon"), follow(&integrator, "heron"));
        let searches = ["falcon", "heron"].map(|text| lead(&integrator, text, Asker::Search));
        drop(cancelled);
        assert!(falcon.try_recv().is_err());
        second.land(Some(&answer(2)));
        assert!(matches!(heron.try_recv(), Ok(Landed::Answered(_))));
        drop(searches);
        assert!(matches!(falcon.try_recv(), Ok(Landed::Abandoned)) && heron.try_recv().is_err());
    }

    #[test]
    fn a_follower_that_panics_costs_no_other_its_answer() {
        let integrator = Integrator::new(1 << 20);
        let leader = lead(&integrator, "falcon", Asker::Ticket);
        let Boarded::Follower(boarding) = integrator.board(&Query::new("falcon"), Asker::Ticket) else { panic!() };
        boarding.join(Box::new(|_| panic!("a panic on command")));
        let landed = follow(&integrator, "falcon");
        leader.land(Some(&answer(1)));
        assert!(matches!(landed.try_recv(), Ok(Landed::Answered(_))));
    }

    #[test]
    fn who_asks_alone_finds_and_keeps_answers_without_flights() {
        let integrator = Integrator::new(1 << 20);
        let ticket = lead(&integrator, "falcon", Asker::Ticket);
        let landed = follow(&integrator, "falcon");
        keep(&integrator, "falcon", &answer(1));
        assert!(landed.try_recv().is_err());
        assert!(matches!(integrator.board(&Query::new("falcon"), Asker::Alone), Boarded::Kept(_)));
        drop((ticket, landed));
        let counters = integrator.counters();
        assert_eq!((counters.hits, counters.misses, counters.joined), (1, 3, 1));
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
            keep(&integrator, &format!("query {number}"), &answer(number));
        }
        assert!(integrator.counters().bytes <= 64 << 10);
        assert!(integrator.counters().bytes > 32 << 10);
    }

    #[test]
    fn without_memory_nothing_is_kept() {
        let integrator = Integrator::default();
        for number in 0..3 {
            assert!(matches!(integrator.board(&Query::new("falcon"), Asker::Ticket), Boarded::Passed));
            assert_eq!(
                integrator.answer(&Query::new("falcon"), || Ok(answer(number))).unwrap().hits,
                answer(number).hits
            );
        }
        assert_eq!(integrator.counters(), CacheCounters::default());
    }
}
