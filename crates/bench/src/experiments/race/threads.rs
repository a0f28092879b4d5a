//! Throughput of batches on several threads; each thread answers one query at a time.

use super::queries::QuerySet;
use super::setup::Setup;
use super::tables::holds;
use super::{Findings, Race};
use crate::error::Result;
use crate::result::{Label, Measurement};
use crate::statistics::Spread;
use crate::table::{DASH, Table, number};
use lanner::{Mode, Query, Searcher};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// Minimal duration of a run: shorter ones are repeated within it.
const MIN_SECONDS: f64 = 0.1;
/// Runs of each number of threads per repetition of the suite. Short runs alternate and each is compared with its
/// neighbour, so that other load affects both.
const ROUNDS: usize = 3;

/// Measures batches of every log and mode for the smallest k.
pub fn run(race: &Race<'_>, setup: &Setup, sets: &[QuerySet]) -> Result<Findings> {
    let searcher = Searcher::open(&setup.lanner.default)?;
    let k = race.part.k.iter().copied().min().unwrap_or(10);
    let counts = &race.part.threads;
    let header = |&threads: &usize| format!("{threads} thread{}", if threads == 1 { "" } else { "s" });
    let headers: Vec<String> = counts.iter().map(header).collect();
    let columns = ["log", "mode"].into_iter().chain(headers.iter().map(String::as_str));
    let columns: Vec<&str> = columns.chain(["x one thread", "at least", "holds"]).collect();
    let title = format!("{}: queries per second of batches, k {k}", setup.name);
    let (mut rows, mut table) = (Vec::new(), Table::new(title, 2, &columns));
    for set in sets {
        for mode in race.modes() {
            let rates = rates(race, &searcher, set, (mode, k))?;
            let labels: [Label<'_>; 3] = [("collection", &setup.name), ("log", &set.name), ("mode", &mode)];
            let mut measurement = Measurement::new("threads", &labels).with("k", k as f64);
            for (threads, rate) in &rates.rates {
                measurement = measurement.with(&format!("queries_a_second_{threads}"), *rate);
            }
            let of = |threads: usize| rates.rates.get(&threads).copied().unwrap_or(f64::NAN);
            let has_both = counts.contains(&1) && counts.contains(&2);
            measurement = measurement.with("one_of_two", has_both.then(|| 1.0 / rates.gain(2)));
            let cells = counts.iter().map(|&threads| number(of(threads)));
            let gain = number(counts.iter().max().map_or(f64::NAN, |&most| rates.gain(most)));
            let limit = race.context.suite.limit(&measurement, "one_of_two");
            let judged = holds(&[("two threads".to_owned(), measurement.value("one_of_two"), limit)]);
            let gains = [gain, limit.map_or(DASH.to_owned(), |limit| number(1.0 / limit)), judged];
            table.row([set.name.clone(), mode.to_string()].into_iter().chain(cells).chain(gains));
            rows.push(measurement);
        }
    }
    Ok(Findings::new(rows).table(table))
}

/// Queries per second by the number of threads.
struct Rates {
    /// Medians of the runs.
    rates: BTreeMap<usize, f64>,
    runs: BTreeMap<usize, Vec<f64>>,
}

impl Rates {
    /// Returns the median ratio of a run to the run of one thread next to it.
    fn gain(&self, threads: usize) -> f64 {
        let (Some(alone), Some(together)) = (self.runs.get(&1), self.runs.get(&threads)) else { return f64::NAN };
        Spread::of(alone.iter().zip(together).map(|(alone, together)| together / alone)).median
    }
}

/// Measures each number of threads; the numbers alternate.
fn rates(race: &Race<'_>, searcher: &Searcher, set: &QuerySet, (mode, k): (Mode, usize)) -> Result<Rates> {
    let queries: Vec<Query> = set.texts.iter().map(|text| Query::new(text.clone()).mode(mode).k(k)).collect();
    let searcher_of = |threads| Searcher::new(Arc::clone(searcher.index())).threads(threads);
    let searchers: Vec<(usize, Searcher)> =
        race.part.threads.iter().map(|&threads| (threads, searcher_of(threads))).collect();
    let mut runs: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for _ in 0..race.part.repetitions * ROUNDS {
        for (threads, searcher) in &searchers {
            let (start, mut answered) = (Instant::now(), 0);
            while answered == 0 || start.elapsed().as_secs_f64() < MIN_SECONDS.min(race.part.seconds) {
                answered += std::hint::black_box(searcher.search_batch(&queries)?).len().max(1);
            }
            runs.entry(*threads).or_default().push(answered as f64 / start.elapsed().as_secs_f64());
        }
    }
    let rates = runs.iter().map(|(&threads, runs)| (threads, Spread::of(runs.iter().copied()).median)).collect();
    Ok(Rates { rates, runs })
}
