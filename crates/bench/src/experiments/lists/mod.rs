//! The GPU with lists that lie anywhere: in device memory, in host memory, or partly in each. How fast it is with how
//! much memory, how soon it follows other queries, how soon it answers, and what it does with almost no memory, and
//! what other caches would read and copy.
//!
//! Every answer of every run must be the CPU's, and the GPU must have made it; otherwise the suite ends without printing
//! times.

mod beyond;
mod cache_policies;
mod drift;
mod memory;
pub mod opening;
mod replay;
mod setup;

use super::{Context, Findings};
use crate::error::{BenchError, Result};
use crate::suite::{ListsPart, display_by_name};
use clap::ValueEnum;
use lanner_gpu::device::Properties;
use setup::Setup;

/// The experiment of section `[lists]`.
#[derive(Clone, Copy)]
pub struct ListsRun<'a> {
    pub context: Context<'a>,
    pub part: &'a ListsPart,
}

/// The parts of the experiment, by their names in `--only part=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    Memory,
    Drift,
    Opening,
    Beyond,
    Replay,
}

display_by_name!(Part);

impl Part {
    fn measure(self, setup: &Setup<'_>) -> Result<Findings> {
        match self {
            Part::Memory => memory::run(setup),
            Part::Drift => drift::run(setup),
            Part::Opening => opening::run(setup),
            Part::Beyond => beyond::run(setup),
            Part::Replay => replay::run(setup),
        }
    }
}

impl ListsRun<'_> {
    /// Measures; also returns the properties of the device.
    pub fn run(&self) -> Result<(Findings, Properties)> {
        let is_kept = |part: &Part| self.context.keeps("part", part);
        let parts: Vec<Part> = Part::value_variants().iter().copied().filter(is_kept).collect();
        if parts.is_empty() {
            let names: Vec<String> = Part::value_variants().iter().map(Part::to_string).collect();
            return Err(BenchError::Usage(format!("--only part= selects nothing; give some of {}", names.join(", "))));
        }
        let (setup, mut findings) = Setup::prepare(*self)?;
        for part in parts {
            (self.context.say)(&format!("part {part}"));
            findings.extend(part.measure(&setup)?);
        }
        Ok((findings, setup.device.properties().clone()))
    }
}
