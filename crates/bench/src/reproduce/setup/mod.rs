//! What the figures about a GPU share: a device, an index of the scaled collection, its lists by length, and timers.
//!
//! List lengths in the papers are those of collections of about 25 million documents; for a smaller collection they are
//! scaled down in proportion.

mod coded;
mod lists;

pub use crate::experiments::gpu::device::Timed;
pub use coded::{Coded, Way};
pub use lists::{Lists, Ranked, Resident, Term, bytes_of, list_numbers};

use super::Reproduction;
use crate::error::{BenchError, Result};
use crate::experiments::gpu::decode::STREAM;
use crate::experiments::gpu::device::OnDevice;
use crate::experiments::gpu::workload::Workload;
use crate::experiments::gpu::{GpuRun, plan_all, repeat};
use crate::experiments::{Context, RunOptions};
use crate::machine::cores;
use crate::only::Only;
use crate::result::Measurement;
use crate::statistics::{Spread, timed};
use crate::table::{count, number};
use lanner::internals::executors::{Cpu, Executor, SmallBatches};
use lanner::internals::query::answer::Scored;
use lanner::{Algorithm, Answer, GpuOptions, Index, Mode, Plan, Query, ScoreModel};
use lanner_gpu::device::{Address, Command, Device};
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::{Gpu, Memory, Pinned};
use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Documents of the collections in the papers.
const PAPER_DOCUMENTS: f64 = 25_200_000.0;
/// Minimal and maximal number of runs.
const RUNS: Range<usize> = 2..11;
/// After this time, a measurement is not repeated.
const SECONDS: f64 = 0.2;
/// Bytes of the buffer for downloads of timed work.
const DOWNLOAD_BYTES: usize = 1 << 20;

/// Device, index and queries of the figures about a GPU.
pub struct Setup {
    /// The device with all of its memory.
    pub gpu: Gpu,
    /// An index with frequencies and impacts.
    pub index: Arc<Index>,
    /// Queries of the log.
    pub work: Workload,
    pub lists: Lists,
    device: Arc<dyn Device>,
    /// Our list lengths divided by those of the papers.
    scale: f64,
    /// The collection that was scaled.
    source: String,
    executor: OnceCell<OnDevice>,
    one_thread: Cpu,
    all_threads: Cpu,
    download: Pinned,
}

/// What timed work downloads at its end.
#[derive(Clone, Copy, Debug)]
pub struct Download {
    pub from: Address,
    pub bytes: usize,
}

/// The mean time of an item in microseconds, over several items and runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Average {
    /// From the call to the result on the host.
    pub us: Spread,
    /// The share of the device.
    pub device_us: Spread,
    pub runs: usize,
}

impl Setup {
    /// Opens the device and the index, which is built if it is not cached.
    pub fn prepare(reproduction: &Reproduction<'_>) -> Result<Setup> {
        let (choice, say) = (reproduction.choice, reproduction.say);
        let suite = choice.gpu_suite()?;
        let Some(part) = &suite.gpu else {
            return Err(BenchError::Usage(format!("suite {} has no section [gpu]; give gpu", suite.name)));
        };
        let options = RunOptions { only: Only::parse(&[], Some(choice.count))?, ..reproduction.options.clone() };
        let context = Context { suite: &suite, options: &options, say };
        let (device, work) = GpuRun { context, part }.prepare()?;
        let index = Arc::clone(&work.index);
        let scale = (f64::from(index.documents()) / PAPER_DOCUMENTS).min(1.0);
        say("reading the lengths of all lists");
        let lists = Lists::read(&index, (900.0 * scale).max(2.0) as u32)?;
        let gpu = Gpu::new(Arc::clone(&device), device.properties().memory);
        let cpu = |threads| Cpu::new(Arc::clone(&index), threads);
        Ok(Setup {
            download: gpu.pin(DOWNLOAD_BYTES)?,
            gpu,
            work,
            lists,
            device,
            scale,
            source: suite.collection.file.clone().unwrap_or_else(|| "synthetic documents".to_owned()),
            executor: OnceCell::new(),
            one_thread: cpu(1),
            all_threads: cpu(choice.threads),
            index,
        })
    }

    /// Scales a list length of a paper to this collection.
    pub fn length(&self, in_paper: u64) -> u32 {
        ((in_paper as f64 * self.scale) as u32).max(2)
    }

    /// Describes the lists, for the notes of tables.
    pub fn note(&self) -> String {
        let documents = count(u64::from(self.index.documents()));
        let scale = match self.scale {
            1.0 => String::new(),
            scale => format!(" Lengths are those of the paper times {}.", number(scale)),
        };
        format!("Lists of an index of {documents} documents, scaled from {}.{scale}", self.source)
    }

    /// Whether the device is the simulator, which runs everything once.
    pub fn is_simulated(&self) -> bool {
        self.gpu.properties().is_simulated
    }

    /// Returns `count`, or `simulated` on the simulator.
    pub fn count(&self, count: usize, simulated: usize) -> usize {
        if self.is_simulated() { simulated } else { count }
    }

    /// Uploads bytes.
    pub fn upload(&self, bytes: &[u8]) -> Result<Memory, GpuError> {
        let memory = self.gpu.allocate(bytes.len())?;
        self.gpu.submit(STREAM, Command::Write { from: bytes, to: memory.address() })?;
        self.gpu.wait(STREAM)?;
        Ok(memory)
    }

    /// Times work on the stream until its download has finished.
    pub fn time(&self, work: impl FnOnce() -> Result<Download, GpuError>) -> Result<Timed> {
        let start = Instant::now();
        self.gpu.submit(STREAM, Command::Mark)?;
        let download = work()?;
        self.gpu.submit(STREAM, Command::Mark)?;
        let (from, to, bytes) = (download.from, self.download.address(), download.bytes.min(DOWNLOAD_BYTES));
        if bytes > 0 {
            self.gpu.submit(STREAM, Command::Copy { from, to, bytes })?;
        }
        let marks = self.gpu.wait(STREAM)?;
        let device = marks.iter().sum::<Duration>().as_secs_f64();
        Ok(Timed { host: start.elapsed().as_secs_f64(), device })
    }

    /// Repeats work as often as there is time for.
    pub fn repeat<T>(&self, work: impl FnMut() -> Result<T>) -> Result<Vec<T>> {
        repeat(if self.is_simulated() { 1..1 } else { RUNS }, SECONDS, work)
    }

    /// Measures the mean time of an item.
    pub fn average<T>(&self, items: &[T], mut time: impl FnMut(&T) -> Result<Timed>) -> Result<Average> {
        let runs = self.repeat(|| {
            let mut sum = Timed::default();
            for item in items {
                sum += time(item)?;
            }
            Ok(sum)
        })?;
        Ok(Average::of(&runs, items.len()))
    }

    /// Returns the executor with resident lists. It records the time of kernels in all batches.
    pub fn executor(&self) -> Result<&OnDevice> {
        super::get_or_try_init(&self.executor, || {
            let marked = |options: GpuOptions| options.small_batches(SmallBatches::TimedCommands);
            OnDevice::connect(&self.index, &self.device, marked)
        })
    }

    /// Plans queries with BM25.
    pub fn plan(&self, texts: &[String], mode: Mode, k: usize) -> Result<Vec<Plan>> {
        self.plan_by(Algorithm::Auto, texts, mode, k)
    }

    /// Plans queries with BM25 for an algorithm.
    pub fn plan_by(&self, algorithm: Algorithm, texts: &[String], mode: Mode, k: usize) -> Result<Vec<Plan>> {
        let query =
            |text: &String| Query::new(text.as_str()).mode(mode).k(k).score(ScoreModel::Bm25).algorithm(algorithm);
        plan_all(&self.index, &texts.iter().map(query).collect::<Vec<_>>(), cores())
    }

    /// Returns the hits of plans, computed by the CPU on all threads.
    pub fn hits(&self, plans: &[Plan]) -> Result<Vec<Vec<Scored>>> {
        Ok(self.all_threads.run(plans)?.into_iter().map(|answer| answer.hits).collect())
    }

    /// Times a call on one thread of the CPU, and compares the hits.
    pub fn time_on_cpu(&self, plans: &[Plan], expected: &[Vec<Scored>]) -> Result<Timed> {
        let (answers, host) = timed(|| self.one_thread.run(plans))?;
        check_answers("Lanner's CPU executor", &answers, expected)?;
        Ok(Timed { host, device: 0.0 })
    }

    /// Times a call on the device, and compares the hits.
    pub fn time_on_gpu(&self, plans: &[Plan], expected: &[Vec<Scored>]) -> Result<Timed> {
        let (answers, time) = self.executor()?.time(plans)?;
        check_answers("Lanner's GPU executor", &answers, expected)?;
        Ok(time)
    }
}

impl Average {
    /// Averages runs over `items` items each.
    pub fn of(runs: &[Timed], items: usize) -> Average {
        let us = |value: fn(&Timed) -> f64| Spread::of(runs.iter().map(|run| value(run) * 1e6 / items.max(1) as f64));
        Average { us: us(|run| run.host), device_us: us(|run| run.device), runs: runs.len() }
    }

    /// Adds the times to a measurement.
    pub fn add_to(&self, row: Measurement) -> Measurement {
        row.with_spread(["us", "us_least", "us_most"], self.us)
            .with("runs", self.runs as f64)
            .with("device_us", (self.device_us.most > 0.0).then_some(self.device_us.median))
    }
}

/// Times work of the CPU, and compares its result.
pub fn time_cpu<T: PartialEq>(what: &str, expected: &T, work: impl FnOnce() -> T) -> Result<Timed> {
    let (found, host) = timed(|| Ok::<_, BenchError>(std::hint::black_box(work())))?;
    check(what, &found, expected)?;
    Ok(Timed { host, device: 0.0 })
}

/// Returns an error unless the result is the expected one.
pub fn check<T: PartialEq + ?Sized>(what: &str, found: &T, expected: &T) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(BenchError::Device { what: format!("{what} returns other numbers than the reference on the CPU") })
}

/// Returns an error unless answers are exact and have the expected hits.
pub fn check_answers(what: &str, answers: &[Answer<Scored>], expected: &[Vec<Scored>]) -> Result<()> {
    let is_right = answers.iter().all(|answer| answer.exact) && answers.iter().map(|answer| &answer.hits).eq(expected);
    check(what, &is_right, &true)
}
