//! Part `replay`: the engine's cache and well-known ones over the log, without a device. Which bytes would cross the bus?
//!
//! The half for tuning is replayed first, then that for reporting, which counts. Bytes are those that plans are predicted
//! to read in host memory, and those of the pieces that are copied to the device. All caches see the same visits of the
//! same pieces, and what they admit counts twice: it is read in host memory at that visit, and copied.

use super::cache_policies::{CachePolicy, Key, policies};
use super::setup::Setup;
use crate::error::Result;
use crate::experiments::Findings;
use crate::experiments::load::table;
use crate::suite::Lists;
use lanner::internals::executors::{Piece, Replay};
use lanner::internals::query::cost::{PlanTraffic, Traffic};
use lanner::{Index, Plan};
use lanner_index::open::Column;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Plans of a batch.
const BATCH: usize = 256;

/// Bytes of a replay.
#[derive(Clone, Copy, Default)]
struct Moved {
    read: f64,
    copied: f64,
}

/// A piece that a plan reads, and how much of it.
struct Visit {
    key: Key,
    bytes: u64,
    traffic: f64,
}

/// The plans of both halves of the log, and what they read.
struct Log {
    tuning: Vec<Plan>,
    reporting: Vec<Plan>,
    tuning_visits: Vec<Visit>,
    reporting_visits: Vec<Visit>,
}

pub fn run(setup: &Setup<'_>) -> Result<Findings> {
    let mut rows = Vec::new();
    let shares = setup.run.context.kept("lists", &setup.run.part.lists);
    for mode in setup.modes() {
        let plans = |texts: &[String]| setup.plans(texts, mode);
        let log = Log::new(&setup.index, plans(&setup.tuning)?, plans(&setup.reporting)?)?;
        for share in
            shares.iter().filter_map(|lists| if let Lists::Cached(percent) = lists { Some(percent) } else { None })
        {
            let capacity = (setup.list_bytes as f64 * share / 100.0) as u64;
            let lists = Lists::Cached(*share);
            let row = |policy: &str, moved: Moved| {
                let queries = log.reporting.len() as f64;
                let row = setup.measurement("replay", mode, &[("lists", &lists), ("policy", &policy)]);
                let row =
                    row.with("read_kb", moved.read / queries / 1e3).with("copied_kb", moved.copied / queries / 1e3);
                row.with("moved_kb", (moved.read + moved.copied) / queries / 1e3)
            };
            rows.push(row("lanner", log.over_own(&setup.index, capacity)));
            for (name, mut policy) in policies(capacity) {
                log.over(&log.tuning_visits, &mut *policy);
                let before = policy.copied();
                let read = log.over(&log.reporting_visits, &mut *policy);
                rows.push(row(name, Moved { read, copied: (policy.copied() - before) as f64 }));
            }
        }
    }
    let figures = [("read, kB per query", "read_kb"), ("copied", "copied_kb"), ("both", "moved_kb")];
    let table = table("Caches over the log", &rows, &["mode", "lists", "policy"], &figures).notes(&[&format!(
        "Bytes across the bus: predicted reads in host memory, and copies. The half for tuning comes first, and does not count. \
         What is not resident is read in host memory, and copied as well if the policy admits it. The engine's own cache \
         decides after every {BATCH} queries, the others at once."
    )]);
    Ok(Findings::new(rows).table(table))
}

impl Log {
    fn new(index: &Index, tuning: Vec<Plan>, reporting: Vec<Plan>) -> Result<Log> {
        let mut known = HashMap::new();
        let mut visits = |plans: &[Plan]| -> Result<Vec<Visit>> {
            let mut all = Vec::new();
            for plan in plans {
                add_visits(index, plan, &mut known, &mut all)?;
            }
            Ok(all)
        };
        let (tuning_visits, reporting_visits) = (visits(&tuning)?, visits(&reporting)?);
        Ok(Log { tuning, reporting, tuning_visits, reporting_visits })
    }

    fn over_own(&self, index: &Index, capacity: u64) -> Moved {
        let mut cache = Replay::new(index, capacity as usize);
        for batch in self.tuning.chunks(BATCH) {
            cache.run(batch);
        }
        let before = cache.report().copied_bytes;
        let read = self.reporting.chunks(BATCH).map(|batch| cache.run(batch)).sum();
        Moved { read, copied: (cache.report().copied_bytes - before) as f64 }
    }

    /// The bytes that are read of pieces that are not resident.
    fn over(&self, visits: &[Visit], policy: &mut dyn CachePolicy) -> f64 {
        visits.iter().map(|visit| if policy.visit(visit.key, visit.bytes) { 0.0 } else { visit.traffic }).sum()
    }
}

/// Adds what a plan reads. `known` has the bytes of the pieces of each list.
fn add_visits(
    index: &Index,
    plan: &Plan,
    known: &mut HashMap<usize, [u64; Piece::ALL.len()]>,
    visits: &mut Vec<Visit>,
) -> Result<()> {
    let (of_plan, column) = (PlanTraffic::of(plan), plan.score.column());
    for list in plan.lists.iter().filter(|list| list.span.is_long) {
        let start = list.span.start;
        let bytes = match known.entry(start) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                let layout = index.segment().layout_at(list.span)?;
                *entry.insert(Piece::ALL.map(|piece| piece.range(&layout, list.span.bytes()).len() as u64))
            }
        };
        for (piece, traffic) in pieces_of(&of_plan.of_list(list), column) {
            let visit = Visit { key: (start, piece as u8), bytes: bytes[piece as usize], traffic: f64::from(traffic) };
            if visit.bytes > 0 && visit.traffic > 0.0 {
                visits.push(visit);
            }
        }
    }
    Ok(())
}

/// What is read of each piece: those that the engine's cache is told of.
fn pieces_of(traffic: &Traffic, column: Column) -> [(Piece, f32); 7] {
    [
        (Piece::Directory, traffic.directory),
        (Piece::Blocks, traffic.blocks),
        (Piece::Ranks, traffic.ranks),
        (Piece::bounds(column), traffic.bounds),
        (Piece::Words, traffic.words),
        (Piece::values(column), traffic.values),
        (Piece::Exceptions, traffic.values / 16.0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanner::internals::query::planner::Planner;
    use lanner::{Document, IndexBuilder, Mode, Query};
    use std::path::Path;

    /// Two dense lists, some of whose frequencies do not fit their bits, and two sparse ones.
    fn index(folder: &Path) -> Index {
        let document = |number: usize| {
            let times = if number % 200 < 2 { 40 } else { 1 };
            let words = [("all", 1, times), ("half", 2, times), ("seldom", 50, 1), ("rare", 60, 1)];
            let words = words.into_iter().filter(|(_, step, _)| number.is_multiple_of(*step));
            let words: Vec<&str> = words.flat_map(|(word, _, times)| std::iter::repeat_n(word, times)).collect();
            Document::new(number.to_string()).field("text", words.join(" "))
        };
        IndexBuilder::new(folder).documents((0..20_000).map(document)).unwrap();
        Index::open(folder).unwrap()
    }

    #[test]
    fn caches_that_hold_nothing_read_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let index = index(folder.path());
        for mode in [Mode::Or, Mode::And] {
            let plan = |text: &str| Planner::new(&index).plan(&Query::new(text).mode(mode)).unwrap();
            let plans = ["all half", "all seldom", "seldom rare", "half rare all"].map(plan);
            // The engine's cache counts reads of pieces that a list does not have until it has looked for them.
            let log = Log::new(&index, [&plans[..], &plans, &plans].concat(), plans.to_vec()).unwrap();
            let own = log.over_own(&index, 0);
            assert!(own.read > 1000.0 && own.copied == 0.0, "{mode}: {} and {}", own.read, own.copied);
            for (name, mut policy) in policies(0) {
                assert_eq!(log.over(&log.reporting_visits, &mut *policy), own.read, "{name}, {mode}");
            }
        }
    }
}
