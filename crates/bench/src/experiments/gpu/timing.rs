//! The times of one score, mode and k: batches on the device, queries one at a time, the processor.

use super::device::{OnDevice, kernel_seconds};
use super::small::Small;
use super::workload::Workload;
use super::{Cell, GpuRun, Part};
use crate::agreement::first_difference;
use crate::error::BenchError;
use crate::query_log::spread;
use crate::result::Measurement;
use crate::statistics::{Spread, Summary};
use lanner::SearchError;
use lanner::internals::executors::{Cpu, Executor, GpuExecutor};
use lanner::internals::query::planner::{PlanError, Planner};
use lanner::{Answer, Hit, Index, Mode, Plan, Query};
use lanner_gpu::device::Device;
use std::ops::RangeFrom;
use std::sync::Arc;
use std::time::Instant;

/// Who answers.
pub struct Executors {
    resident: OnDevice,
    /// There if lists are to be sent.
    sending: Option<OnDevice>,
    /// There if small batches are to be compared.
    small: Option<Small>,
    /// On one thread, and on as many as the machine has.
    one_thread: Cpu,
    all_threads: Cpu,
    /// How many those are.
    threads: usize,
}

/// The plans of a cell, and their right answers.
pub struct Planned<'a> {
    /// The cell.
    pub cell: Cell,
    texts: &'a [String],
    /// The plans.
    pub plans: Vec<Plan>,
    expected: Vec<Vec<Hit>>,
}

impl Executors {
    /// Connects with the device, and measures how long that takes.
    pub fn connect(
        run: &GpuRun<'_>,
        index: &Arc<Index>,
        device: &Arc<dyn Device>,
    ) -> Result<(Executors, Measurement), BenchError> {
        let start = Instant::now();
        let resident = OnDevice::connect(index, device, |executor| executor)?;
        let connected = Measurement::new("connect", &[]).with("seconds", start.elapsed().as_secs_f64());
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let sends = |executor: GpuExecutor| executor.upload_lists().threads(threads);
        let sending = run.keeps(Part::Sent).then(|| OnDevice::connect(index, device, sends)).transpose()?;
        let small = run.keeps(Part::Small).then(|| Small::connect(index, device)).transpose()?;
        let cpu = |threads| Cpu::new(Arc::clone(index), threads);
        let (one_thread, all_threads) = (cpu(1), cpu(threads));
        Ok((Executors { resident, sending, small, one_thread, all_threads, threads }, connected))
    }

    /// Plans that the device has answered so far.
    pub fn answered(&self) -> u64 {
        let others =
            self.sending.as_ref().map_or(0, OnDevice::answered) + self.small.as_ref().map_or(0, Small::answered);
        self.resident.answered() + others
    }

    /// Checks the answers of a cell and measures what is wanted of it.
    pub fn measure(&self, run: &GpuRun<'_>, work: &Workload, cell: Cell) -> Result<Vec<Measurement>, BenchError> {
        let queries: Vec<Query> =
            work.texts.iter().map(|text| Query::new(text).mode(cell.mode).k(cell.k).score(cell.score)).collect();
        let plans = plan_all(&work.index, &queries, self.threads)?;
        let answers = self.all_threads.run(&plans)?;
        let expected = answers.into_iter().map(|answer| answer.hits).collect();
        let planned = Planned { cell, texts: &work.texts, plans, expected };
        planned.check(0.., &self.resident.answer(&planned.plans)?)?;

        let mut rows = Vec::new();
        let mut us_on_device = None;
        if run.keeps(Part::Throughput) {
            let row = self.throughput(run, &planned, &queries, &work.index)?;
            us_on_device = Some(row.value("us_a_query"));
            rows.push(row);
        }
        if run.keeps(Part::Latency) {
            rows.push(self.latency(run, &planned)?);
        }
        if run.keeps(Part::Cpu) {
            rows.extend(self.processor(run, &planned, work, us_on_device)?);
        }
        let is_least_k = run.part.k.iter().min() == Some(&cell.k);
        if run.keeps(Part::Batches) && is_least_k && cell.mode == Mode::Or {
            rows.extend(self.batches(run, &planned)?);
        }
        if let Some(small) = self.small.as_ref().filter(|_| Small::has(run, cell)) {
            rows.extend(small.measure(run, &planned)?);
        }
        if let Some(sending) = self.sending.as_ref().filter(|_| is_least_k && cell.mode != Mode::AndOr) {
            rows.push(self.sent(run, &planned, sending)?);
        }
        Ok(rows)
    }

    /// One call with all queries, from plans to answers on the host.
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
            run.repeat(plan).map(|runs| Spread::of(&runs).median * 1e6 / queries.len() as f64)
        };
        let row = rates(planned.cell.measurement("throughput", &[]), &runs, planned.plans.len());
        Ok(row.with("plan_us_one_thread", plan_on(1)?).with("plan_us_all_threads", plan_on(self.threads)?))
    }

    /// A call for each query; each percentile is the median of the runs'.
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
        let summaries: Vec<Summary> = runs.iter().map(|run| Summary::of(run)).collect();
        let of_runs = |value: &dyn Fn(&Summary) -> f64| Spread::of(&summaries.iter().map(value).collect::<Vec<_>>());
        let most: Vec<f64> = runs.iter().map(|run| run.iter().copied().fold(0.0, f64::max)).collect();
        let p99 = of_runs(&|summary| summary.p99);
        Ok(planned
            .cell
            .measurement("latency", &[])
            .with("queries", numbers.len() as f64)
            .with("runs", runs.len() as f64)
            .with("mean_us", of_runs(&|summary| summary.mean).median)
            .with("p50_us", of_runs(&|summary| summary.p50).median)
            .with("p95_us", of_runs(&|summary| summary.p95).median)
            .with("p99_us", p99.median)
            .with("p99_least_us", p99.least)
            .with("p99_most_us", p99.most)
            .with("most_us", Spread::of(&most).median)
            .with("most_of_all_us", Spread::of(&most).most))
    }

    /// The processor on one thread and on all, and the device's time divided by its.
    fn processor(
        &self,
        run: &GpuRun<'_>,
        planned: &Planned<'_>,
        work: &Workload,
        us_on_device: Option<f64>,
    ) -> Result<[Measurement; 2], BenchError> {
        let few = work.spread_by_postings(run.part.one_thread);
        let all: Vec<usize> = (0..planned.plans.len()).collect();
        let measure = |cpu: &Cpu, threads: &str, numbers: &[usize]| {
            let plans = planned.some(numbers);
            // Memory that its threads keep is there when the time begins.
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
            let row = row.with("threads", if threads == "one" { 1.0 } else { self.threads as f64 });
            let us = row.value("us_a_query");
            Ok::<_, BenchError>(us_on_device.map_or(row.clone(), |on_device| row.with("gpu_of_cpu", on_device / us)))
        };
        Ok([measure(&self.one_thread, "one", &few)?, measure(&self.all_threads, "all", &all)?])
    }

    /// All queries in calls of fewer.
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

    /// One call whose lists are sent, beside the same call with resident lists.
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
    /// Compares answers with those of the processor, of which the first has the first of the numbers.
    pub fn check(&self, numbers: RangeFrom<usize>, answers: &[Answer]) -> Result<(), BenchError> {
        for (number, answer) in numbers.zip(answers) {
            let expected = &self.expected[number];
            if answer.hits != *expected || !answer.exact {
                let (reference, difference) = ("the CPU", first_difference(&answer.hits, expected));
                let mode = format!("{} by {}", self.cell.mode, self.cell.score);
                let (engine, query, k) = ("the GPU".to_owned(), self.texts[number].clone(), self.cell.k);
                return Err(BenchError::Disagreement { engine, reference, query, mode, k, difference });
            }
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

/// How long one run took; of it kernels, where they are known.
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

/// Adds what runs over so many queries come to.
fn rates(row: Measurement, runs: &[Timed], queries: usize) -> Measurement {
    let count = queries as f64;
    let seconds = Spread::of(&runs.iter().map(|run| run.seconds).collect::<Vec<_>>());
    let kernels: Vec<f64> = runs.iter().filter_map(|run| run.kernels).collect();
    let row = row
        .with("queries", count)
        .with("runs", runs.len() as f64)
        .with("us_a_query", seconds.median * 1e6 / count)
        .with("queries_a_second", count / seconds.median)
        .with("queries_a_second_least", count / seconds.most)
        .with("queries_a_second_most", count / seconds.least);
    if kernels.is_empty() { row } else { row.with("kernel_us_a_query", Spread::of(&kernels).median * 1e6 / count) }
}

/// Plans queries on some threads.
pub(crate) fn plan_all(index: &Index, queries: &[Query], threads: usize) -> Result<Vec<Plan>, BenchError> {
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
