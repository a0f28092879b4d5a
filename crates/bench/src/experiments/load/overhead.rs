//! Part `overhead`: what the engine itself takes for a query, with a device that does nothing.

use super::idle::Idle;
use super::setup::{LogSet, Setup};
use super::tables::{QUERIES, table};
use crate::error::{BenchError, Result};
use crate::experiments::Findings;
use crate::load::with_delays;
use crate::machine::cores;
use crate::result::Measurement;
use crate::statistics::timed;
use lanner::internals::query::planner::Planner;
use lanner::{Engine, GpuOptions, Policy, SearchError};
use lanner_gpu::device::Device;
use std::sync::Arc;
use std::time::Instant;

/// Queries of the stream for each of those that are asked one by one.
const STREAMED: usize = 20;

pub fn run(setup: &Setup<'_>) -> Result<Findings> {
    let device: Arc<dyn Device> = Arc::new(Idle::like(setup.device.properties()));
    let options = GpuOptions::new(Box::new(move || Ok(Arc::clone(&device))));
    let engine = Engine::new(Arc::clone(&setup.index)).threads(cores()).policy(Policy::Gpu).gpu(options);
    engine.connect()?;
    let mut rows = Vec::new();
    for set in setup.first_log() {
        let asks = Asks { setup, engine: &engine, set };
        rows.extend([asks.plan()?, asks.submit()?, asks.search()?]);
        rows.extend(asks.stream()?);
    }
    let counters = engine.counters().expect("it has a GPU");
    let fallen_back = counters.fallen_back.load(std::sync::atomic::Ordering::Relaxed);
    if fallen_back > 0 {
        return Err(BenchError::Device { what: format!("the CPU answered {fallen_back} queries for the idle device") });
    }
    let figures = [("mean, us", "mean_us"), ("p50", "p50_us"), ("p99", "p99_us"), ("ns per query", "ns_a_query")];
    let labels = [&QUERIES[..], &["what"]].concat();
    let table = table("Overhead: with a device that does nothing", &rows, &labels, &figures).notes(&[
        "plan: planning alone, which is part of search. submit: the call, on the thread that makes it, one query at a time. \
         search: the call until its answer, which is empty. stream: a stream from plans on all cores. device: what the \
         thread of the device is busy meanwhile, without waiting.",
    ]);
    Ok(Findings::new(rows).table(table))
}

struct Asks<'a> {
    setup: &'a Setup<'a>,
    engine: &'a Engine,
    set: &'a LogSet,
}

impl Asks<'_> {
    /// Times something for each of many queries, after a tenth of them as a warm-up.
    fn each(&self, what: &str, mut ask: impl FnMut(usize) -> Result<f64>) -> Result<Measurement> {
        let count = self.setup.run.part.overhead;
        for number in 0..count.div_ceil(10) {
            ask(number % self.set.set.len())?;
        }
        let times = (0..count).map(|number| ask(number % self.set.set.len())).collect::<Result<Vec<f64>>>()?;
        Ok(with_delays(self.set.measurement("overhead", &[("what", &what)]), times))
    }

    fn plan(&self) -> Result<Measurement> {
        let planner = Planner::new(self.engine.index());
        self.each("plan", |number| {
            let (_, seconds) = timed(|| planner.plan(&self.set.set.queries[number])).map_err(SearchError::from)?;
            Ok(1e6 * seconds)
        })
    }

    fn submit(&self) -> Result<Measurement> {
        self.each("submit", |number| {
            let query = self.set.set.queries[number].clone();
            let (pending, seconds) = timed(|| self.engine.submit(query))?;
            pending.wait()?;
            Ok(1e6 * seconds)
        })
    }

    fn search(&self) -> Result<Measurement> {
        self.each("search", |number| Ok(1e6 * timed(|| self.engine.search(&self.set.set.queries[number]))?.1))
    }

    /// A stream, and what the thread of the device does for it.
    fn stream(&self) -> Result<[Measurement; 2]> {
        let (plans, count) = (Arc::clone(&self.set.set.plans), STREAMED * self.setup.run.part.overhead);
        let busy = || self.engine.counters().expect("it has a GPU").busy();
        let (start, busy_before) = (Instant::now(), busy());
        let plan = move |number: usize| plans[number % plans.len()].clone();
        for answer in self.engine.stream_plans(0..count, plan, |_, answer| answer.map(drop)) {
            answer?;
        }
        let times = [("stream", start.elapsed()), ("device", busy() - busy_before)];
        Ok(times.map(|(what, time)| {
            let nanoseconds = time.as_secs_f64() * 1e9 / count as f64;
            self.set.measurement("overhead", &[("what", &what)]).with("ns_a_query", nanoseconds)
        }))
    }
}
