//! What the figures about a GPU share: a device, an index of the scaled collection, its lists by length, and clocks.
//!
//! Lengths in the papers are those of collections of about 25 million documents; in a smaller one they are as much
//! smaller.

mod coded;
mod lists;

pub use coded::Coded;
pub use lists::{Lists, Resident, Term, bytes_of};

use super::Reproduction;
use crate::cache::Cache;
use crate::error::BenchError;
use crate::experiments::gpu::GpuRun;
use crate::experiments::gpu::decode::STREAM;
use crate::experiments::gpu::device::OnDevice;
use crate::experiments::gpu::plan_all;
use crate::experiments::gpu::workload::Workload;
use crate::only::Only;
use crate::result::Measurement;
use crate::statistics::Spread;
use crate::suite::Suite;
use lanner::internals::executors::{Cpu, Executor, GpuExecutor, SmallBatches};
use lanner::{Algorithm, Hit, Index, Mode, Plan, Query, ScoreModel};
use lanner_gpu::device::{Address, Command, Device};
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::{Gpu, Memory, Pinned};
use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Documents of the collections whose lengths the papers state.
const PAPER_DOCUMENTS: f64 = 25_200_000.0;
/// Runs that count: from the least, however slow they are, to the most.
const RUNS: Range<usize> = 2..11;
/// What has taken so long is not run again.
const SECONDS: f64 = 0.2;
/// Bytes that fit into where numbers land on the host.
const LANDING: usize = 1 << 20;

/// Where figures about a GPU are measured.
pub struct Ground {
    /// The device, with all of its memory.
    pub gpu: Gpu,
    /// The index, with frequencies and impacts.
    pub index: Arc<Index>,
    /// Queries of the log.
    pub work: Workload,
    /// Its terms by the lengths of their lists.
    pub lists: Lists,
    /// Threads that prepare and check.
    pub threads: usize,
    device: Arc<dyn Device>,
    /// Lengths of the papers times this are ours.
    scale: f64,
    /// What the collection is made of.
    source: String,
    executor: OnceCell<OnDevice>,
    one_thread: Cpu,
    all_threads: Cpu,
    landing: Pinned,
}

/// What lands on the host behind timed work.
#[derive(Clone, Copy, Debug)]
pub struct Landing {
    /// Where it lies on the device.
    pub from: Address,
    /// How many bytes.
    pub bytes: usize,
}

/// How long something took, in seconds: from the call to the answer on the host, and of it on the device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timed {
    /// From the call to the answer.
    pub host: f64,
    /// Of it on the device; 0 where there is none.
    pub device: f64,
}

/// The time of one of several things on average, in microseconds: the middle, the least and the most of the runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Average {
    /// From the call to the answer.
    pub us: Spread,
    /// Of it on the device.
    pub device_us: Spread,
    /// How many runs there were.
    pub runs: usize,
}

impl Ground {
    /// Opens the device and the index, built if it is not there yet.
    pub fn prepare(reproduction: &Reproduction<'_>) -> Result<Ground, BenchError> {
        let (options, choice) = (reproduction.options, reproduction.choice);
        let suite = choice.gpu_suite()?;
        let Some(part) = &suite.gpu else {
            return Err(BenchError::Usage(format!("suite {} is not about a GPU; give gpu", suite.name)));
        };
        let (cache, only) = (Cache::new(&options.cache), Only::most_queries(choice.count));
        let (data, program, device, say) = (&options.data, &options.program, options.device, reproduction.say);
        let run = GpuRun { suite: &suite, part, only: &only, data, cache: &cache, program, device, say };
        let (device, work) = run.ground()?;
        let index = Arc::clone(&work.index);
        let scale = (f64::from(index.documents()) / PAPER_DOCUMENTS).min(1.0);
        say("reading the lengths of all lists");
        let lists = Lists::read(&index, (900.0 * scale).max(2.0) as u32)?;
        let gpu = Gpu::new(Arc::clone(&device), device.limits().memory);
        let landing = gpu.pin(LANDING)?;
        let cpu = |threads| Cpu::new(Arc::clone(&index), threads);
        let (one_thread, all_threads, threads) = (cpu(1), cpu(choice.threads), choice.threads);
        let executor = OnceCell::new();
        let source = suite.collection.file.clone().unwrap_or_else(|| "made-up documents".to_owned());
        Ok(Ground {
            gpu,
            work,
            lists,
            threads,
            device,
            scale,
            source,
            executor,
            one_thread,
            all_threads,
            landing,
            index,
        })
    }

    /// A length of a paper, as long here as the collection is large.
    pub fn length(&self, of_paper: u64) -> u32 {
        ((of_paper as f64 * self.scale) as u32).max(2)
    }

    /// What readers must know about lengths and lists.
    pub fn note(&self) -> String {
        let documents = crate::table::count(u64::from(self.index.documents()));
        let smaller = if self.scale < 1.0 {
            format!(
                " Lengths are those of the paper times {}, as the collection is smaller.",
                crate::table::number(self.scale)
            )
        } else {
            String::new()
        };
        format!("Lists of an index of {documents} documents, made of {} by scaling.{smaller}", self.source)
    }

    /// Whether this is the simulator, which runs everything once.
    pub fn is_simulated(&self) -> bool {
        self.gpu.limits().is_simulated
    }

    /// Uploads bytes.
    pub fn upload(&self, bytes: &[u8]) -> Result<Memory, GpuError> {
        let memory = self.gpu.allocate(bytes.len())?;
        self.gpu.submit(STREAM, Command::Write { from: bytes, to: memory.address() })?;
        self.gpu.wait(STREAM)?;
        Ok(memory)
    }

    /// Times work of the stream, until what it says has landed on the host.
    pub fn time(&self, work: impl FnOnce() -> Result<Landing, GpuError>) -> Result<Timed, BenchError> {
        let start = Instant::now();
        self.gpu.submit(STREAM, Command::Mark)?;
        let landing = work()?;
        self.gpu.submit(STREAM, Command::Mark)?;
        let (from, to, bytes) = (landing.from, self.landing.address(), landing.bytes.min(LANDING));
        if bytes > 0 {
            self.gpu.submit(STREAM, Command::Copy { from, to, bytes })?;
        }
        let marks = self.gpu.wait(STREAM)?;
        let device = marks.iter().sum::<Duration>().as_secs_f64();
        Ok(Timed { host: start.elapsed().as_secs_f64(), device })
    }

    /// Does the same again, as often as there is time for.
    pub fn repeat<T>(&self, mut work: impl FnMut() -> Result<T, BenchError>) -> Result<Vec<T>, BenchError> {
        let (start, mut runs) = (Instant::now(), Vec::new());
        let least = if self.is_simulated() { 1 } else { RUNS.start };
        let most = if self.is_simulated() { 1 } else { RUNS.end };
        while runs.len() < least || (runs.len() < most && start.elapsed().as_secs_f64() < SECONDS) {
            runs.push(work()?);
        }
        Ok(runs)
    }

    /// The time of one of some things on average.
    pub fn average<T>(
        &self,
        things: &[T],
        mut time: impl FnMut(&T) -> Result<Timed, BenchError>,
    ) -> Result<Average, BenchError> {
        let runs = self.repeat(|| {
            let mut sum = Timed::default();
            for thing in things {
                let one = time(thing)?;
                sum = Timed { host: sum.host + one.host, device: sum.device + one.device };
            }
            Ok(sum)
        })?;
        Ok(Average::of(&runs, things.len()))
    }

    /// The executor of the device, with all lists on it. It has the device note the time of kernels in all batches.
    pub fn executor(&self) -> Result<&OnDevice, BenchError> {
        if let Some(executor) = self.executor.get() {
            return Ok(executor);
        }
        let marked = |executor: GpuExecutor| executor.small_batches(SmallBatches::Marked);
        let executor = OnDevice::connect(&self.index, &self.device, marked)?;
        Ok(self.executor.get_or_init(|| executor))
    }

    /// Plans queries by BM25.
    pub fn plan(&self, texts: &[String], mode: Mode, k: usize) -> Result<Vec<Plan>, BenchError> {
        self.plan_by(Algorithm::Auto, texts, mode, k)
    }

    /// Plans queries by BM25 for an algorithm.
    pub fn plan_by(
        &self,
        algorithm: Algorithm,
        texts: &[String],
        mode: Mode,
        k: usize,
    ) -> Result<Vec<Plan>, BenchError> {
        let query =
            |text: &String| Query::new(text.as_str()).mode(mode).k(k).score(ScoreModel::Bm25).algorithm(algorithm);
        plan_all(&self.index, &texts.iter().map(query).collect::<Vec<_>>(), self.threads)
    }

    /// The hits of plans, by the processor on all threads.
    pub fn hits(&self, plans: &[Plan]) -> Result<Vec<Vec<Hit>>, BenchError> {
        Ok(self.all_threads.run(plans)?.into_iter().map(|answer| answer.hits).collect())
    }

    /// Times a call with plans on one thread of the processor, and compares the hits.
    pub fn time_on_cpu(&self, plans: &[Plan], expected: &[Vec<Hit>]) -> Result<Timed, BenchError> {
        let start = Instant::now();
        let answers = self.one_thread.run(plans)?;
        let host = start.elapsed().as_secs_f64();
        let is_right =
            answers.iter().all(|answer| answer.exact) && answers.iter().map(|answer| &answer.hits).eq(expected);
        is_right.then_some(Timed { host, device: 0.0 }).ok_or_else(|| disagreement("our CPU executor"))
    }

    /// Times a call with plans on the device, and compares the hits.
    pub fn time_on_gpu(&self, plans: &[Plan], expected: &[Vec<Hit>]) -> Result<Timed, BenchError> {
        let executor = self.executor()?;
        let start = Instant::now();
        let answers = executor.answer(plans)?;
        let host = start.elapsed().as_secs_f64();
        let device = crate::experiments::gpu::device::kernel_seconds(&answers);
        let is_right =
            answers.iter().all(|answer| answer.exact) && answers.iter().map(|answer| &answer.hits).eq(expected);
        is_right.then_some(Timed { host, device }).ok_or_else(|| disagreement("our GPU executor"))
    }
}

impl Average {
    /// Of runs that did so many things each.
    pub fn of(runs: &[Timed], things: usize) -> Average {
        let us = |value: fn(&Timed) -> f64| {
            Spread::of(&runs.iter().map(|run| value(run) * 1e6 / things.max(1) as f64).collect::<Vec<_>>())
        };
        Average { us: us(|run| run.host), device_us: us(|run| run.device), runs: runs.len() }
    }

    /// Adds itself to a measurement.
    pub fn note(&self, row: Measurement) -> Measurement {
        let row = row
            .with("us", self.us.median)
            .with("us_least", self.us.least)
            .with("us_most", self.us.most)
            .with("runs", self.runs as f64);
        if self.device_us.most > 0.0 { row.with("device_us", self.device_us.median) } else { row }
    }
}

/// Times what the processor does, and compares what comes of it.
pub fn time_cpu<T: PartialEq>(what: &str, expected: &T, work: impl FnOnce() -> T) -> Result<Timed, BenchError> {
    let start = Instant::now();
    let found = std::hint::black_box(work());
    let host = start.elapsed().as_secs_f64();
    if found == *expected { Ok(Timed { host, device: 0.0 }) } else { Err(disagreement(what)) }
}

/// Something has found other numbers than the CPU.
pub fn disagreement(what: &str) -> BenchError {
    BenchError::Device { what: format!("{what} finds other numbers than the CPU's merging and decoding do") }
}

/// Whether all of what was found is what was expected.
pub fn agree<T: PartialEq>(what: &str, found: &T, expected: &T) -> Result<(), BenchError> {
    if found == expected { Ok(()) } else { Err(disagreement(what)) }
}

impl super::Choice {
    /// The suite whose collection and log the figures about a GPU have.
    pub fn gpu_suite(&self) -> Result<Suite, BenchError> {
        let mut suite = Suite::load(&self.suite)?;
        if let (Some(documents), Some(scale)) = (self.documents, &mut suite.collection.scale) {
            scale.documents = documents;
        }
        Ok(suite)
    }
}
