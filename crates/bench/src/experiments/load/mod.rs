//! The engine under load: streams, both processors together, open loops, policies, cold starts, load steps, overhead
//! and costs. [`crate::load`] makes the loads.
//!
//! Every answer of every run must be the CPU's, and no query may be lost; otherwise the suite ends without printing
//! times.

pub mod cold;
mod costs;
mod idle;
mod open;
mod overhead;
mod policies;
mod setup;
mod step;
mod stream;
mod tables;
mod together;

pub use tables::table;

use super::{Context, Findings};
use crate::error::{BenchError, Result};
use crate::suite::{LoadPart, display_by_name};
use clap::ValueEnum;
use lanner_gpu::device::Properties;
use setup::Setup;

/// The experiment of section `[load]`.
#[derive(Clone, Copy)]
pub struct LoadRun<'a> {
    pub context: Context<'a>,
    pub part: &'a LoadPart,
}

/// The parts of the experiment, by their names in `--only part=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    Stream,
    Together,
    Open,
    Policies,
    Cold,
    Step,
    Overhead,
    Costs,
}

display_by_name!(Part);

impl Part {
    fn measure(self, setup: &Setup<'_>) -> Result<Findings> {
        match self {
            Part::Stream => stream::run(setup),
            Part::Together => together::run(setup),
            Part::Open => open::run(setup),
            Part::Policies => policies::run(setup),
            Part::Cold => cold::run(setup),
            Part::Step => step::run(setup),
            Part::Overhead => overhead::run(setup),
            Part::Costs => costs::run(setup),
        }
    }
}

impl LoadRun<'_> {
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
