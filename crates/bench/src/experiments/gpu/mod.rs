//! The GPU engine beside the CPU engine on one index: batches, single queries, small batches, lists that are sent,
//! decoding.
//!
//! Every answer of the device must be the CPU's, and the device must have given it: otherwise no time is printed. The
//! oracle, which the CPU's answers are compared with in tests, would take hours for collections of this size.

pub(crate) mod decode;
pub(crate) mod device;
mod small;
mod tables;
mod timing;
pub(crate) mod workload;

pub use device::DeviceName;
pub(crate) use timing::plan_all;

use super::Findings;
use crate::cache::Cache;
use crate::error::BenchError;
use crate::only::Only;
use crate::result::Measurement;
use crate::suite::{GpuPart, Suite};
use lanner::{Mode, ScoreModel};
use lanner_gpu::device::{Device, Limits};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use timing::Executors;
use workload::Workload;

/// Runs that everything makes, however slow it is.
const LEAST_RUNS: usize = 3;

/// What to measure.
pub struct GpuRun<'a> {
    /// The suite.
    pub suite: &'a Suite,
    /// Its part about a GPU.
    pub part: &'a GpuPart,
    /// Which of it to run.
    pub only: &'a Only,
    /// Where the files of suites are.
    pub data: &'a Path,
    /// Where the index is kept.
    pub cache: &'a Cache,
    /// This program, whose code decides what the index holds.
    pub program: &'a Path,
    /// What to measure on.
    pub device: DeviceName,
    /// Is told what happens.
    pub say: &'a dyn Fn(&str),
}

/// Parts that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Throughput,
    Latency,
    Cpu,
    Batches,
    Small,
    Sent,
    Decode,
}

impl Part {
    const ALL: [Part; 7] =
        [Part::Throughput, Part::Latency, Part::Cpu, Part::Batches, Part::Small, Part::Sent, Part::Decode];

    fn name(self) -> &'static str {
        match self {
            Part::Throughput => "throughput",
            Part::Latency => "latency",
            Part::Cpu => "cpu",
            Part::Batches => "batches",
            Part::Small => "small",
            Part::Sent => "sent",
            Part::Decode => "decode",
        }
    }
}

/// A score model, a mode and a number of hits.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cell {
    score: ScoreModel,
    mode: Mode,
    k: usize,
}

impl Cell {
    /// A measurement of it, with further labels.
    fn measurement(&self, kind: &str, further: &[(&str, &str)]) -> Measurement {
        let (score, mode, k) = (self.score.to_string(), self.mode.to_string(), self.k.to_string());
        Measurement::new(kind, &[&[("score", score.as_str()), ("mode", &mode), ("k", &k)], further].concat())
    }
}

impl GpuRun<'_> {
    /// Measures; also returns what the device is.
    pub fn run(&self) -> Result<(Findings, Limits), BenchError> {
        if !Part::ALL.into_iter().any(|part| self.keeps(part)) {
            let names = Part::ALL.map(Part::name).join(", ");
            return Err(BenchError::Usage(format!("--only part= leaves nothing; give some of {names}")));
        }
        let device = self.device.open()?;
        let limits = device.limits().clone();
        (self.say)(&format!("opened {}; preparing the index", limits.name));
        let index = Arc::new(workload::open_index(self)?);
        let mut findings = Findings::default();
        if Part::ALL.into_iter().any(|part| part != Part::Decode && self.keeps(part)) {
            (self.say)("choosing queries, and uploading the index");
            let work = Workload::choose(self, Arc::clone(&index))?;
            let (measurements, table) = work.describe(&self.part.log.name);
            let (executors, connected) = Executors::connect(self, &index, &device)?;
            let mut rows = Vec::new();
            for cell in self.cells() {
                (self.say)(&format!("{}, {}, k {}", cell.score, cell.mode, cell.k));
                rows.extend(executors.measure(self, &work, cell)?);
            }
            let answered = executors.answered();
            (self.say)(&format!("the device gave all of its {answered} answers, and they are the CPU's"));
            findings.measurements.extend(measurements.into_iter().chain([connected.with("answered", answered as f64)]));
            findings.tables.push(table);
            findings.extend(tables::of_queries(rows));
        }
        if self.keeps(Part::Decode) {
            (self.say)("encoding blocks for decoding");
            findings.extend(decode::run(self, &index, device)?);
        }
        Ok((findings, limits))
    }

    /// The device, and the queries with their index alone, for what else is measured there.
    pub(crate) fn ground(&self) -> Result<(Arc<dyn Device>, Workload), BenchError> {
        let device = self.device.open()?;
        (self.say)(&format!("opened {}; preparing the index", device.limits().name));
        let index = Arc::new(workload::open_index(self)?);
        (self.say)("choosing queries");
        Ok((device, Workload::choose(self, index)?))
    }

    fn keeps(&self, part: Part) -> bool {
        self.only.keeps("part", part.name())
    }

    /// Does the same again, as often as the suite wants and has time for.
    fn repeat<T>(&self, mut work: impl FnMut() -> Result<T, BenchError>) -> Result<Vec<T>, BenchError> {
        let (start, mut runs) = (Instant::now(), Vec::new());
        let is_early = |runs: usize| runs < LEAST_RUNS || start.elapsed().as_secs_f64() < self.part.seconds;
        while runs.len() < self.part.repetitions && is_early(runs.len()) {
            runs.push(work()?);
        }
        Ok(runs)
    }

    fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for &score in self.part.scores.iter().filter(|score| self.only.keeps("score", score)) {
            for &mode in self.part.modes.iter().filter(|mode| self.only.keeps("mode", mode)) {
                let k = self.part.k.iter().filter(|k| self.only.keeps("k", k));
                cells.extend(k.map(|&k| Cell { score, mode, k }));
            }
        }
        cells
    }
}
