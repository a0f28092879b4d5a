//! What became of the queries of a run.

use super::answers::QuerySet;
use crate::error::{BenchError, Result};
use crate::machine::Usage;
use crate::result::Measurement;
use crate::statistics::Summary;
use lanner::Engine;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// A run whose senders sent 1 % of its queries later than this is flagged: its delays are longer than the engine's.
const LATE_US: f64 = 100.0;

/// What became of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Answered {
        /// From the scheduled arrival, or in a closed loop from the call, to the answer, in nanoseconds.
        delay: u64,
        /// Of its hits.
        hash: u64,
    },
    /// Refused, because the engine had too many queries.
    Busy,
    /// No answer in the time that the query was allowed.
    Deadline,
    /// An error that should not happen.
    Failed,
    /// No answer at all.
    Lost,
}

/// One query of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its number in the run.
    pub number: usize,
    /// When it was to arrive, in nanoseconds from the start.
    pub scheduled: u64,
    /// How much later it was sent, in nanoseconds.
    pub late: u64,
    pub outcome: Outcome,
}

/// A run.
#[derive(Clone, Debug)]
pub struct Load {
    /// In the order of their numbers.
    pub records: Vec<Record>,
    /// From the start until the last query was answered or refused.
    pub seconds: f64,
    /// From the start until the last query arrived.
    pub arriving_s: f64,
    /// Queries that the GPU answered.
    pub by_gpu: u64,
    /// Cores that this process kept busy, the senders included.
    pub busy_cores: f64,
}

/// What an engine and this process have done before a run.
pub struct Before {
    start: Instant,
    by_gpu: u64,
    faults: u64,
    usage: Usage,
}

impl Before {
    pub fn of(engine: &Engine) -> Before {
        let (by_gpu, faults) = gpu_counts(engine);
        Before { start: Instant::now(), by_gpu, faults, usage: Usage::now() }
    }

    /// Ends a run. It is an error if the device failed meanwhile, for the run then measured something else.
    pub fn finish(&self, engine: &Engine, mut records: Vec<Record>) -> Result<Load> {
        records.sort_unstable_by_key(|record| record.number);
        let (by_gpu, faults) = gpu_counts(engine);
        if faults > self.faults {
            let what = format!("the GPU failed, or left {} queries to the CPU", faults - self.faults);
            return Err(BenchError::Device { what });
        }
        let usage = Usage::now();
        let busy_s = usage.user_s + usage.system_s - self.usage.user_s - self.usage.system_s;
        let end_of = |record: &Record| match record.outcome {
            Outcome::Answered { delay, .. } => record.scheduled + delay,
            _ => record.scheduled + record.late,
        };
        let seconds = records.iter().map(end_of).max().unwrap_or(0) as f64 / 1e9;
        let arriving_s = records.iter().map(|record| record.scheduled).max().unwrap_or(0) as f64 / 1e9;
        let busy_cores = busy_s / self.start.elapsed().as_secs_f64();
        Ok(Load { records, seconds, arriving_s, by_gpu: by_gpu - self.by_gpu, busy_cores })
    }
}

/// Queries that the GPU has answered, and failures.
fn gpu_counts(engine: &Engine) -> (u64, u64) {
    let Some(counters) = engine.counters() else {
        return (0, 0);
    };
    let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    (count(&counters.answered), count(&counters.fallen_back) + count(&counters.failures))
}

impl Load {
    /// Fails if a query was lost, failed, or got another answer than on the CPU.
    pub fn check(&self, set: &QuerySet) -> Result<()> {
        for record in &self.records {
            match record.outcome {
                Outcome::Answered { hash, .. } if hash != set.hashes[record.number % set.len()] => {
                    return Err(set.wrong(record.number));
                }
                Outcome::Failed | Outcome::Lost => {
                    let query = &set.queries[record.number % set.len()].text;
                    let what = format!("query {} of the run ({query:?}) ended as {:?}", record.number, record.outcome);
                    return Err(BenchError::Device { what });
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn count(&self, is_it: impl Fn(Outcome) -> bool) -> usize {
        self.records.iter().filter(|record| is_it(record.outcome)).count()
    }

    pub fn answered(&self) -> usize {
        self.count(|outcome| matches!(outcome, Outcome::Answered { .. }))
    }

    /// Queries that were answered within some seconds from the start of the run.
    pub fn answered_within(&self, seconds: f64) -> usize {
        let end = (seconds * 1e9) as u64;
        let is_within = |record: &&Record| match record.outcome {
            Outcome::Answered { delay, .. } => record.scheduled + delay <= end,
            _ => false,
        };
        self.records.iter().filter(is_within).count()
    }

    pub fn refused(&self) -> usize {
        self.count(|outcome| outcome == Outcome::Busy)
    }

    /// The delays of answered queries in microseconds, of those that `is_wanted` by their numbers.
    pub fn delays_us(&self, is_wanted: impl Fn(usize) -> bool) -> Vec<f64> {
        let delay = |record: &Record| match record.outcome {
            Outcome::Answered { delay, .. } if is_wanted(record.number) => Some(delay as f64 / 1e3),
            _ => None,
        };
        self.records.iter().filter_map(delay).collect()
    }

    /// How much later than scheduled queries were sent, in microseconds.
    pub fn lateness(&self) -> Option<Summary> {
        summary(self.records.iter().map(|record| record.late as f64 / 1e3).collect())
    }

    /// Whether delays are partly the senders' own.
    pub fn is_late(&self) -> bool {
        self.lateness().is_some_and(|late| late.p99 > LATE_US)
    }

    /// Answered queries per second, until the last answer.
    pub fn rate(&self) -> f64 {
        self.answered() as f64 / self.seconds
    }

    /// Whether queries arrived faster than they were answered: more than one in a hundred was refused, or answering
    /// went on for more than a tenth of the run after the last one had arrived. Delays then depend on the length of the
    /// run.
    pub fn is_overloaded(&self) -> bool {
        100 * self.refused() > self.records.len() || self.seconds > 1.1 * self.arriving_s + 0.02
    }

    /// Adds what became of the queries.
    pub fn add_to(&self, row: Measurement) -> Measurement {
        let (answered, late) = (self.answered(), self.lateness());
        let row = with_delays(row, self.delays_us(|_| true))
            .with("queries", self.records.len() as f64)
            .with("answered", answered as f64)
            .with("refused", self.refused() as f64)
            .with("too_late", self.count(|outcome| outcome == Outcome::Deadline) as f64)
            .with("by_gpu", self.by_gpu as f64)
            .with("by_cpu", (answered as f64 - self.by_gpu as f64).max(0.0))
            .with("seconds", self.seconds)
            .with("answered_a_second", self.rate())
            .with("busy_cores", self.busy_cores)
            .with("is_overloaded", f64::from(u8::from(self.is_overloaded())));
        row.with("late_p99_us", late.map(|late| late.p99)).with("is_late", f64::from(u8::from(self.is_late())))
    }
}

/// Adds the percentiles of delays in microseconds; nothing if there are none.
pub fn with_delays(row: Measurement, delays: Vec<f64>) -> Measurement {
    let longest = delays.iter().copied().fold(0.0, f64::max);
    let Some(summary) = summary(delays) else {
        return row;
    };
    row.with("mean_us", summary.mean)
        .with("p50_us", summary.p50)
        .with("p95_us", summary.p95)
        .with("p99_us", summary.p99)
        .with("p999_us", summary.p999)
        .with("longest_us", longest)
}

fn summary(values: Vec<f64>) -> Option<Summary> {
    (!values.is_empty()).then(|| Summary::of(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(outcomes: &[(u64, Outcome)]) -> Load {
        let record = |(number, &(scheduled, outcome)): (usize, &(u64, Outcome))| Record {
            number,
            scheduled: scheduled * 1_000_000,
            late: 2000,
            outcome,
        };
        let records = outcomes.iter().enumerate().map(record).collect();
        Load { records, seconds: 0.5, arriving_s: 0.49, by_gpu: 1, busy_cores: 2.0 }
    }

    fn answered(delay_us: u64) -> Outcome {
        Outcome::Answered { delay: delay_us * 1000, hash: 1 }
    }

    #[test]
    fn refused_queries_have_no_delay() {
        let load = load(&[(0, answered(10)), (1, Outcome::Busy), (2, answered(30)), (3, Outcome::Deadline)]);
        let row = load.add_to(Measurement::default());
        let values = ["queries", "answered", "refused", "too_late", "by_gpu", "by_cpu"].map(|name| row.value(name));
        assert_eq!(values, [4.0, 2.0, 1.0, 1.0, 1.0, 1.0]);
        assert_eq!((row.value("mean_us"), row.value("longest_us")), (20.0, 30.0));
        assert_eq!((row.value("answered_a_second"), row.value("late_p99_us")), (4.0, 2.0));
        assert_eq!(row.value("is_late"), 0.0);
        assert_eq!(load.delays_us(|number| number == 2), [30.0]);
    }

    #[test]
    fn a_run_that_ends_long_after_the_last_arrival_was_overloaded() {
        let in_time = load(&[(490, answered(10))]);
        assert!(!in_time.is_overloaded());
        assert!(Load { seconds: 0.7, ..in_time.clone() }.is_overloaded());
        assert!(load(&[(0, answered(1)), (490, Outcome::Busy)]).is_overloaded());
    }

    #[test]
    fn a_run_without_answers_has_no_percentiles() {
        let row = load(&[(0, Outcome::Busy)]).add_to(Measurement::default());
        assert!(row.value("p99_us").is_nan() && row.value("refused") == 1.0);
    }
}
