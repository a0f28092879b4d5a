//! Batches of intersections: cut by the work in them, run by PARA and PART, compared and timed.

use crate::error::BenchError;
use crate::experiments::gpu::decode::STREAM;
use crate::reproduce::Reproduction;
use crate::reproduce::on_device::{Ground, Timed, agree, bytes_of};
use crate::result::Measurement;
use crate::statistics::Spread;
use crate::table::{count, number};
use lanner::internals::papers::batched_intersection::{Batch, Threshold, batches};
use lanner::internals::papers::compaction::{DeviceList, THREADS};
use lanner::internals::papers::{binary_intersection, merge_path};
use lanner::{Hit, Mode, Plan};
use lanner_gpu::device::{Address, Command};
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::{Memory, Pinned};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub const PARA: &str = "PARA";
pub const PART: &str = "PART";
pub const OURS: &str = "ours, AND, top 10";

/// The thresholds; PART, which is slow with few queries, runs where the paper's Table II begins.
const THRESHOLDS: [u32; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
const LEAST_OF_PART: u32 = 32;
/// Where a list is so many times as long it is searched on the CPU, not merged.
const SEARCHED: usize = 32;
/// A pass that takes longer is not repeated.
const SLOW_SECONDS: f64 = 2.0;

/// A query with its lists on the device, and what they have in common.
struct Query {
    lists: Vec<DeviceList>,
    load: u32,
    expected: Vec<u32>,
    plan: Plan,
    hits: Vec<Hit>,
}

struct Work<'a> {
    ground: &'a Ground,
    queries: Vec<Query>,
    _lists: Vec<Memory>,
}

/// Room for the largest batch of a pass.
struct Rooms {
    device: Memory,
    host: Pinned,
}

/// What a batch took, in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct BatchTime {
    queries: usize,
    /// From its queries to its results on the host.
    whole: f64,
    kernel: f64,
    cpu: f64,
}

/// Every threshold: PARA, PART with as many queries a batch, and ours.
pub fn measure(reproduction: &Reproduction<'_>) -> Result<Vec<Measurement>, BenchError> {
    let ground = reproduction.ground()?;
    (reproduction.say)("decoding and uploading the lists of the queries");
    let work = Work::prepare(ground)?;
    let loads: Vec<u32> = work.queries.iter().map(|query| query.load).collect();
    let thresholds = if ground.is_simulated() { vec![1, LEAST_OF_PART] } else { THRESHOLDS.to_vec() };
    let mut rows = Vec::new();
    for b in thresholds {
        let multiprocessors = ground.gpu.limits().multiprocessors;
        let threshold = Threshold { multiprocessors, threads: THREADS, blocks: b };
        let of_para = batches(&loads, threshold.documents());
        let size = work.queries.len().div_ceil(of_para.len());
        let of_size: Vec<Range<usize>> =
            (0..work.queries.len()).step_by(size).map(|at| at..work.queries.len().min(at + size)).collect();
        rows.extend(work.rows(PARA, b, &of_para)?);
        if b >= LEAST_OF_PART {
            rows.extend(work.rows(PART, b, &of_size)?);
        }
        rows.extend(work.rows(OURS, b, &of_size)?);
    }
    Ok(rows)
}

/// What readers must know.
pub fn note(ground: &Ground, rows: &[Measurement]) -> String {
    let queries = rows.first().map_or(0.0, |row| row.value("queries"));
    let load = rows.first().map_or(f64::NAN, |row| row.value("shortest"));
    format!(
        "{} {} queries of the log with at least two terms; their shortest lists have {} documents on average. PARA and PART \
         find all documents that are in all lists, which lie on the device as plain numbers, and bring them to the host; \
         memory is allocated before. A threshold is S x T x B documents of shortest lists, {} x {THREADS} x B here; PART \
         has as many queries a batch as PARA on average, sorted by the magnitude of their shortest lists. Ours is our executor \
         with the same number of queries a batch: it reads packed lists, scores, and returns the best 10.",
        ground.note(),
        count(queries as u64),
        number(load),
        ground.gpu.limits().multiprocessors
    )
}

impl Work<'_> {
    fn prepare(ground: &Ground) -> Result<Work<'_>, BenchError> {
        let texts: Vec<String> = ground.work.texts.iter().filter(|text| text.contains(' ')).cloned().collect();
        let plans = ground.plan(&texts, Mode::And, 10)?;
        let hits = ground.hits(&plans)?;
        let numbers: BTreeSet<u64> = plans.iter().flat_map(|plan| plan.lists.iter().map(|list| list.id.0)).collect();
        let numbers: Vec<u64> = numbers.into_iter().collect();
        let documents = ground.decode(&numbers)?;
        let upload = |list: &Arc<Vec<u32>>| ground.upload(&bytes_of(list));
        let memories = documents.iter().map(upload).collect::<Result<Vec<Memory>, GpuError>>()?;
        let places = |plan: &Plan| {
            let place = |id: u64| numbers.binary_search(&id).unwrap_or_default();
            let mut places: Vec<usize> = plan.lists.iter().map(|list| place(list.id.0)).collect();
            places.sort_by_key(|&place| documents[place].len());
            places
        };
        let expected = ground.map(&plans, |plan| {
            let lists: Vec<&[u32]> = places(plan).into_iter().map(|place| documents[place].as_slice()).collect();
            Ok(intersection_of(&lists))
        })?;
        let mut queries = Vec::new();
        for ((plan, hits), expected) in plans.into_iter().zip(hits).zip(expected) {
            let places = places(&plan);
            let list = |&place: &usize| DeviceList {
                documents: memories[place].address(),
                length: documents[place].len() as u32,
            };
            // In the order of the query: sorting them is the CPU's share of a batch.
            let lists: Vec<DeviceList> = places.iter().rev().map(list).collect();
            let load = lists.iter().map(|list| list.length).min().unwrap_or(0);
            queries.push(Query { lists, load, expected, plan, hits });
        }
        if queries.is_empty() {
            return Err(BenchError::Usage("no query of the log has two terms; give more with --count".to_owned()));
        }
        Ok(Work { ground, queries, _lists: memories })
    }

    /// Runs all batches several times, and describes the run that is the middle one.
    fn rows(&self, algorithm: &str, b: u32, batches: &[Range<usize>]) -> Result<Vec<Measurement>, BenchError> {
        let rooms = if algorithm == OURS { None } else { Some(self.rooms(batches)?) };
        let pass = || {
            let run = |batch: &Range<usize>| match &rooms {
                Some(rooms) => self.run(algorithm, &self.queries[batch.clone()], rooms),
                None => self.answer(&self.queries[batch.clone()]),
            };
            batches.iter().map(run).collect::<Result<Vec<BatchTime>, BenchError>>()
        };
        // The first pass warms up; a slow one is enough.
        let start = Instant::now();
        let first = pass()?;
        let is_slow = start.elapsed().as_secs_f64() > SLOW_SECONDS || self.ground.is_simulated();
        let mut runs = if is_slow { vec![first] } else { self.ground.repeat(pass)? };
        let whole = |run: &Vec<BatchTime>| run.iter().map(|batch| batch.whole).sum::<f64>();
        runs.sort_by(|one, other| whole(one).total_cmp(&whole(other)));
        let seconds = Spread::of(&runs.iter().map(whole).collect::<Vec<_>>());
        let middle = &runs[runs.len() / 2];
        let mut rows = vec![self.summary(algorithm, b, middle, (seconds, runs.len()))];
        let single = |(number, batch): (usize, &BatchTime)| {
            Measurement::new("response", &[("algorithm", algorithm)])
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
        let (spread, mean) = (Spread::of(&ms), ms.iter().sum::<f64>() / count);
        let deviation = (ms.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / count).sqrt();
        let mean_of = |value: fn(&BatchTime) -> f64| run.iter().map(value).sum::<f64>() * 1e3 / count;
        let shortest = self.queries.iter().map(|query| f64::from(query.load)).sum::<f64>() / queries;
        Measurement::new("batches", &[("algorithm", algorithm)])
            .with("threshold", f64::from(b))
            .with("queries", queries)
            .with("shortest", shortest)
            .with("batches", count)
            .with("batch_size", queries / count)
            .with("runs", runs as f64)
            .with("queries_a_second", queries / seconds.median)
            .with("queries_a_second_least", queries / seconds.most)
            .with("queries_a_second_most", queries / seconds.least)
            .with("response_ms", mean)
            .with("response_least_ms", spread.least)
            .with("response_most_ms", spread.most)
            .with("deviation_ms", deviation)
            .with("kernel_ms", mean_of(|batch| batch.kernel))
            .with("cpu_ms", mean_of(|batch| batch.cpu))
            .with("transfer_ms", mean_of(|batch| (batch.whole - batch.kernel - batch.cpu).max(0.0)))
    }

    fn rooms(&self, batches: &[Range<usize>]) -> Result<Rooms, BenchError> {
        let (mut device, mut host) = (16, 16);
        for batch in batches {
            let queries = &self.queries[batch.clone()];
            let lists: Vec<Vec<DeviceList>> = queries.iter().map(|query| query.lists.clone()).collect();
            device = device.max(Batch::new(&lists).scratch_bytes());
            host = host.max(queries.iter().map(|query| 4 * (query.load as usize + 1)).sum::<usize>() + 4);
        }
        Ok(Rooms { device: self.ground.gpu.allocate(device)?, host: self.ground.gpu.pin(host)? })
    }

    /// A batch by PARA or PART: prepared, uploaded, run, downloaded; then its results are compared.
    fn run(&self, algorithm: &str, queries: &[Query], rooms: &Rooms) -> Result<BatchTime, BenchError> {
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
            let found = batch.part(&self.ground.gpu, STREAM, &rooms.device)?;
            let documents: usize = queries.iter().map(|query| query.load as usize).sum();
            self.copy(found.counts, rooms, 0, count)?;
            self.copy(found.results, rooms, count, documents)?;
            let kernel = self.wait()?;
            let firsts = order.iter().scan(0, |next, &query| {
                let first = *next;
                *next += queries[query].load as usize;
                Some(first)
            });
            (kernel, firsts.collect::<Vec<usize>>(), numbers_at(rooms, 0, count))
        } else {
            let found = batch.para(&self.ground.gpu, STREAM, &rooms.device)?;
            self.copy(found.positions, rooms, 0, count)?;
            self.copy(found.total, rooms, count, 1)?;
            let kernel = self.wait()?;
            let positions = numbers_at(rooms, 0, count + 1);
            self.copy(found.results, rooms, count + 1, positions[count])?;
            self.wait()?;
            let counts = positions.windows(2).map(|ends| ends[1] - ends[0]).collect();
            (kernel, positions[..count].to_vec(), counts)
        };
        let whole = start.elapsed().as_secs_f64();
        let behind = if algorithm == PART { count } else { count + 1 };
        for ((&query, &first), &length) in order.iter().zip(&firsts).zip(&counts) {
            let expected = &queries[query].expected;
            let bytes = rooms.host.get(4 * (behind + first)..4 * (behind + first + length)).unwrap_or_default();
            let found = bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word));
            agree(algorithm, &(length, found.eq(expected.iter().copied())), &(expected.len(), true))?;
        }
        Ok(BatchTime { queries: count, whole, kernel: kernel.as_secs_f64(), cpu })
    }

    fn copy(&self, from: Address, rooms: &Rooms, place: usize, count: usize) -> Result<(), GpuError> {
        if count == 0 {
            return Ok(());
        }
        let to = rooms.host.address().plus(4 * place);
        self.ground.gpu.submit(STREAM, Command::Copy { from, to, bytes: 4 * count })
    }

    /// Waits, and returns the time between marks: that of the kernel.
    fn wait(&self) -> Result<Duration, GpuError> {
        Ok(self.ground.gpu.wait(STREAM)?.iter().sum())
    }

    /// The same queries by our executor.
    fn answer(&self, queries: &[Query]) -> Result<BatchTime, BenchError> {
        let plans: Vec<Plan> = queries.iter().map(|query| query.plan.clone()).collect();
        let hits: Vec<Vec<Hit>> = queries.iter().map(|query| query.hits.clone()).collect();
        let Timed { host, device } = self.ground.time_on_gpu(&plans, &hits)?;
        Ok(BatchTime { queries: queries.len(), whole: host, kernel: device, cpu: 0.0 })
    }
}

/// Numbers that have come to the host.
fn numbers_at(rooms: &Rooms, place: usize, count: usize) -> Vec<usize> {
    let bytes = &rooms.host[4 * place..4 * (place + count)];
    bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word) as usize).collect()
}

/// What lists, the shortest first, have in common.
fn intersection_of(lists: &[&[u32]]) -> Vec<u32> {
    let Some((first, others)) = lists.split_first() else { return Vec::new() };
    let join = |common: Vec<u32>, list: &&[u32]| {
        if SEARCHED * common.len() < list.len() {
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
    fn lists_are_joined_by_merging_and_by_searching() {
        let all: Vec<u32> = (0..1000).collect();
        let thirds: Vec<u32> = (0..300).map(|number| 3 * number).collect();
        assert_eq!(intersection_of(&[&[6, 7, 999], &thirds, &all]), [6]);
        assert_eq!(intersection_of(&[&thirds, &all]), thirds);
        assert!(intersection_of(&[]).is_empty());
    }
}
