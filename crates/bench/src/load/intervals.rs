//! A run by intervals of time, for loads that change.

use super::outcomes::{Load, Outcome};
use crate::statistics::Summary;

/// The queries that arrived within an interval of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Its begin, in seconds from the start.
    pub start_s: f64,
    pub answered: usize,
    /// The 99th percentile of their delays in microseconds; NaN without answers.
    pub p99_us: f64,
}

/// A run is back to normal with the first of this many intervals in a row within the limit.
const IN_A_ROW: usize = 3;
/// The limit, as a multiple of the settled 99th percentile.
const LIMIT: f64 = 2.0;

/// Divides a run into intervals by scheduled arrival.
pub fn intervals(load: &Load, seconds: f64) -> Vec<Interval> {
    let mut delays: Vec<Vec<f64>> = Vec::new();
    for record in &load.records {
        let at = (record.scheduled as f64 / 1e9 / seconds) as usize;
        if delays.len() <= at {
            delays.resize_with(at + 1, Vec::new);
        }
        if let Outcome::Answered { delay, .. } = record.outcome {
            delays[at].push(delay as f64 / 1e3);
        }
    }
    let interval = |(at, delays): (usize, Vec<f64>)| Interval {
        start_s: at as f64 * seconds,
        answered: delays.len(),
        p99_us: if delays.is_empty() { f64::NAN } else { Summary::of(delays).p99 },
    };
    delays.into_iter().enumerate().map(interval).collect()
}

/// How long after the begin of a phase, whose intervals these are, delays were back to normal: from then on, the 99th
/// percentiles of three intervals in a row were at most twice the median of those in the second half of the phase, and
/// shorter than an interval of `seconds`: delays that are longer in all of the phase are not normal. A burst
/// of two intervals in a row above that limit, later in the first half of the phase, still belongs to the step. `None` if
/// delays never were back to normal.
pub fn recovery(phase: &[Interval], seconds: f64) -> Option<f64> {
    let known: Vec<&Interval> = phase.iter().filter(|interval| interval.answered > 0).collect();
    let mut settled: Vec<f64> = known[known.len() / 2..].iter().map(|interval| interval.p99_us).collect();
    settled.sort_by(f64::total_cmp);
    let limit = (LIMIT * settled.get(settled.len() / 2)?).min(seconds * 1e6);
    let is_settled = |from: &[&Interval]| from.iter().all(|interval| interval.p99_us <= limit);
    let first = known.windows(IN_A_ROW.min(known.len())).position(is_settled)?;
    // Queries that were accepted before the step may delay others later. In the second half, from which the limit comes,
    // delays have other causes.
    let is_disturbed = |pair: &[&Interval]| pair.iter().all(|interval| interval.p99_us > limit);
    let last = known[..known.len() / 2].windows(2).rposition(is_disturbed);
    let first = last.map_or(first, |last| first.max(last + 2));
    Some(known[first].start_s - known[0].start_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::outcomes::Record;

    #[test]
    fn percentiles_are_those_of_the_interval_in_which_a_query_arrived() {
        let record = |number: usize| Record {
            number,
            scheduled: number as u64 * 1_000_000,
            late: 0,
            // The second hundred take ten times as long, also beyond the end of their interval.
            outcome: Outcome::Answered { delay: if number < 100 { 10_000 } else { 100_000_000 }, hash: 0 },
        };
        let mut records: Vec<Record> = (0..200).map(record).collect();
        records.push(Record { scheduled: 450_000_000, outcome: Outcome::Busy, ..record(200) });
        let load = Load { records, seconds: 0.5, arriving_s: 0.45, by_gpu: 0, busy_cores: 1.0 };
        let found = intervals(&load, 0.1);
        assert_eq!(found.iter().map(|interval| interval.answered).collect::<Vec<_>>(), [100, 100, 0, 0, 0]);
        assert_eq!((found[0].p99_us, found[1].p99_us), (10.0, 100_000.0));
        assert!(found[4].p99_us.is_nan());
    }

    #[test]
    fn a_phase_has_recovered_when_its_delays_stay_normal() {
        let phase = |p99: &[f64]| -> Option<f64> {
            let interval = |(at, &p99_us): (usize, &f64)| Interval { start_s: 3.0 + at as f64, answered: 1, p99_us };
            recovery(&p99.iter().enumerate().map(interval).collect::<Vec<_>>(), 0.001)
        };
        assert_eq!(phase(&[10.0, 11.0, 9.0, 10.0]), Some(0.0));
        assert_eq!(phase(&[500.0, 90.0, 12.0, 15.0, 10.0, 11.0, 10.0]), Some(2.0));
        // One good interval between bad ones is no recovery.
        assert_eq!(phase(&[500.0, 10.0, 90.0, 10.0, 10.0, 10.0, 10.0, 10.0]), Some(3.0));
        assert_eq!(phase(&[10.0, 100.0, 10.0, 100.0, 10.0, 100.0, 10.0, 10.0]), None);
        // A burst that begins later, as in a queue that empties, counts; one interval does not, nor does the second half.
        let late = [10.0, 11.0, 10.0, 900.0, 800.0, 10.0, 10.0, 10.0, 10.0, 11.0, 10.0, 10.0];
        assert_eq!(phase(&late), Some(5.0));
        assert_eq!(phase(&[10.0, 11.0, 10.0, 900.0, 10.0, 11.0, 10.0, 10.0, 11.0, 10.0]), Some(0.0));
        assert_eq!(phase(&[10.0, 11.0, 10.0, 10.0, 11.0, 10.0, 900.0, 800.0, 10.0, 11.0]), Some(0.0));
        // Overloaded from begin to end.
        assert_eq!(phase(&[5000.0, 5100.0, 5000.0, 5200.0]), None);
        assert_eq!(phase(&[]), None);
    }
}
