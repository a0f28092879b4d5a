//! Times of one score model, mode and k: batches and single queries on the GPU, and the CPU.

use super::device::{OnDevice, Timed};
use super::small::Small;
use super::tables::RATE;
use super::workload::Workload;
use super::{Cell, GpuRun, Part};
use crate::agreement::Asked;
use crate::error::{BenchError, Result};
use crate::machine::cores;
use crate::query_log::spread;
use crate::result::Measurement;
use crate::statistics::{Spread, Summary, timed};
use lanner::error::PlanError;
use lanner::internals::executors::{Cpu, Executor};
use lanner::internals::query::answer::Scored;
use lanner::internals::query::planner::Planner;
use lanner::{Answer, GpuOptions, Index, Mode, Plan, Query, SearchError};
use lanner_gpu::device::Device;
use std::ops::RangeFrom;
use std::sync::Arc;

/// The measured executors.
pub struct Executors {
    resident: OnDevice,
    /// Uploads lists with each batch; `None` unless part `uploaded` is measured.
    uploading: Option<OnDevice>,
    /// `None` unless part `small` is measured.
    small: Option<Small>,
    one_thread: Cpu,
    all_threads: Cpu,
}

/// The plans of a cell and their expected answers.
pub struct Planned<'a> {
    pub cell: Cell,
    work: &'a Workload,
    pub plans: Vec<Plan>,
    expected: Vec<Vec<Scored>>,
}

impl Executors {
    /// Uploads the index, and measures how long that takes.
    pub fn connect(run: &GpuRun<'_>, index: &Arc<Index>, device: &Arc<dyn Device>) -> Result<(Executors, Measurement)> {
        let (resident, seconds) = timed(|| OnDevice::connect(index, device, |options| options))?;
        let connected = Measurement::new("connect", &[]).with("seconds", seconds);
        let uploads = |options: GpuOptions| options.upload_lists().threads(cores());
        let uploading = run.keeps(Part::Uploaded).then(|| OnDevice::connect(index, device, uploads)).transpose()?;
        let small = run.keeps(Part::Small).then(|| Small::connect(index, device)).transpose()?;
        let cpu = |threads| Cpu::new(Arc::clone(index), threads);
        Ok((Executors { resident, uploading, small, one_thread: cpu(1), all_threads: cpu(cores()) }, connected))
    }

    /// Number of plans that the device has answered.
    pub fn answered(&self) -> u64 {
        let executors = [&self.resident].into_iter().chain(&self.uploading);
        executors.map(OnDevice::answered).sum::<u64>() + self.small.as_ref().map_or(0, Small::answered)
    }

    /// Checks the answers of a cell, and measures the parts that `--only` keeps.
    pub fn measure(&self, run: &GpuRun<'_>, work: &Workload, cell: Cell) -> Result<Vec<Measurement>> {
        let queries: Vec<Query> =
            work.texts.iter().map(|text| Query::new(text).mode(cell.mode).k(cell.k).score(cell.score)).collect();
        let plans = plan_all(&work.index, &queries, cores())?;
        let answers = self.all_threads.run(&plans)?;
        let expected = answers.into_iter().map(|answer| answer.hits).collect();
        let planned = Planned { cell, work, plans, expected };
        planned.check(0.., &self.resident.answer(&planned.plans)?)?;

        let mut rows = Vec::new();
        let mut gpu_us = None;
        if run.keeps(Part::Throughput) {
            let row = self.throughput(run, &planned, &queries)?;
            gpu_us = Some(row.value("us_a_query"));
            rows.push(row);
        }
        if run.keeps(Part::Latency) {
            rows.push(self.latency(run, &planned)?);
        }
        if run.keeps(Part::Cpu) {
            rows.extend(self.cpu(run, &planned, gpu_us)?);
        }
        if run.keeps(Part::Batches) && run.is_smallest_k(cell) && cell.mode == Mode::Or {
            rows.extend(self.batches(run, &planned)?);
        }
        if let Some(small) = self.small.as_ref().filter(|_| Small::has(run, cell)) {
            rows.extend(small.measure(run, &planned)?);
        }
        let has_uploads = run.is_smallest_k(cell) && cell.mode != Mode::AndOr;
        if let Some(uploading) = self.uploading.as_ref().filter(|_| has_uploads) {
            rows.push(self.upload(run, &planned, uploading)?);
        }
        Ok(rows)
    }

    /// Measures one call with all queries, from plans to answers on the host.
    fn throughput(&self, run: &GpuRun<'_>, planned: &Planned<'_>, queries: &[Query]) -> Result<Measurement> {
        let runs = time_calls(run, &self.resident, &planned.plans)?;
        let plan_on = |threads: usize| {
            let runs = run.repeat(|| Ok(timed(|| plan_all(&planned.work.index, queries, threads))?.1));
            runs.map(|runs| Spread::of(runs).median * 1e6 / queries.len() as f64)
        };
        let row = rates(planned.cell.measurement("throughput", &[]), &runs, planned.plans.len());
        Ok(row.with("plan_us_one_thread", plan_on(1)?).with("plan_us_all_threads", plan_on(cores())?))
    }

    /// Measures a call for each query; each percentile is the median over the runs.
    fn latency(&self, run: &GpuRun<'_>, planned: &Planned<'_>) -> Result<Measurement> {
        let numbers = spread(&(0..planned.plans.len()).collect::<Vec<_>>(), run.part.single);
        for &number in &numbers {
            planned.check(number.., &self.resident.answer(planned.one(number))?)?;
        }
        let runs = run.repeat(|| {
            let time = |&number: &usize| Ok(timed(|| self.resident.answer(planned.one(number)))?.1 * 1e6);
            numbers.iter().map(time).collect::<Result<Vec<f64>>>()
        })?;
        let summaries: Vec<Summary> = runs.iter().map(|run| Summary::of(run.iter().copied())).collect();
        let of_runs = |value: fn(&Summary) -> f64| Spread::of(summaries.iter().map(value));
        let most = Spread::of(runs.iter().map(|run| run.iter().copied().fold(0.0, f64::max)));
        let row = planned.cell.measurement("latency", &[]);
        Ok(row
            .with("queries", numbers.len() as f64)
            .with("runs", runs.len() as f64)
            .with("mean_us", of_runs(|summary| summary.mean).median)
            .with("p50_us", of_runs(|summary| summary.p50).median)
            .with("p95_us", of_runs(|summary| summary.p95).median)
            .with_spread(["p99_us", "p99_least_us", "p99_most_us"], of_runs(|summary| summary.p99))
            .with("most_us", most.median)
            .with("most_of_all_us", most.most))
    }

    /// Measures the CPU on one thread and on all, and the ratio of the time of the GPU to its time.
    fn cpu(&self, run: &GpuRun<'_>, planned: &Planned<'_>, gpu_us: Option<f64>) -> Result<[Measurement; 2]> {
        let few = planned.work.spread_by_postings(run.part.one_thread);
        let all: Vec<usize> = (0..planned.plans.len()).collect();
        let measure = |cpu: &Cpu, threads: &str, numbers: &[usize]| {
            let plans = planned.some(numbers);
            // Allocates the memory that the threads keep.
            cpu.run(&plans[..1])?;
            let runs = run.repeat(|| Ok(Timed { host: timed(|| cpu.run(&plans))?.1, device: 0.0 }))?;
            let row = rates(planned.cell.measurement("cpu", &[("threads", &threads)]), &runs, plans.len());
            let row = row.with("postings", planned.work.mean_postings(numbers.iter().copied()));
            let row = row.with("threads", if threads == "one" { 1.0 } else { cores() as f64 });
            let us = row.value("us_a_query");
            Ok::<_, BenchError>(row.with("gpu_of_cpu", gpu_us.map(|gpu_us| gpu_us / us)))
        };
        Ok([measure(&self.one_thread, "one", &few)?, measure(&self.all_threads, "all", &all)?])
    }

    /// Measures all queries in calls of each batch size.
    fn batches(&self, run: &GpuRun<'_>, planned: &Planned<'_>) -> Result<Vec<Measurement>> {
        let mut rows = Vec::new();
        for &size in run.part.batches.iter().filter(|&&size| size <= planned.plans.len()) {
            for (batch, plans) in planned.plans.chunks(size).enumerate() {
                planned.check(batch * size.., &self.resident.answer(plans)?)?;
            }
            let runs = run.repeat(|| {
                let mut all = Timed::default();
                for plans in planned.plans.chunks(size) {
                    all += self.resident.time(plans)?.1;
                }
                Ok(all)
            })?;
            let row = planned.cell.measurement("batch", &[("size", &size)]);
            rows.push(rates(row, &runs, planned.plans.len()).with("size", size as f64));
        }
        Ok(rows)
    }

    /// Measures one call whose lists are uploaded, and the same call with resident lists.
    fn upload(&self, run: &GpuRun<'_>, planned: &Planned<'_>, uploading: &OnDevice) -> Result<Measurement> {
        let numbers = spread(&(0..planned.plans.len()).collect::<Vec<_>>(), run.part.uploaded);
        let plans = planned.some(&numbers);
        let answers = uploading.answer(&plans)?;
        for (&number, answer) in numbers.iter().zip(&answers) {
            planned.check(number.., std::slice::from_ref(answer))?;
        }
        let uploaded = answers.iter().map(|answer| answer.work.bytes_uploaded as f64).sum::<f64>();
        let runs = time_calls(run, uploading, &plans)?;
        let resident = time_calls(run, &self.resident, &plans)?;
        let resident = rates(Measurement::default(), &resident, plans.len()).value("us_a_query");
        // Results keep the name from before the part was called `uploaded`.
        let row = rates(planned.cell.measurement("sent", &[]), &runs, plans.len());
        let seconds = row.value("us_a_query") * plans.len() as f64 / 1e6;
        Ok(row
            .with("bytes_uploaded", uploaded)
            .with("bytes_a_query", uploaded / plans.len() as f64)
            .with("gb_a_second", uploaded / 1e9 / seconds)
            .with("resident_us_a_query", resident))
    }
}

impl Planned<'_> {
    /// Compares the answers of consecutive plans with those of the CPU.
    pub fn check(&self, numbers: RangeFrom<usize>, answers: &[Answer<Scored>]) -> Result<()> {
        for (number, answer) in numbers.zip(answers) {
            let (query, k) = (self.work.texts[number].as_str(), self.cell.k);
            if !answer.exact {
                return Err(BenchError::Device { what: format!("the answer of the GPU to {query:?} is not exact") });
            }
            let mode = format!("{} by {}", self.cell.mode, self.cell.score);
            let asked = Asked { engine: "the GPU", reference: "the CPU", query, mode, k };
            asked.compare(&answer.hits, &self.expected[number])?;
        }
        Ok(())
    }

    fn one(&self, number: usize) -> &[Plan] {
        std::slice::from_ref(&self.plans[number])
    }

    fn some(&self, numbers: &[usize]) -> Vec<Plan> {
        numbers.iter().map(|&number| self.plans[number].clone()).collect()
    }
}

/// Times a call with all plans repeatedly.
fn time_calls(run: &GpuRun<'_>, on_device: &OnDevice, plans: &[Plan]) -> Result<Vec<Timed>> {
    run.repeat(|| Ok(on_device.time(plans)?.1))
}

/// Adds the rates of runs over `queries` queries.
fn rates(row: Measurement, runs: &[Timed], queries: usize) -> Measurement {
    let count = queries as f64;
    let seconds = Spread::of(runs.iter().map(|run| run.host));
    let kernels = Spread::of(runs.iter().map(|run| run.device)).median;
    row.with("queries", count)
        .with("runs", runs.len() as f64)
        .with("us_a_query", seconds.median * 1e6 / count)
        .with_spread(RATE, seconds.rates(count))
        .with("kernel_us_a_query", (kernels > 0.0).then_some(kernels * 1e6 / count))
}

/// Plans queries on `threads` threads. Planning is timed, so it starts threads of its own to have exactly their number.
pub fn plan_all(index: &Index, queries: &[Query], threads: usize) -> Result<Vec<Plan>> {
    let planner = Planner::new(index);
    let plan = |queries: &[Query]| queries.iter().map(|query| planner.plan(query)).collect::<Result<Vec<_>, _>>();
    let plans: Result<Vec<Plan>, PlanError> = if threads <= 1 {
        plan(queries)
    } else {
        std::thread::scope(|scope| {
            let parts = queries.chunks(queries.len().div_ceil(threads).max(1));
            let workers: Vec<_> = parts.map(|part| scope.spawn(move || plan(part))).collect();
            let plans = workers.into_iter().map(|worker| worker.join().expect("a worker does not panic"));
            Ok(plans.collect::<Result<Vec<_>, _>>()?.concat())
        })
    };
    Ok(plans.map_err(SearchError::from)?)
}
