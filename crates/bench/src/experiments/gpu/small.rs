//! Small batches, in which launch overhead matters, with each way to submit their commands.

use super::device::OnDevice;
use super::tables::{CELL, runs_of};
use super::timing::Planned;
use super::{Cell, GpuRun};
use crate::error::Result;
use crate::result::Measurement;
use crate::statistics::{Spread, mean, timed};
use crate::table::Table;
use lanner::internals::executors::SmallBatches;
use lanner::{Index, Mode};
use lanner_gpu::device::Device;
use std::sync::Arc;

/// How the commands of a batch are submitted.
const WAYS: [(&str, SmallBatches); 4] = [
    ("apart", SmallBatches::SingleQueries),
    ("together", SmallBatches::Graph),
    ("singly", SmallBatches::Commands),
    ("marked", SmallBatches::TimedCommands),
];
const TIME: [&str; 3] = ["us_a_batch", "us_a_batch_least", "us_a_batch_most"];

/// An executor for each way.
pub struct Small {
    executors: Vec<OnDevice>,
}

impl Small {
    pub fn connect(index: &Arc<Index>, device: &Arc<dyn Device>) -> Result<Small> {
        let connect = |(_, way)| OnDevice::connect(index, device, |options| options.small_batches(way));
        Ok(Small { executors: WAYS.into_iter().map(connect).collect::<Result<_, _>>()? })
    }

    /// Number of plans that the device has answered.
    pub fn answered(&self) -> u64 {
        self.executors.iter().map(OnDevice::answered).sum()
    }

    /// Whether a cell is measured: OR takes one launch, AND+OR takes two, both with the smallest k.
    pub fn has(run: &GpuRun<'_>, cell: Cell) -> bool {
        run.is_smallest_k(cell) && cell.mode != Mode::And
    }

    /// Measures batches of each size; the ways alternate.
    pub fn measure(&self, run: &GpuRun<'_>, planned: &Planned<'_>) -> Result<Vec<Measurement>> {
        let mut rows = Vec::new();
        for &size in run.part.small.iter().filter(|&&size| size <= planned.plans.len()) {
            for executor in &self.executors {
                for (batch, plans) in planned.plans.chunks_exact(size).enumerate() {
                    planned.check(batch * size.., &executor.answer(plans)?)?;
                }
            }
            let mean_of_each = || self.executors.iter().map(|executor| mean_us(executor, planned, size)).collect();
            let runs: Vec<Vec<f64>> = run.repeat(mean_of_each)?;
            for (at, (way, _)) in WAYS.into_iter().enumerate() {
                let row = planned.cell.measurement("small", &[("size", &size), ("way", &way)]);
                rows.push(
                    row.with("size", size as f64)
                        .with("queries", (planned.plans.len() / size * size) as f64)
                        .with("runs", runs.len() as f64)
                        .with_spread(TIME, Spread::of(runs.iter().map(|run| run[at]))),
                );
            }
        }
        Ok(rows)
    }
}

/// Returns the mean time of a batch, from plans to answers.
fn mean_us(executor: &OnDevice, planned: &Planned<'_>, size: usize) -> Result<f64> {
    let time = |plans| Ok(timed(|| executor.answer(plans))?.1 * 1e6);
    Ok(mean(planned.plans.chunks_exact(size).map(time).collect::<Result<Vec<f64>>>()?))
}

pub fn table(rows: &[&Measurement]) -> Table {
    let labels = [&CELL[..], &["size"]].concat();
    let figures = WAYS.map(|(way, _)| [way, "least", "most"]).concat();
    let title = "Small batches on the GPU: microseconds of a batch, by the way its commands are submitted";
    let mut table = Table::new(title, 3, &[&labels[..], &figures].concat());
    for of_size in rows.chunks(WAYS.len()) {
        let times = of_size.iter().flat_map(|way| way.cells(&[], &TIME));
        table.row(of_size[0].cells(&labels, &[]).into_iter().chain(times));
    }
    let (queries, runs) = (rows[0].count("queries"), runs_of(rows));
    table.notes(&[&format!(
        "Up to {queries} queries in calls of this size; median, minimum and maximum of the means of {runs} runs. \
         Apart: each query is submitted as a single query, two at a time, and its OR only if its AND has too few hits. \
         Together: one CUDA graph. Singly: one driver call for each copy and launch. Marked: as singly, with events \
         around each kernel."
    )])
}
