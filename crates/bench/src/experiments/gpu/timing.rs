//! Times of one score model, mode and k: batches and single queries on the GPU, and the CPU.

use super::device::{OnDevice, kernel_seconds};
use super::small::Small;
use super::tables::RATE;
use super::workload::Workload;
use super::{Cell, GpuRun, Part};
use crate::agreement::Asked;
use crate::error::BenchError;
use crate::machine::cores;
use crate::query_log::spread;
use crate::result::Measurement;
use crate::statistics::{Spread, Summary};
use lanner::SearchError;
use lanner::internals::executors::{Cpu, Executor, GpuExecutor};
use lanner::internals::query::answer::Scored;
use lanner::internals::query::planner::{PlanError, Planner};
use lanner::{Answer, Index, Mode, Plan, Query};
use lanner_gpu::device::Device;
use std::ops::RangeFrom;
use std::sync::Arc;
use std::time::Instant;

/// The measured executors.
pub struct Executors {
    resident: OnDevice,
    /// `None` unless part `sent` is measured.
    sending: Option<OnDevice>,
    /// `None` unless part `small` is measured.
    small: Option<Small>,
    one_thread: Cpu,
    all_threads: Cpu,
}

/// The plans of a cell and their expected answers.
pub struct Planned<'a> {
    pub cell: Cell,
    texts: &'a [String],
    pub plans: Vec<Plan>,
    expected: Vec<Vec<Scored>>,
}

impl Executors {
    /// Uploads the index, and measures how long that takes.
    pub fn connect(
        run: &GpuRun<'_>,
        index: &Arc<Index>,
        device: &Arc<dyn Device>,
    ) -> Result<(Executors, Measurement), BenchError> {
        let start = Instant::now();
        let resident = OnDevice::connect(index, device, |executor| executor)?;
        let connected = Measurement::new("connect", &[]).with("seconds", start.elapsed().as_secs_f64());
        let sends = |executor: GpuExecutor| executor.upload_lists().threads(cores());
        let sending = run.keeps(Part::Sent).then(|| OnDevice::connect(index, device, sends)).transpose()?;
        let small = run.keeps(Part::Small).then(|| Small::connect(index, device)).transpose()?;
        let cpu = |threads| Cpu::new(Arc::clone(index), threads);
        Ok((Executors { resident, sending, small, one_thread: cpu(1), all_threads: cpu(cores()) }, connected))
    }

    /// Number of plans that the device has answered.
    pub fn answered(&self) -> u64 {
        let others =
            self.sending.as_ref().map_or(0, OnDevice::answered) + self.small.as_ref().map_or(0, Small::answered);
        self.resident.answered() + others
    }

    /// Checks the answers of a cell, and measures the parts that `--only` keeps.
    pub fn measure(&self, run: &GpuRun<'_>, work: &Workload, cell: Cell) -> Result<Vec<Measurement>, BenchError> {
        let queries: Vec<Query> =
            work.texts.iter().map(|text| Query::new(text).mode(cell.mode).k(cell.k).score(cell.score)).collect();
        let plans = plan_all(&work.index, &queries, cores())?;
        let answers = self.all_threads.run(&plans)?;
        let expected = answers.into_iter().map(|answer| answer.hits).collect();
        let planned = Planned { cell, texts: &work.texts, plans, expected };
        planned.check(0.., &self.resident.answer(&planned.plans)?)?;

        let mut rows = Vec::new();
        let mut gpu_us = None;
        if run.keeps(Part::Throughput) {
            let row = self.throughput(run, &planned, &queries, &work.index)?;
            gpu_us = Some(row.value("us_a_query"));
            rows.push(row);
        }
        if run.keeps(Part::Latency) {
            rows.push(self.latency(run, &planned)?);
        }
        if run.keeps(Part::Cpu) {
            rows.extend(self.cpu(run, &planned, work, gpu_us)?);
        }
        if run.keeps(Part::Batches) && run.is_smallest_k(cell) && cell.mode == Mode::Or {
            rows.extend(self.batches(run, &planned)?);
        }
        if let Some(small) = self.small.as_ref().filter(|_| Small::has(run, cell)) {
            rows.extend(small.measure(run, &planned)?);
        }
        if let Some(sending) = self.sending.as_ref().filter(|_| run.is_smallest_k(cell) && cell.mode != Mode::AndOr) {
            rows.push(self.sent(run, &planned, sending)?);
        }
        Ok(rows)
    }

    /// Measures one call with all queries, from plans to answers on the host.
    fn throughput(
        &self,
        run: &GpuRun<'_>,
        planned: &Planned<'_>,
        queries: &[Query],
        index: &Index,
    ) -> Result<Measurement, BenchError> {
        let runs = run.repeat(|| batch_seconds(&self.resident, &planned.plans))?;
        let plan_on = |threads: usize| {
            let plan = || {
                let start = Instant::now();
                plan_all(index, queries, threads)?;
                Ok(start.elapsed().as_secs_f64())
            };
            run.repeat(plan).map(|runs| Spread::of(runs).median * 1e6 / queries.len() as f64)
        };
        let row = rates(planned.cell.measurement("throughput", &[]), &runs, planned.plans.len());
        Ok(row.with("plan_us_one_thread", plan_on(1)?).with("plan_us_all_threads", plan_on(cores())?))
    }

    /// Measures a call for each query; each percentile is the median over the runs.
    fn latency(&self, run: &GpuRun<'_>, planned: &Planned<'_>) -> Result<Measurement, BenchError> {
        let numbers = spread(&(0..planned.plans.len()).collect::<Vec<_>>(), run.part.alone);
        for &number in &numbers {
            planned.check(number.., &self.resident.answer(planned.one(number))?)?;
        }
        let runs = run.repeat(|| {
            let time = |&number: &usize| {
                let start = Instant::now();
                let answers = self.resident.answer(planned.one(number))?;
                let us = start.elapsed().as_secs_f64() * 1e6;
                drop(answers);
                Ok(us)
            };
            numbers.iter().map(time).collect::<Result<Vec<f64>, BenchError>>()
        })?;
        let summaries: Vec<Summary> = runs.iter().map(|run| Summary::of(run.iter().copied())).collect();
        let of_runs = |value: fn(&Summary) -> f64| Spread::of(summaries.iter().map(value));
        let most = Spread::of(runs.iter().map(|run| run.iter().copied().fold(0.0, f64::max)));
        Ok(planned
            .cell
            .measurement("latency", &[])
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
    fn cpu(
        &self,
        run: &GpuRun<'_>,
        planned: &Planned<'_>,
        work: &Workload,
        gpu_us: Option<f64>,
    ) -> Result<[Measurement; 2], BenchError> {
        let few = work.spread_by_postings(run.part.one_thread);
        let all: Vec<usize> = (0..planned.plans.len()).collect();
        let measure = |cpu: &Cpu, threads: &str, numbers: &[usize]| {
            let plans = planned.some(numbers);
            // Allocates the memory that the threads keep.
            cpu.run(&plans[..1])?;
            let runs = run.repeat(|| {
                let start = Instant::now();
                let answers = cpu.run(&plans)?;
                let seconds = start.elapsed().as_secs_f64();
                drop(answers);
                Ok(Timed { seconds, kernels: None })
            })?;
            let row = rates(planned.cell.measurement("cpu", &[("threads", threads)]), &runs, plans.len());
            let row = row.with("postings", work.mean_postings(numbers.iter().copied()));
            let row = row.with("threads", if threads == "one" { 1.0 } else { cores() as f64 });
            let us = row.value("us_a_query");
            Ok::<_, BenchError>(gpu_us.map_or(row.clone(), |gpu_us| row.with("gpu_of_cpu", gpu_us / us)))
        };
        Ok([measure(&self.one_thread, "one", &few)?, measure(&self.all_threads, "all", &all)?])
    }

    /// Measures all queries in calls of each batch size.
    fn batches(&self, run: &GpuRun<'_>, planned: &Planned<'_>) -> Result<Vec<Measurement>, BenchError> {
        let mut rows = Vec::new();
        for &size in run.part.batches.iter().filter(|&&size| size <= planned.plans.len()) {
            for (batch, plans) in planned.plans.chunks(size).enumerate() {
                planned.check(batch * size.., &self.resident.answer(plans)?)?;
            }
            let runs = run.repeat(|| {
                let mut all = Timed { seconds: 0.0, kernels: Some(0.0) };
                for plans in planned.plans.chunks(size) {
                    let batch = batch_seconds(&self.resident, plans)?;
                    all.seconds += batch.seconds;
                    all.kernels = all.kernels.zip(batch.kernels).map(|(sum, kernels)| sum + kernels);
                }
                Ok(all)
            })?;
            let row = planned.cell.measurement("batch", &[("size", &size.to_string())]);
            rows.push(rates(row, &runs, planned.plans.len()).with("size", size as f64));
        }
        Ok(rows)
    }

    /// Measures one call whose lists are uploaded, and the same call with resident lists.
    fn sent(&self, run: &GpuRun<'_>, planned: &Planned<'_>, sending: &OnDevice) -> Result<Measurement, BenchError> {
        let numbers = spread(&(0..planned.plans.len()).collect::<Vec<_>>(), run.part.sent);
        let plans = planned.some(&numbers);
        let answers = sending.answer(&plans)?;
        for (&number, answer) in numbers.iter().zip(&answers) {
            planned.check(number.., std::slice::from_ref(answer))?;
        }
        let uploaded = answers.iter().map(|answer| answer.work.bytes_uploaded as f64).sum::<f64>();
        let runs = run.repeat(|| batch_seconds(sending, &plans))?;
        let resident = run.repeat(|| batch_seconds(&self.resident, &plans))?;
        let resident = rates(Measurement::default(), &resident, plans.len()).value("us_a_query");
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
    pub fn check(&self, numbers: RangeFrom<usize>, answers: &[Answer<Scored>]) -> Result<(), BenchError> {
        for (number, answer) in numbers.zip(answers) {
            let (query, k) = (self.texts[number].as_str(), self.cell.k);
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

/// The time of a run, and of its kernels if known.
#[derive(Clone, Copy)]
struct Timed {
    seconds: f64,
    kernels: Option<f64>,
}

fn batch_seconds(on_device: &OnDevice, plans: &[Plan]) -> Result<Timed, BenchError> {
    let start = Instant::now();
    let answers = on_device.answer(plans)?;
    let seconds = start.elapsed().as_secs_f64();
    Ok(Timed { seconds, kernels: Some(kernel_seconds(&answers)) })
}

/// Adds the rates of runs over `queries` queries.
fn rates(row: Measurement, runs: &[Timed], queries: usize) -> Measurement {
    let count = queries as f64;
    let seconds = Spread::of(runs.iter().map(|run| run.seconds));
    let kernels: Vec<f64> = runs.iter().filter_map(|run| run.kernels).collect();
    let row = row
        .with("queries", count)
        .with("runs", runs.len() as f64)
        .with("us_a_query", seconds.median * 1e6 / count)
        .with_spread(RATE, seconds.rates(count));
    if kernels.is_empty() { row } else { row.with("kernel_us_a_query", Spread::of(kernels).median * 1e6 / count) }
}

/// Plans queries on `threads` threads. Planning is timed, so it starts threads of its own to have exactly their number.
pub fn plan_all(index: &Index, queries: &[Query], threads: usize) -> Result<Vec<Plan>, BenchError> {
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
