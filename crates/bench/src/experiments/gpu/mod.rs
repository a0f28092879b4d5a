//! The GPU against the CPU on one index: batches, single queries, small batches, uploaded lists, decoding.
//!
//! Every answer of the device must equal the CPU's, and the device must have computed it; otherwise the run fails
//! without printing times. Tests compare the CPU with the oracle, which would take hours on collections of this size.

pub mod decode;
pub mod device;
mod small;
mod tables;
mod timing;
pub mod workload;

pub use device::DeviceName;
pub use timing::plan_all;

use super::{Context, Findings};
use crate::error::{BenchError, Result};
use crate::result::{Label, Measurement};
use crate::suite::{GpuPart, display_by_name};
use clap::ValueEnum;
use lanner::{Index, Mode, ScoreModel};
use lanner_gpu::device::{Device, Properties};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;
use timing::Executors;
use workload::{Wanted, Workload};

/// Minimal number of runs of a measurement.
const MIN_RUNS: usize = 3;

/// The experiment of section `[gpu]`.
pub struct GpuRun<'a> {
    pub context: Context<'a>,
    pub part: &'a GpuPart,
}

/// The parts of the experiment, by their names in `--only part=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    Throughput,
    Latency,
    Cpu,
    Batches,
    Small,
    Uploaded,
    Decode,
}

display_by_name!(Part);

/// A score model, a mode and a number of hits.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cell {
    score: ScoreModel,
    mode: Mode,
    k: usize,
}

impl Cell {
    /// Creates a measurement with the labels of the cell and further ones.
    fn measurement(&self, kind: &str, further: &[Label<'_>]) -> Measurement {
        let labels: [Label<'_>; 3] = [("score", &self.score), ("mode", &self.mode), ("k", &self.k)];
        Measurement::new(kind, &[&labels, further].concat())
    }
}

impl GpuRun<'_> {
    /// Measures; also returns the properties of the device.
    pub fn run(&self) -> Result<(Findings, Properties)> {
        let parts: Vec<Part> = Part::value_variants().iter().copied().filter(|&part| self.keeps(part)).collect();
        if parts.is_empty() {
            let names: Vec<String> = Part::value_variants().iter().map(Part::to_string).collect();
            return Err(BenchError::Usage(format!("--only part= selects nothing; give some of {}", names.join(", "))));
        }
        let (device, work) = self.prepare()?;
        let properties = device.properties().clone();
        let mut findings = Findings::default();
        if parts != [Part::Decode] {
            (self.context.say)("uploading the index");
            let (measurements, table) = work.describe(&self.part.log.name);
            let (executors, connected) = Executors::connect(self, &work.index, &device)?;
            let mut rows = Vec::new();
            for cell in self.cells() {
                (self.context.say)(&format!("{}, {}, k {}", cell.score, cell.mode, cell.k));
                rows.extend(executors.measure(self, &work, cell)?);
            }
            let answered = executors.answered();
            (self.context.say)(&format!("the device computed all of its {answered} answers, and they equal the CPU's"));
            findings = Findings::new(measurements).table(table);
            findings.measurements.push(connected.with("answered", answered as f64));
            findings.extend(tables::of_queries(rows));
        }
        if parts.contains(&Part::Decode) {
            (self.context.say)("encoding blocks for decoding");
            findings.extend(decode::run(self, &work.index, device)?);
        }
        Ok((findings, properties))
    }

    /// Opens the device and the index, and chooses the queries.
    pub fn prepare(&self) -> Result<(Arc<dyn Device>, Workload)> {
        let device = self.context.options.device.open()?;
        (self.context.say)(&format!("opened {}; preparing the index", device.properties().name));
        let index = Arc::new(Index::open(workload::index_folder(&self.context)?)?);
        (self.context.say)("choosing queries");
        let GpuPart { log, postings, of_documents, .. } = self.part;
        let wanted = Wanted { log, postings: *postings, of_documents: *of_documents };
        Ok((device, Workload::choose(&self.context, wanted, index)?))
    }

    fn keeps(&self, part: Part) -> bool {
        self.context.keeps("part", part)
    }

    /// Repeats work as often as the suite wants and has time for.
    fn repeat<T>(&self, work: impl FnMut() -> Result<T>) -> Result<Vec<T>> {
        repeat(MIN_RUNS..self.part.repetitions, self.part.seconds, work)
    }

    /// Whether a cell has the smallest k, for measurements that run with one k only.
    fn is_smallest_k(&self, cell: Cell) -> bool {
        self.part.k.iter().min() == Some(&cell.k)
    }

    fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for score in self.context.kept("score", &self.part.scores) {
            for mode in self.context.kept("mode", &self.part.modes) {
                let k = self.context.kept("k", &self.part.k).into_iter();
                cells.extend(k.map(|k| Cell { score, mode, k }));
            }
        }
        cells
    }
}

/// Repeats work `runs.start` times, then up to `runs.end` times as long as it has taken less than `seconds`.
pub fn repeat<T>(runs: Range<usize>, seconds: f64, mut work: impl FnMut() -> Result<T>) -> Result<Vec<T>> {
    let (start, mut results) = (Instant::now(), Vec::new());
    let has_time = |done: usize| done < runs.start || start.elapsed().as_secs_f64() < seconds;
    while results.len() < runs.end && has_time(results.len()) {
        results.push(work()?);
    }
    Ok(results)
}
