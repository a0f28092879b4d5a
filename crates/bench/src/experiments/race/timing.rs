//! Times of one log, mode and k. The engines alternate; PISA runs with its best algorithms.

use super::Cell;
use super::contestant::Contestant;
use super::queries::{Class, QuerySet};
use crate::error::Result;
use crate::peers::{Overhead, Times};
use crate::result::{Label, Measurement};
use crate::statistics::{Spread, Summary, mean};
use crate::suite::{AnswerKind, PeersPart, RaceEngine};
use std::fmt::Display;

/// Algorithms are preselected on every tenth query.
const PILOT_STEP: usize = 10;
/// Algorithms within this factor of the lowest mean, for all queries or those of a class, are run on all queries.
const PILOT_MARGIN: f64 = 1.25;
/// Minimal number of runs of each engine.
const MIN_RUNS: usize = 2;

/// The times of one engine.
pub struct Timed {
    engine: String,
    algorithm: String,
    /// The name of the class of queries.
    terms: String,
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
    let timed = contestants.iter_mut().enumerate().filter(|(_, contestant)| contestant.times(cell.answer));
    for (at, contestant) in timed {
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
    // Only the times of document numbers are split by the number of terms.
    let classes = if cell.answer == AnswerKind::Documents { &set.classes[..] } else { &set.classes[..1] };
    let mut timed = Vec::new();
    for (class, (at, contestant)) in
        classes.iter().flat_map(|class| contestants.iter().enumerate().map(move |one| (class, one)))
    {
        let of_engine: Vec<&Entry> = entries.iter().filter(|entry| entry.contestant == at).collect();
        let name = contestant.engine.to_string();
        timed.extend(best(&of_engine, class, &name, Overhead::default()));
        if contestant.engine == RaceEngine::Pisa {
            timed.extend(best(&of_engine, class, &format!("{name}-net"), overhead(at)));
        }
    }
    Ok(timed)
}

/// Returns the algorithms that are worth a full run.
fn finalists(contestant: &mut Contestant, set: &QuerySet, cell: Cell) -> Result<Vec<String>> {
    let algorithms = contestant.algorithms(cell.mode);
    if algorithms.len() < 2 {
        return Ok(algorithms);
    }
    let mut times = Vec::new();
    for algorithm in &algorithms {
        // The first pass reads the lists into memory.
        contestant.pass(set, cell, algorithm, PILOT_STEP)?;
        times.push(contestant.pass(set, cell, algorithm, PILOT_STEP)?.us);
    }
    let is_final = near_the_best(&times, &set.classes);
    Ok(algorithms.into_iter().zip(is_final).filter(|(_, is_final)| *is_final).map(|(algorithm, _)| algorithm).collect())
}

/// Whether each algorithm is within the margin of the lowest mean, in any class; `times` are those of the pilot.
fn near_the_best(times: &[Vec<f64>], classes: &[Class]) -> Vec<bool> {
    let mut is_final = vec![false; times.len()];
    for class in classes {
        let pilot = class.queries.iter().filter(|&query| query % PILOT_STEP == 0).map(|query| query / PILOT_STEP);
        let pilot: Vec<usize> = pilot.collect();
        let means: Vec<f64> = times.iter().map(|us| mean(pilot.iter().map(|&query| us[query]))).collect();
        let least = means.iter().copied().fold(f64::INFINITY, f64::min);
        for (is_final, mean) in is_final.iter_mut().zip(means) {
            *is_final |= mean <= least * PILOT_MARGIN;
        }
    }
    is_final
}

/// Returns the best times of a class of queries over the algorithms of an engine, for each figure, minus an overhead.
fn best(entries: &[&Entry], class: &Class, engine: &str, overhead: Overhead) -> Option<Timed> {
    let net = |entry: &Entry| -> Vec<Vec<f64>> {
        let net_run = |run: &Times| {
            let net = |&query: &usize| {
                (run.us[query] - overhead.empty_us - run.rows[query] as f64 * overhead.row_us).max(0.0)
            };
            class.queries.iter().map(net).collect()
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
    Some(Timed { engine: engine.to_owned(), algorithm, terms: class.name.clone(), runs, summary, means })
}

impl Timed {
    pub fn measurement(&self, collection: &str, log: &str, cell: Cell) -> Measurement {
        let mut labels: Vec<Label<'_>> = vec![("collection", &collection), ("log", &log), ("answer", &cell.answer)];
        labels.extend([("mode", &cell.mode as &dyn Display), ("k", &cell.k), ("terms", &self.terms)]);
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

    fn class(queries: &[usize]) -> Class {
        Class { name: "all".to_owned(), queries: queries.to_vec() }
    }

    #[test]
    fn the_time_of_a_query_is_the_median_of_its_runs_minus_the_overhead() {
        let one = entry("a", &[&[10.0, 20.0], &[12.0, 90.0], &[11.0, 21.0]], 4);
        let timed = best(&[&one], &class(&[0, 1]), "pisa-net", Overhead { empty_us: 1.0, row_us: 0.5 }).unwrap();
        assert_eq!((timed.summary.mean, timed.summary.p99, timed.runs), ((8.0 + 18.0) / 2.0, 18.0, 3));
    }

    #[test]
    fn an_algorithm_that_is_fast_in_one_class_is_run_on_all_queries() {
        let times = [vec![1.0, 90.0], vec![10.0, 10.0], vec![2.0, 80.0]];
        assert_eq!(near_the_best(&times, &[class(&[0, 10])]), [false, true, false]);
        assert_eq!(near_the_best(&times, &[class(&[0, 10]), class(&[0, 1])]), [true, true, false]);
    }

    #[test]
    fn the_best_algorithm_is_taken_for_each_figure() {
        let (steady, spiky) = (entry("steady", &[&[10.0, 10.0]], 0), entry("spiky", &[&[1.0, 15.0]], 0));
        let timed = best(&[&steady, &spiky], &class(&[0, 1]), "pisa", Overhead::default()).unwrap();
        assert_eq!((timed.algorithm.as_str(), timed.summary.mean, timed.summary.p99), ("spiky", 8.0, 10.0));
        let timed = best(&[&steady, &spiky], &class(&[1]), "pisa", Overhead::default()).unwrap();
        assert_eq!((timed.algorithm.as_str(), timed.summary.mean, timed.summary.count), ("steady", 10.0, 1));
    }
}
