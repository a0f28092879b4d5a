//! Batches of intersections: cut by their amount of work, run by PARA and PART, checked and timed.

use crate::error::{BenchError, Result};
use crate::experiments::Say;
use crate::experiments::gpu::decode::STREAM;
use crate::reproduce::setup::{Setup, Timed, bytes_of, check, list_numbers};
use crate::result::Measurement;
use crate::statistics::{Spread, mean};
use crate::table::number;
use lanner::internals::papers::batched_intersection::{Batch, Threshold, batches};
use lanner::internals::papers::compaction::{DeviceList, THREADS};
use lanner::internals::papers::{binary_intersection, merge_path};
use lanner::internals::query::answer::Scored;
use lanner::{Mode, Plan};
use lanner_gpu::device::{Address, Command};
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::{Memory, Pinned};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub const PARA: &str = "PARA";
pub const PART: &str = "PART";
pub const OURS: &str = "ours, AND, top 10";

/// The thresholds. PART is slow with few queries, so it runs only where the paper's Table II starts.
const THRESHOLDS: [u32; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
const MIN_OF_PART: u32 = 32;
/// From this ratio of lengths on, the reference searches the longer list instead of merging.
const SEARCH_RATIO: usize = 32;
/// A pass that takes longer is not repeated.
const SLOW_SECONDS: f64 = 2.0;

/// A query with its lists on the device, and their intersection.
struct Query {
    lists: Vec<DeviceList>,
    /// Length of the shortest list.
    load: u32,
    expected: Vec<u32>,
    plan: Plan,
    hits: Vec<Scored>,
}

struct Work<'a> {
    setup: &'a Setup,
    queries: Vec<Query>,
    _lists: BTreeMap<u64, Memory>,
}

/// Scratch buffers for the largest batch of a pass.
struct Scratch {
    device: Memory,
    host: Pinned,
}

/// The time of a batch in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct BatchTime {
    queries: usize,
    /// From queries to results on the host.
    whole: f64,
    kernel: f64,
    cpu: f64,
}

/// Measures PARA, PART with the same mean batch size, and Lanner's executor, for every threshold.
pub fn measure(setup: &Setup, say: Say<'_>) -> Result<Vec<Measurement>> {
    say("decoding and uploading the lists of the queries");
    let work = Work::prepare(setup)?;
    let loads: Vec<u32> = work.queries.iter().map(|query| query.load).collect();
    let thresholds = if setup.is_simulated() { vec![1, MIN_OF_PART] } else { THRESHOLDS.to_vec() };
    let mut rows = Vec::new();
    for b in thresholds {
        let multiprocessors = setup.gpu.properties().multiprocessors;
        let threshold = Threshold { multiprocessors, threads: THREADS, blocks: b };
        let of_para = batches(&loads, threshold.documents());
        let size = work.queries.len().div_ceil(of_para.len());
        let of_size: Vec<Range<usize>> =
            (0..work.queries.len()).step_by(size).map(|at| at..work.queries.len().min(at + size)).collect();
        rows.extend(work.rows(PARA, b, &of_para)?);
        if b >= MIN_OF_PART {
            rows.extend(work.rows(PART, b, &of_size)?);
        }
        rows.extend(work.rows(OURS, b, &of_size)?);
    }
    Ok(rows)
}

/// Describes the measurement, for the notes of tables.
pub fn note(setup: &Setup, rows: &[Measurement]) -> String {
    let (note, multiprocessors) = (setup.note(), setup.gpu.properties().multiprocessors);
    let (queries, load) = (rows[0].count("queries"), number(rows[0].value("shortest")));
    format!(
        "{note} {queries} queries of the log with at least two terms; their shortest lists have {load} documents on \
         average. PARA and PART find all documents that are in all lists, which are plain numbers on the device, and \
         download them; memory is allocated before. A threshold is S x T x B documents of shortest lists, here \
         {multiprocessors} x {THREADS} x B. PART has as many queries per batch as PARA on average, sorted by the \
         magnitude of their shortest lists. Ours is Lanner's executor with the same number of queries per batch: it \
         reads packed lists, scores, and returns the best 10."
    )
}

impl Work<'_> {
    fn prepare(setup: &Setup) -> Result<Work<'_>> {
        let texts: Vec<String> = setup.work.texts.iter().filter(|text| text.contains(' ')).cloned().collect();
        let plans = setup.plan(&texts, Mode::And, 10)?;
        let hits = setup.hits(&plans)?;
        let documents = setup.decode(plans.iter().flat_map(list_numbers))?;
        let upload = |(&number, list): (&u64, &Arc<Vec<u32>>)| Ok((number, setup.upload(&bytes_of(list))?));
        let memories = documents.iter().map(upload).collect::<Result<BTreeMap<u64, Memory>, GpuError>>()?;
        // The numbers of the lists of a plan, the shortest first.
        let sorted = |plan: &Plan| {
            let mut numbers: Vec<u64> = list_numbers(plan).collect();
            numbers.sort_by_key(|number| documents[number].len());
            numbers
        };
        let intersect = |plan: &Plan| {
            let lists: Vec<&[u32]> = sorted(plan).iter().map(|number| documents[number].as_slice()).collect();
            intersection_of(&lists)
        };
        let expected: Vec<Vec<u32>> = plans.par_iter().map(intersect).collect();
        let mut queries = Vec::new();
        for ((plan, hits), expected) in plans.into_iter().zip(hits).zip(expected) {
            let list = |number: &u64| DeviceList {
                documents: memories[number].address(),
                length: documents[number].len() as u32,
            };
            // Not sorted: sorting is the CPU's share of a batch.
            let lists: Vec<DeviceList> = sorted(&plan).iter().rev().map(list).collect();
            let load = lists.iter().map(|list| list.length).min().unwrap_or(0);
            queries.push(Query { lists, load, expected, plan, hits });
        }
        if queries.is_empty() {
            let what = "no query of the log has two terms; take more queries with --count";
            return Err(BenchError::Usage(what.to_owned()));
        }
        Ok(Work { setup, queries, _lists: memories })
    }

    /// Runs all batches several times, and describes the median run.
    fn rows(&self, algorithm: &str, b: u32, batches: &[Range<usize>]) -> Result<Vec<Measurement>> {
        let scratch = if algorithm == OURS { None } else { Some(self.scratch(batches)?) };
        let pass = || {
            let run = |batch: &Range<usize>| match &scratch {
                Some(scratch) => self.run(algorithm, &self.queries[batch.clone()], scratch),
                None => self.answer(&self.queries[batch.clone()]),
            };
            batches.iter().map(run).collect::<Result<Vec<BatchTime>>>()
        };
        // The first pass is a warm-up, unless it is slow.
        let start = Instant::now();
        let first = pass()?;
        let is_slow = start.elapsed().as_secs_f64() > SLOW_SECONDS || self.setup.is_simulated();
        let mut runs = if is_slow { vec![first] } else { self.setup.repeat(pass)? };
        let whole = |run: &Vec<BatchTime>| run.iter().map(|batch| batch.whole).sum::<f64>();
        runs.sort_by(|one, other| whole(one).total_cmp(&whole(other)));
        let seconds = Spread::of(runs.iter().map(whole));
        let middle = &runs[runs.len() / 2];
        let mut rows = vec![self.summary(algorithm, b, middle, (seconds, runs.len()))];
        let single = |(number, batch): (usize, &BatchTime)| {
            Measurement::new("response", &[("algorithm", &algorithm)])
                .with("threshold", f64::from(b))
                .with("batch", number as f64)
                .with("queries", batch.queries as f64)
                .with("response_ms", batch.whole * 1e3)
        };
        rows.extend(middle.iter().enumerate().map(single));
        Ok(rows)
    }

    fn summary(&self, algorithm: &str, b: u32, run: &[BatchTime], (seconds, runs): (Spread, usize)) -> Measurement {
        let (queries, count) = (self.queries.len() as f64, run.len() as f64);
        let ms: Vec<f64> = run.iter().map(|batch| batch.whole * 1e3).collect();
        let mean = mean(ms.iter().copied());
        let spread = Spread { median: mean, ..Spread::of(ms.iter().copied()) };
        let deviation = (ms.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / count).sqrt();
        let mean_of = |value: fn(&BatchTime) -> f64| run.iter().map(value).sum::<f64>() * 1e3 / count;
        let shortest = self.queries.iter().map(|query| f64::from(query.load)).sum::<f64>() / queries;
        Measurement::new("batches", &[("algorithm", &algorithm)])
            .with("threshold", f64::from(b))
            .with("queries", queries)
            .with("shortest", shortest)
            .with("batches", count)
            .with("batch_size", queries / count)
            .with("runs", runs as f64)
            .with_spread(
                ["queries_a_second", "queries_a_second_least", "queries_a_second_most"],
                seconds.rates(queries),
            )
            .with_spread(["response_ms", "response_least_ms", "response_most_ms"], spread)
            .with("deviation_ms", deviation)
            .with("kernel_ms", mean_of(|batch| batch.kernel))
            .with("cpu_ms", mean_of(|batch| batch.cpu))
            .with("transfer_ms", mean_of(|batch| (batch.whole - batch.kernel - batch.cpu).max(0.0)))
    }

    fn scratch(&self, batches: &[Range<usize>]) -> Result<Scratch> {
        let (mut device, mut host) = (16, 16);
        for batch in batches {
            let queries = &self.queries[batch.clone()];
            let lists: Vec<Vec<DeviceList>> = queries.iter().map(|query| query.lists.clone()).collect();
            device = device.max(Batch::new(&lists).scratch_bytes());
            host = host.max(queries.iter().map(|query| 4 * (query.load as usize + 1)).sum::<usize>() + 4);
        }
        Ok(Scratch { device: self.setup.gpu.allocate(device)?, host: self.setup.gpu.pin(host)? })
    }

    /// Runs a batch by PARA or PART, and checks its results.
    fn run(&self, algorithm: &str, queries: &[Query], scratch: &Scratch) -> Result<BatchTime> {
        let start = Instant::now();
        let mut order: Vec<usize> = (0..queries.len()).collect();
        if algorithm == PART {
            order.sort_by_key(|&query| queries[query].load.max(1).ilog2());
        }
        let lists: Vec<Vec<DeviceList>> = order.iter().map(|&query| queries[query].lists.clone()).collect();
        let batch = Batch::new(&lists);
        let cpu = start.elapsed().as_secs_f64();
        let count = queries.len();
        let (kernel, firsts, counts) = if algorithm == PART {
            let found = batch.part(&self.setup.gpu, STREAM, &scratch.device)?;
            let documents: usize = queries.iter().map(|query| query.load as usize).sum();
            self.copy(found.counts, scratch, 0, count)?;
            self.copy(found.results, scratch, count, documents)?;
            let kernel = self.wait()?;
            let load = |query: usize| queries[query].load as usize;
            let firsts = order.iter().scan(0, |next, &query| Some(std::mem::replace(next, *next + load(query))));
            (kernel, firsts.collect::<Vec<usize>>(), numbers_at(scratch, 0, count))
        } else {
            let found = batch.para(&self.setup.gpu, STREAM, &scratch.device)?;
            self.copy(found.positions, scratch, 0, count)?;
            self.copy(found.total, scratch, count, 1)?;
            let kernel = self.wait()?;
            let positions = numbers_at(scratch, 0, count + 1);
            self.copy(found.results, scratch, count + 1, positions[count])?;
            self.wait()?;
            let counts = positions.windows(2).map(|ends| ends[1] - ends[0]).collect();
            (kernel, positions[..count].to_vec(), counts)
        };
        let whole = start.elapsed().as_secs_f64();
        let start = if algorithm == PART { count } else { count + 1 };
        for ((&query, &first), &length) in order.iter().zip(&firsts).zip(&counts) {
            let expected = &queries[query].expected;
            let bytes = scratch.host.get(4 * (start + first)..4 * (start + first + length)).unwrap_or_default();
            let found = bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word));
            check(algorithm, &(length, found.eq(expected.iter().copied())), &(expected.len(), true))?;
        }
        Ok(BatchTime { queries: count, whole, kernel: kernel.as_secs_f64(), cpu })
    }

    /// Downloads 32-bit numbers to a position in the buffer of the host.
    fn copy(&self, from: Address, scratch: &Scratch, position: usize, count: usize) -> Result<(), GpuError> {
        if count == 0 {
            return Ok(());
        }
        let to = scratch.host.address().plus(4 * position);
        self.setup.gpu.submit(STREAM, Command::Copy { from, to, bytes: 4 * count })
    }

    /// Waits, and returns the time between marks, which is that of the kernel.
    fn wait(&self) -> Result<Duration, GpuError> {
        Ok(self.setup.gpu.wait(STREAM)?.iter().sum())
    }

    /// Runs a batch by Lanner's executor.
    fn answer(&self, queries: &[Query]) -> Result<BatchTime> {
        let plans: Vec<Plan> = queries.iter().map(|query| query.plan.clone()).collect();
        let hits: Vec<Vec<Scored>> = queries.iter().map(|query| query.hits.clone()).collect();
        let Timed { host, device } = self.setup.time_on_gpu(&plans, &hits)?;
        Ok(BatchTime { queries: queries.len(), whole: host, kernel: device, cpu: 0.0 })
    }
}

/// Reads downloaded numbers.
fn numbers_at(scratch: &Scratch, position: usize, count: usize) -> Vec<usize> {
    let bytes = &scratch.host[4 * position..4 * (position + count)];
    bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word) as usize).collect()
}

/// Intersects lists, the shortest first.
fn intersection_of(lists: &[&[u32]]) -> Vec<u32> {
    let Some((first, others)) = lists.split_first() else { return Vec::new() };
    let join = |common: Vec<u32>, list: &&[u32]| {
        if SEARCH_RATIO * common.len() < list.len() {
            binary_intersection::cpu(&common, list)
        } else {
            merge_path::cpu(&common, list)
        }
    };
    others.iter().fold(first.to_vec(), join)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_intersected_by_merging_and_by_searching() {
        let all: Vec<u32> = (0..1000).collect();
        let thirds: Vec<u32> = (0..300).map(|number| 3 * number).collect();
        assert_eq!(intersection_of(&[&[6, 7, 999], &thirds, &all]), [6]);
        assert_eq!(intersection_of(&[&thirds, &all]), thirds);
        assert!(intersection_of(&[]).is_empty());
    }
}
