//! Part `costs`: how far predicted times are off on queries that calibration has not seen, and how soon a change is
//! learnt.

use super::setup::{EngineOptions, LogSet, Setup};
use super::tables::{QUERIES, table};
use crate::error::Result;
use crate::experiments::Findings;
use crate::query_log::spread;
use crate::result::Measurement;
use lanner::internals::calibrate::{Errors, Timed};
use lanner::internals::query::cost::{Costs, Features, Metric, Route, mean_relative_error, r_squared};
use lanner::{Engine, Mode, Plan, Policy};
use std::sync::Arc;
use std::time::Duration;

/// How much slower a worker becomes, and from which share of that on it is relearnt.
const SLOWED: f64 = 3.0;
const LEARNT: f64 = 0.9;
/// Observations after which it counts as never relearnt.
const MOST_OBSERVATIONS: usize = 100_000;
/// cooperative's R^2 of LOS, UBOC and UBOCT.
const OF_PAPER: [f64; 3] = [0.63, 0.70, 0.01];

pub fn run(setup: &Setup<'_>) -> Result<Findings> {
    let cpu = Engine::new(Arc::clone(&setup.index));
    let gpu = setup.engine(EngineOptions::new(Policy::Gpu, 1))?;
    let (mut errors, mut relearning, mut metrics) = (Vec::new(), Vec::new(), Vec::new());
    for set in &setup.sets {
        let has_work = |plan: &&Plan| !plan.stages.is_empty();
        let plans: Vec<Plan> = set.set.plans.iter().filter(has_work).cloned().collect();
        let plans = spread(&plans, setup.run.part.predicted);
        let features: Vec<Features> = plans.iter().map(Features::of).collect();
        let mut times = Vec::new();
        for (route, engine) in [(Route::Cpu, &cpu), (Route::GpuSingle, &gpu)] {
            let time = || -> Result<Vec<Duration>> {
                Ok(Timed::each(engine, &plans)?.iter().map(|timed| timed.time).collect())
            };
            let (found, again) = (time()?, time()?);
            let measured = Measured { route, costs: &setup.costs, features: &features, times: &found, again: &again };
            errors.push(measured.errors(set));
            relearning.push(measured.relearning(set));
            times.push(found);
        }
        if set.set.questions.mode == Mode::And {
            metrics.extend(explained(set, &features, &times));
        }
    }
    let labels = [&QUERIES[..], &["route"]].concat();
    let figures = [
        ("queries", "queries"),
        ("mean time, us", "mean_us"),
        ("error", "error"),
        ("while learning", "learning"),
        ("measured again", "again"),
    ];
    let tables = [
        table("Predicted times: mean relative errors", &errors, &labels, &figures).notes(&[
            "Queries one at a time, median of three runs; calibration has not seen them. While learning: with corrections \
             that learn from each query before the next. Measured again: how far a second measurement of the same queries, \
             right after the first, differs from it. gpu-ir reports 0.20 for its CPU and 0.22 for its GPU.",
        ]),
        table("A worker that becomes three times slower", &relearning, &labels, &[("observations", "observations")])
            .notes(&["How many of the same queries, with three times their measured time, until predictions are 2.7 times as long."]),
        table("R^2 of the time that the GPU saves, AND", &metrics, &["log", "metric"], &[("here", "r_squared"), ("cooperative", "paper")]),
    ];
    let mut findings = Findings::new([errors, relearning, metrics].concat());
    findings.tables.extend(tables.into_iter().filter(|table| !table.rows.is_empty()));
    Ok(findings)
}

/// The times of plans on a route.
struct Measured<'a> {
    route: Route,
    costs: &'a Costs,
    features: &'a [Features],
    times: &'a [Duration],
    /// The same, measured once more.
    again: &'a [Duration],
}

impl Measured<'_> {
    fn errors(&self, set: &LogSet) -> Measurement {
        let Errors { error, learning } = Errors::of(self.costs, self.route, self.features, self.times);
        let mean = self.times.iter().sum::<Duration>().as_secs_f64() * 1e6 / self.times.len() as f64;
        set.measurement("costs", &[("route", &self.route)])
            .with("queries", self.times.len() as f64)
            .with("mean_us", mean)
            .with("error", error)
            .with("learning", learning)
            .with("again", mean_relative_error(self.again.iter().copied().zip(self.times.iter().copied())))
    }

    /// Learns the times as they are, then as those of a slower worker.
    fn relearning(&self, set: &LogSet) -> Measurement {
        let costs = self.costs.clone();
        let observe = |number: usize, factor: f64| {
            let at = number % self.times.len();
            costs.observe(costs.modelled(&self.features[at], self.route), self.route, self.times[at].mul_f64(factor));
        };
        (0..self.times.len().max(1000)).for_each(|number| observe(number, 1.0));
        let predict = || costs.predict(&self.features[0], self.route).as_secs_f64();
        let wanted = predict() * SLOWED * LEARNT;
        let mut observations = 0;
        while predict() < wanted && observations < MOST_OBSERVATIONS {
            observe(observations, SLOWED);
            observations += 1;
        }
        set.measurement("relearning", &[("route", &self.route)]).with("observations", observations as f64)
    }
}

/// How much of the difference between the times of the CPU and of the GPU each of cooperative's metrics explains.
fn explained(set: &LogSet, features: &[Features], times: &[Vec<Duration>]) -> Vec<Measurement> {
    let row = |(metric, paper): (Metric, f64)| {
        let pairs = (0..features.len()).map(|at| {
            let saved = times[0][at].as_secs_f64() - times[1][at].as_secs_f64();
            (metric.of(&features[at]), saved)
        });
        let row = set.measurement("metric", &[("metric", &metric.name())]);
        row.with("r_squared", r_squared(pairs)).with("paper", paper)
    };
    Metric::ALL.into_iter().zip(OF_PAPER).map(row).collect()
}
