//! Small batches, whose start counts: each plan as if it came alone, commands given together, which are a graph, and others.

use super::device::OnDevice;
use super::tables::{CELL, cells, queries_of, runs_of};
use super::timing::Planned;
use super::{Cell, GpuRun};
use crate::error::BenchError;
use crate::result::Measurement;
use crate::statistics::Spread;
use crate::table::{Table, number};
use lanner::internals::executors::SmallBatches;
use lanner::{Index, Mode};
use lanner_gpu::device::Device;
use std::sync::Arc;
use std::time::Instant;

/// How the commands of a batch reach the device, by name.
const WAYS: [(&str, SmallBatches); 4] = [
    ("apart", SmallBatches::Apart),
    ("together", SmallBatches::Together),
    ("singly", SmallBatches::Singly),
    ("marked", SmallBatches::Marked),
];

/// An executor for each way.
pub struct Small {
    executors: [OnDevice; WAYS.len()],
}

impl Small {
    /// Connects each with the device.
    pub fn connect(index: &Arc<Index>, device: &Arc<dyn Device>) -> Result<Small, BenchError> {
        let connect = |place: usize| OnDevice::connect(index, device, |executor| executor.small_batches(WAYS[place].1));
        Ok(Small { executors: [connect(0)?, connect(1)?, connect(2)?, connect(3)?] })
    }

    /// Plans that the device has answered so far.
    pub fn answered(&self) -> u64 {
        self.executors.iter().map(OnDevice::answered).sum()
    }

    /// Whether a cell is measured: one launch a batch, and two, with the fewest hits.
    pub fn has(run: &GpuRun<'_>, cell: Cell) -> bool {
        run.part.k.iter().min() == Some(&cell.k) && cell.mode != Mode::And
    }

    /// All queries in batches of each size, in each way; the ways take turns, run by run.
    pub fn measure(&self, run: &GpuRun<'_>, planned: &Planned<'_>) -> Result<Vec<Measurement>, BenchError> {
        let mut rows = Vec::new();
        for &size in run.part.small.iter().filter(|&&size| size <= planned.plans.len()) {
            for executor in &self.executors {
                for (batch, plans) in planned.plans.chunks_exact(size).enumerate() {
                    planned.check(batch * size.., &executor.answer(plans)?)?;
                }
            }
            let runs = run.repeat(|| {
                let mut us = [0.0; WAYS.len()];
                for (us, executor) in us.iter_mut().zip(&self.executors) {
                    *us = mean_us(executor, planned, size)?;
                }
                Ok(us)
            })?;
            for (place, (way, _)) in WAYS.into_iter().enumerate() {
                let us = Spread::of(&runs.iter().map(|run| run[place]).collect::<Vec<_>>());
                let row = planned.cell.measurement("small", &[("size", &size.to_string()), ("way", way)]);
                rows.push(
                    row.with("size", size as f64)
                        .with("queries", (planned.plans.len() / size * size) as f64)
                        .with("runs", runs.len() as f64)
                        .with("us_a_batch", us.median)
                        .with("us_a_batch_least", us.least)
                        .with("us_a_batch_most", us.most),
                );
            }
        }
        Ok(rows)
    }
}

/// The mean time of a batch, from plans to answers.
fn mean_us(executor: &OnDevice, planned: &Planned<'_>, size: usize) -> Result<f64, BenchError> {
    let batches = planned.plans.chunks_exact(size);
    let count = batches.len() as f64;
    let mut seconds = 0.0;
    for plans in batches {
        let start = Instant::now();
        let answers = executor.answer(plans)?;
        seconds += start.elapsed().as_secs_f64();
        drop(answers);
    }
    Ok(seconds * 1e6 / count)
}

/// The rows as people read them.
pub fn table(rows: &[&Measurement]) -> Table {
    let labels = [&CELL[..], &["size"]].concat();
    let figures = WAYS.map(|(way, _)| [way, "least", "most"]).concat();
    let title = "Small batches on the GPU: microseconds of a batch, by how its commands are given";
    let mut table = Table::new(title, 3, &[&labels[..], &figures].concat());
    for of_size in rows.chunks(WAYS.len()) {
        let mut row = cells(of_size[0], &labels, &[]);
        let values = ["us_a_batch", "us_a_batch_least", "us_a_batch_most"];
        row.extend(of_size.iter().flat_map(|way| values.map(|name| number(way.value(name)))));
        table.row(row);
    }
    table.notes = vec![format!(
        "Up to {} queries in calls of that size; the mean of a run's calls, of which the median, least and most of {} runs. \
         Apart: each query as if it came alone, two at a time, its OR only if its AND has too few hits; together: one graph; \
         singly: a call of the driver for each copy and launch; marked: likewise, with an event around each kernel.",
        queries_of(rows[0]),
        runs_of(rows)
    )];
    table
}
