//! Times of one log, mode and k. The engines alternate; PISA runs with its best algorithms.

use super::contestant::Contestant;
use super::{Cell, QuerySet};
use crate::error::Result;
use crate::peers::{Overhead, Times};
use crate::result::{Label, Measurement};
use crate::statistics::{Spread, Summary, mean};
use crate::suite::{PeersPart, RaceEngine};
use std::fmt::Display;

/// Algorithms are preselected on every tenth query.
const PILOT_STEP: usize = 10;
/// Algorithms within this factor of the lowest mean are run on all queries.
const PILOT_MARGIN: f64 = 1.25;
/// Minimal number of runs of each engine.
const MIN_RUNS: usize = 2;

/// The times of one engine.
pub struct Timed {
    engine: String,
    algorithm: String,
    runs: usize,
    /// Summary over queries, each with the median of its runs; the lowest of each figure with several algorithms.
    summary: Summary,
    /// Means of the runs.
    means: Spread,
}

/// An algorithm of an engine and its runs so far.
struct Entry {
    contestant: usize,
    algorithm: String,
    runs: Vec<Times>,
}

/// Times every engine that supports the mode.
pub fn run(
    part: &PeersPart,
    contestants: &mut [Contestant],
    (set, cell): (&QuerySet, Cell),
    overhead: &dyn Fn(usize) -> Overhead,
) -> Result<Vec<Timed>> {
    let mut entries = Vec::new();
    for (at, contestant) in contestants.iter_mut().enumerate() {
        let algorithms = finalists(contestant, set, cell)?.into_iter();
        entries.extend(algorithms.map(|algorithm| Entry { contestant: at, algorithm, runs: Vec::new() }));
    }
    for repetition in 0..part.repetitions {
        for turn in 0..entries.len() {
            let at = (turn + repetition) % entries.len();
            let entry = &mut entries[at];
            let spent: f64 = entry.runs.iter().flat_map(|run| &run.us).sum::<f64>() / 1e6;
            if repetition < MIN_RUNS || spent < part.seconds {
                entry.runs.push(contestants[entry.contestant].pass(set, cell, &entry.algorithm, 1)?);
            }
        }
    }
    let mut timed = Vec::new();
    for (at, contestant) in contestants.iter().enumerate() {
        let of_engine: Vec<&Entry> = entries.iter().filter(|entry| entry.contestant == at).collect();
        let name = contestant.engine.to_string();
        timed.extend(best(&of_engine, &name, Overhead::default()));
        if contestant.engine == RaceEngine::Pisa {
            timed.extend(best(&of_engine, &format!("{name}-net"), overhead(at)));
        }
    }
    Ok(timed)
}

/// Returns the algorithms that are worth a full run.
fn finalists(contestant: &mut Contestant, set: &QuerySet, cell: Cell) -> Result<Vec<String>> {
    let algorithms = contestant.algorithms(cell.0);
    if algorithms.len() < 2 {
        return Ok(algorithms);
    }
    let mut means = Vec::new();
    for algorithm in &algorithms {
        means.push(mean(contestant.pass(set, cell, algorithm, PILOT_STEP)?.us));
    }
    let least = means.iter().copied().fold(f64::INFINITY, f64::min);
    let pairs = algorithms.into_iter().zip(means);
    Ok(pairs.filter(|(_, mean)| *mean <= least * PILOT_MARGIN).map(|(algorithm, _)| algorithm).collect())
}

/// Returns the best times over the algorithms of an engine, for each figure, minus an overhead.
fn best(entries: &[&Entry], engine: &str, overhead: Overhead) -> Option<Timed> {
    let net = |entry: &Entry| -> Vec<Vec<f64>> {
        let net_run = |run: &Times| {
            let pairs = run.us.iter().zip(&run.rows);
            pairs.map(|(us, &rows)| (us - overhead.empty_us - rows as f64 * overhead.row_us).max(0.0)).collect()
        };
        entry.runs.iter().map(net_run).collect()
    };
    let figures = |entry: &&Entry| {
        let runs = net(entry);
        let means = Spread::of(runs.iter().map(|run| mean(run.iter().copied())));
        let queries = runs.first().map_or(0, Vec::len);
        let of_query = |at: usize| Spread::of(runs.iter().map(|run| run[at])).median;
        let summary = Summary::of((0..queries).map(of_query));
        (summary, means, entry.algorithm.clone(), runs.len())
    };
    let mut all: Vec<_> = entries.iter().filter(|entry| !entry.runs.is_empty()).map(figures).collect();
    all.sort_by(|one, other| one.0.mean.total_cmp(&other.0.mean));
    let (mut summary, means, algorithm, runs) = all.first().cloned()?;
    for (other, ..) in &all {
        summary.p50 = summary.p50.min(other.p50);
        summary.p95 = summary.p95.min(other.p95);
        summary.p99 = summary.p99.min(other.p99);
    }
    Some(Timed { engine: engine.to_owned(), algorithm, runs, summary, means })
}

impl Timed {
    pub fn measurement(&self, collection: &str, log: &str, (mode, k): Cell) -> Measurement {
        let mut labels: Vec<Label<'_>> = vec![("collection", &collection), ("log", &log), ("mode", &mode), ("k", &k)];
        labels.push(("engine", &self.engine));
        labels.extend((!self.algorithm.is_empty()).then_some(("algorithm", &self.algorithm as &dyn Display)));
        let mean = Spread { median: self.summary.mean, ..self.means };
        Measurement::new("race", &labels)
            .with("queries", self.summary.count as f64)
            .with("runs", self.runs as f64)
            .with_spread(["mean_us", "mean_least_us", "mean_most_us"], mean)
            .with("p50_us", self.summary.p50)
            .with("p95_us", self.summary.p95)
            .with("p99_us", self.summary.p99)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(algorithm: &str, runs: &[&[f64]], rows: usize) -> Entry {
        let times = |us: &&[f64]| Times { us: us.to_vec(), rows: vec![rows; us.len()] };
        Entry { contestant: 0, algorithm: algorithm.to_owned(), runs: runs.iter().map(times).collect() }
    }

    #[test]
    fn the_time_of_a_query_is_the_median_of_its_runs_minus_the_overhead() {
        let one = entry("a", &[&[10.0, 20.0], &[12.0, 90.0], &[11.0, 21.0]], 4);
        let timed = best(&[&one], "pisa-net", Overhead { empty_us: 1.0, row_us: 0.5 }).unwrap();
        assert_eq!((timed.summary.mean, timed.summary.p99, timed.runs), ((8.0 + 18.0) / 2.0, 18.0, 3));
    }

    #[test]
    fn the_best_algorithm_is_taken_for_each_figure() {
        let (steady, spiky) = (entry("steady", &[&[10.0, 10.0]], 0), entry("spiky", &[&[1.0, 15.0]], 0));
        let timed = best(&[&steady, &spiky], "pisa", Overhead::default()).unwrap();
        assert_eq!((timed.algorithm.as_str(), timed.summary.mean, timed.summary.p99), ("spiky", 8.0, 10.0));
    }
}
