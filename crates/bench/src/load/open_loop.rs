//! An open loop: each query is sent at its scheduled moment, whatever became of those before it.

use super::answers::hash_of;
use super::nanoseconds;
use super::outcomes::{Before, Load, Outcome, Record};
use crate::error::Result;
use lanner::answer::Pending;
use lanner::{Answer, Engine, Query, SearchError};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// Time for all senders to be ready before the first arrival.
const READY: Duration = Duration::from_millis(2);
/// A sender sleeps until this long before an arrival: the operating system may wake it later than asked.
const WAKE_EARLY: Duration = Duration::from_micros(500);
/// Closer to an arrival than this, a sender only looks at the clock.
const SPIN: Duration = Duration::from_micros(20);
/// A query that has no answer when none has come for this long is lost.
const PATIENCE: Duration = Duration::from_secs(20);
/// No answer yet.
const NEVER: u64 = u64::MAX;

/// How a sender asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// [`Engine::submit`]: the sender does not wait, and any number of queries can be under way.
    Submit,
    /// [`Engine::search`]: the sender answers the query itself or waits for the GPU, so that at most one query of each
    /// sender is under way. For loads so light that queries hardly meet.
    Search,
}

/// A load at scheduled moments.
pub struct OpenLoop<'a> {
    pub engine: &'a Engine,
    pub queries: &'a [Query],
    /// Threads that send queries. Each takes every n-th of them.
    pub senders: usize,
    pub way: Way,
}

/// A query under way. The engine records the moment of its answer by waking.
pub struct Sent {
    pub number: usize,
    pub scheduled: u64,
    pub late: u64,
    pending: Pending,
    answered: Arc<Answered>,
}

/// When a query was answered, in nanoseconds from the start of the run; or [`NEVER`].
struct Answered {
    start: Instant,
    at: AtomicU64,
}

impl Wake for Answered {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.at.store(nanoseconds(self.start), Ordering::Release);
    }
}

impl OpenLoop<'_> {
    /// Sends queries at their arrivals, in nanoseconds from the start, and waits for all answers.
    pub fn run(&self, arrivals: &[u64]) -> Result<Load> {
        let before = Before::of(self.engine);
        let start = Instant::now() + READY;
        let records = std::thread::scope(|scope| {
            let send = |first: usize| {
                let numbers = (first..arrivals.len()).step_by(self.senders);
                move || Sender::new(self, start).run(numbers.map(|number| (number, arrivals[number])))
            };
            let threads: Vec<_> = (0..self.senders).map(|first| scope.spawn(send(first))).collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("a sender does not panic")).collect()
        });
        before.finish(self.engine, records)
    }
}

/// A thread that sends queries.
struct Sender<'a> {
    open: &'a OpenLoop<'a>,
    start: Instant,
    under_way: VecDeque<Sent>,
    records: Vec<Record>,
}

impl<'a> Sender<'a> {
    fn new(open: &'a OpenLoop<'a>, start: Instant) -> Sender<'a> {
        Sender { open, start, under_way: VecDeque::new(), records: Vec::new() }
    }

    fn run(mut self, arrivals: impl Iterator<Item = (usize, u64)>) -> Vec<Record> {
        for (number, scheduled) in arrivals {
            self.wait_until(self.start + Duration::from_nanos(scheduled));
            self.send(number, scheduled);
        }
        drain(&mut self.under_way, &mut self.records);
        self.records
    }

    /// Takes answers while there is time, then waits.
    fn wait_until(&mut self, due: Instant) {
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            if left < SPIN {
                std::hint::spin_loop();
            } else if take(&mut self.under_way, &mut self.records) {
            } else if left > 2 * WAKE_EARLY {
                std::thread::sleep(left - WAKE_EARLY);
            } else {
                std::thread::yield_now();
            }
        }
    }

    fn send(&mut self, number: usize, scheduled: u64) {
        let OpenLoop { engine, queries, way, .. } = self.open;
        let query = &queries[number % queries.len()];
        let late = nanoseconds(self.start).saturating_sub(scheduled);
        let ended = match way {
            Way::Search => {
                let answer = engine.search(query);
                outcome(&answer, nanoseconds(self.start).saturating_sub(scheduled))
            }
            Way::Submit => match Sent::new(engine.submit(query.clone()), self.start, (number, scheduled, late)) {
                Ok(sent) => return self.under_way.push_back(sent),
                Err(outcome) => outcome,
            },
        };
        self.records.push(Record { number, scheduled, late, outcome: ended });
    }
}

impl Sent {
    /// A query that was submitted, with its number, its scheduled arrival and how late it was sent; the outcome if
    /// there is one already.
    pub fn new(
        submitted: Result<Pending, SearchError>,
        start: Instant,
        (number, scheduled, late): (usize, u64, u64),
    ) -> Result<Sent, Outcome> {
        let mut pending = submitted.map_err(|error| outcome(&Err(error), 0))?;
        let answered = Arc::new(Answered { start, at: AtomicU64::new(NEVER) });
        let waker = Waker::from(Arc::clone(&answered));
        match Pin::new(&mut pending).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(answer) => Err(outcome(&answer, nanoseconds(start).saturating_sub(scheduled))),
            Poll::Pending => Ok(Sent { number, scheduled, late, pending, answered }),
        }
    }

    /// What became of it, if it has ended.
    fn outcome(&mut self) -> Option<Outcome> {
        let at = self.answered.at.load(Ordering::Acquire);
        if at == NEVER {
            return None;
        }
        match Pin::new(&mut self.pending).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Some(outcome(&answer, at.saturating_sub(self.scheduled))),
            Poll::Pending => None,
        }
    }
}

/// Takes the answer to the oldest query, if it is there. Answers may come in any order; this only delays their taking.
pub fn take(under_way: &mut VecDeque<Sent>, records: &mut Vec<Record>) -> bool {
    let Some((sent, outcome)) = under_way.front_mut().and_then(|sent| sent.outcome().map(|outcome| (sent, outcome)))
    else {
        return false;
    };
    let Sent { number, scheduled, late, .. } = *sent;
    records.push(Record { number, scheduled, late, outcome });
    under_way.pop_front();
    true
}

/// Waits for the answers to all queries under way; those that do not come are lost.
pub fn drain(under_way: &mut VecDeque<Sent>, records: &mut Vec<Record>) {
    let mut last = Instant::now();
    while !under_way.is_empty() && last.elapsed() < PATIENCE {
        if take(under_way, records) {
            last = Instant::now();
        } else {
            std::thread::sleep(Duration::from_micros(50));
        }
    }
    let lost = |Sent { number, scheduled, late, .. }| Record { number, scheduled, late, outcome: Outcome::Lost };
    records.extend(under_way.drain(..).map(lost));
}

pub fn outcome(answer: &Result<Answer, SearchError>, delay: u64) -> Outcome {
    match answer {
        Ok(answer) => {
            let hash = hash_of(answer.hits.iter().map(|hit| (hit.document, hit.units)));
            Outcome::Answered { delay, hash }
        }
        Err(SearchError::Busy { .. }) => Outcome::Busy,
        Err(SearchError::Deadline { .. }) => Outcome::Deadline,
        Err(_) => Outcome::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::answers::{QuerySet, Questions};
    use crate::load::closed_loop::ClosedLoop;
    use crate::load::{Phase, RunLength, poisson};
    use lanner::{Document, IndexBuilder, Mode, ScoreModel};
    use tempfile::TempDir;

    fn engine() -> (TempDir, Engine, QuerySet) {
        let folder = tempfile::tempdir().unwrap();
        let document = |number: usize| {
            let words =
                ["falcon", "heron", "water"].iter().zip([2, 3, 5]).filter(|(_, step)| number.is_multiple_of(*step));
            Document::new(number.to_string()).field("text", words.map(|(word, _)| *word).collect::<Vec<_>>().join(" "))
        };
        IndexBuilder::new(folder.path()).documents((1..400).map(document)).unwrap();
        let engine = Engine::open(folder.path()).unwrap().threads(2);
        let texts = ["falcon heron", "water", "heron water falcon"].map(str::to_owned);
        let questions = Questions { mode: Mode::Or, k: 5, score: ScoreModel::Bm25 };
        let set = QuerySet::new(engine.index(), &texts, questions, 1).unwrap();
        (folder, engine, set)
    }

    #[test]
    fn every_query_of_an_open_loop_is_answered_and_checked() {
        let (_folder, engine, mut set) = engine();
        let arrivals = poisson(&[Phase { rate: 5000.0, seconds: 0.1 }], 10, 1);
        for way in [Way::Submit, Way::Search] {
            let open = OpenLoop { engine: &engine, queries: &set.queries, senders: 2, way };
            let load = open.run(&arrivals).unwrap();
            assert_eq!(load.answered(), arrivals.len());
            load.check(&set).unwrap();
            assert!(load.records.iter().zip(&arrivals).all(|(record, &at)| record.scheduled == at));
            assert!(load.seconds >= load.arriving_s && load.by_gpu == 0);
        }
        set.hashes[1] ^= 1;
        let open = OpenLoop { engine: &engine, queries: &set.queries, senders: 1, way: Way::Submit };
        let error = open.run(&arrivals).unwrap().check(&set).unwrap_err().to_string();
        assert!(error.contains("\"water\""), "{error}");
    }

    #[test]
    fn delays_count_from_the_scheduled_arrival() {
        let (_folder, engine, set) = engine();
        // All are due at the start; a single sender sends them one after the other.
        let open = OpenLoop { engine: &engine, queries: &set.queries, senders: 1, way: Way::Search };
        let load = open.run(&[0; 200]).unwrap();
        let delay = |record: &Record| match record.outcome {
            Outcome::Answered { delay, .. } => delay,
            other => panic!("{other:?}"),
        };
        assert!(load.records.windows(2).all(|pair| delay(&pair[0]) <= pair[1].late && pair[1].late <= delay(&pair[1])));
    }

    #[test]
    fn refused_queries_are_counted() {
        let (_folder, engine, set) = engine();
        let engine = engine.queue(1);
        let open = OpenLoop { engine: &engine, queries: &set.queries, senders: 1, way: Way::Submit };
        let load = open.run(&[0; 2000]).unwrap();
        load.check(&set).unwrap();
        assert!(load.refused() > 0 && load.answered() > 0, "{} refused", load.refused());
        assert_eq!(load.refused() + load.answered(), 2000);
    }

    #[test]
    fn a_closed_loop_asks_for_as_long_as_it_is_told() {
        let (_folder, engine, set) = engine();
        let closed =
            ClosedLoop { engine: &engine, set: &set, length: RunLength { seconds: 0.05, longest_s: 0.05, queries: 0 } };
        for load in [closed.clients(2).unwrap(), closed.submitted(1, 8).unwrap()] {
            assert!(load.answered() > 3 && load.answered() == load.records.len());
            assert!((0.05..5.0).contains(&load.seconds), "{}", load.seconds);
        }
    }
}
