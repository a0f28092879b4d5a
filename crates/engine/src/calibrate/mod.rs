//! Calibration: measures how long plans take on each route over this index and on this machine, and fits costs.
//!
//! `grid.rs` draws plans from the terms of the index, `on_cpu.rs` and `on_gpu.rs` time them, `measure.rs` runs both at
//! the same time, and `folder.rs` keeps the costs for later processes. The time is a budget, which `shares.rs` divides
//! among routes and operations. Plans are drawn at random, so that whatever is measured within it covers the whole
//! grid.

mod folder;
mod grid;
mod measure;
mod on_cpu;
mod on_gpu;
mod shares;
mod timing;

pub use folder::{CalibrationError, Folder, configuration_folder};
pub use measure::Measured;
pub use timing::Timed;

use crate::engine::Engine;
use crate::query::cost::{Costs, Features, Model, Route, Sample, mean_relative_error};
use crate::query::plan::Plan;
use lanner_index::format::IndexError;
use serde::Serialize;
use std::time::Duration;

/// Plans of a measured batch.
const BATCH: usize = 256;
/// The same for the simulator, which takes long for each.
const SIMULATED_BATCH: usize = 8;

/// What is measured, and for how long.
#[derive(Clone, Copy)]
pub struct Calibration<'a> {
    /// One core of the CPU: an engine with one thread and without a GPU.
    pub cpu: &'a Engine,
    /// Threads that measure the CPU at the same time. Times depend on what other cores do to caches and memory, so half
    /// of the cores give the times of a machine at work, and leave the others to the GPU.
    pub threads: usize,
    /// A GPU with resident lists, all of them.
    pub resident: Option<&'a Engine>,
    /// A GPU that reads all lists in host memory, or uploads them where it cannot.
    pub in_host_memory: Option<&'a Engine>,
    /// Queries of a log like those that will be asked, from which most plans are drawn that are answered alone.
    pub queries: &'a [String],
    /// Plans of a measured batch.
    pub batch: usize,
    /// The time for all measurements.
    pub budget: Duration,
}

/// What calibration has found.
pub struct Calibrated {
    /// The costs. Routes with too few samples keep their formulas.
    pub costs: Costs,
    /// How good they are.
    pub fits: Vec<Fit>,
}

/// How good the costs of a route and an operation are.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Fit {
    /// The route.
    pub route: &'static str,
    /// The operation.
    pub operation: &'static str,
    /// Plans measured, or batches.
    pub samples: usize,
    /// The mean relative error of a model fitted to half of the samples, on the other half; `None` if they are too few.
    pub error: Option<f64>,
    /// The leaves of the model that was fitted to all samples; 0 if they were too few, and the formula stays.
    pub leaves: usize,
}

impl<'a> Calibration<'a> {
    /// Measures the CPU on half of the cores, and no GPU until `resident` and `in_host_memory` are set.
    pub fn new(cpu: &'a Engine, budget: Duration) -> Calibration<'a> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = (cores / 2).max(1);
        Calibration { cpu, threads, resident: None, in_host_memory: None, queries: &[], batch: BATCH, budget }
    }

    /// With batches for the simulator, if it is the device.
    pub fn simulated(self, is_simulated: bool) -> Calibration<'a> {
        Calibration { batch: if is_simulated { SIMULATED_BATCH } else { BATCH }, ..self }
    }

    /// Measures and fits. It fails if the index cannot be read, or if a GPU gives another answer than the CPU.
    pub fn run(&self) -> Result<Calibrated, CalibrationError> {
        let measured = measure::measure(self)?;
        Ok(Calibrated::of(&measured))
    }
}

impl Calibrated {
    /// Fits costs to what was measured.
    pub fn of(measured: &[Measured]) -> Calibrated {
        let mut calibrated = Calibrated { costs: Costs::default(), fits: Vec::new() };
        for Measured { route, operation, samples } in measured.iter().filter(|it| !it.samples.is_empty()) {
            let model = Model::fit(samples);
            calibrated.fits.push(Fit {
                route: route.name(),
                operation: operation.name(),
                samples: samples.len(),
                error: held_out_error(samples),
                leaves: model.as_ref().map_or(0, Model::leaves),
            });
            if let Some(model) = model {
                calibrated.costs = calibrated.costs.with(*route, *operation, model);
            }
        }
        calibrated
    }
}

/// How far predictions for some plans are off: mean relative errors.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Errors {
    /// As the models predict.
    pub error: f64,
    /// With corrections that learn from each plan before the next.
    pub learning: f64,
}

impl Errors {
    /// Measures plans on as many threads of the CPU as calibration does.
    pub fn on_cpu(costs: &Costs, calibration: &Calibration<'_>, plans: &[Plan]) -> Result<Errors, CalibrationError> {
        let timed = Timed::in_threads(calibration.cpu, calibration.threads, plans)?;
        Ok(Errors::of_plans(costs, Route::Cpu, plans, &timed))
    }

    /// Measures plans that a GPU answers one by one.
    pub fn on_gpu(costs: &Costs, gpu: &Engine, plans: &[Plan]) -> Result<Errors, IndexError> {
        Ok(Errors::of_plans(costs, Route::GpuSingle, plans, &Timed::each(gpu, plans)?))
    }

    fn of_plans(costs: &Costs, route: Route, plans: &[Plan], timed: &[Timed]) -> Errors {
        let times: Vec<Duration> = timed.iter().map(|timed| timed.time).collect();
        let features: Vec<Features> = plans.iter().map(Features::of).collect();
        Errors::of(costs, route, &features, &times)
    }

    /// The errors for plans with these features, given their times on a route.
    pub fn of(costs: &Costs, route: Route, features: &[Features], times: &[Duration]) -> Errors {
        let predict = |costs: &Costs, learns: bool| {
            let pairs = features.iter().zip(times).map(|(features, &time)| {
                let predicted = costs.predict(features, route);
                if learns {
                    costs.observe(costs.modelled(features, route), route, time);
                }
                (predicted, time)
            });
            mean_relative_error(pairs)
        };
        Errors { error: predict(costs, false), learning: predict(&costs.clone(), true) }
    }
}

/// The error on every other sample of a model that was fitted to the rest.
fn held_out_error(samples: &[Sample]) -> Option<f64> {
    let half = |first: usize| samples.iter().skip(first).step_by(2).copied().collect::<Vec<_>>();
    Model::fit(&half(0)).map(|model| model.error(&half(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executors::{GpuOptions, Keep};
    use lanner_index::build::{BuildOptions, Quiet, build};
    use lanner_index::corpus::{Corpus, CorpusOptions};
    use lanner_index::open::Index;
    use std::sync::Arc;
    use tempfile::TempDir;

    /// An index of documents whose words have all frequencies: word n is in every n-th document.
    pub(super) fn index_of(documents: usize) -> (TempDir, Index) {
        let folder = tempfile::tempdir().unwrap();
        let text = |number: usize| {
            let words = (1..100).filter(|&word| number.is_multiple_of(word));
            words.map(|word| format!("word{word} ")).collect::<String>()
        };
        let documents = (0..documents).map(|number| (number.to_string(), String::new(), text(number)));
        let corpus = Corpus::from_documents(documents.collect::<Vec<_>>(), CorpusOptions::default()).unwrap();
        let options = BuildOptions { allow_empty: true, ..BuildOptions::default() };
        build(folder.path(), corpus, &options, &Quiet).unwrap();
        let index = Index::open(folder.path()).unwrap();
        (folder, index)
    }

    #[test]
    fn the_cpu_is_calibrated_alone() {
        let (_folder, index) = index_of(2000);
        let cpu = Engine::new(Arc::new(index));
        let budget = Duration::from_millis(300);
        let calibrated = Calibration { threads: 2, batch: 8, ..Calibration::new(&cpu, budget) }.run().unwrap();
        let fitted: Vec<_> = calibrated.fits.iter().map(|fit| (fit.route, fit.operation)).collect();
        assert_eq!(fitted, [("cpu", "and"), ("cpu", "or")]);
        assert!(
            calibrated
                .fits
                .iter()
                .all(|fit| fit.samples > 20 && fit.leaves > 0 && fit.error.is_some_and(f64::is_finite))
        );
    }

    #[test]
    #[cfg_attr(not(simulator), ignore = "needs the simulator")]
    fn every_route_of_a_device_is_calibrated() {
        let (_folder, index) = index_of(300);
        let index = Arc::new(index);
        let engine = || Engine::new(Arc::clone(&index));
        let resident = engine().gpu(GpuOptions::simulator().unwrap());
        let in_host_memory = engine().gpu(GpuOptions::simulator().unwrap().keep(Keep::Nothing));
        let calibration = Calibration {
            cpu: &engine(),
            threads: 1,
            resident: Some(&resident),
            in_host_memory: Some(&in_host_memory),
            queries: &["word3 word50".to_owned()],
            batch: 4,
            budget: Duration::from_secs(3),
        };
        let calibrated = calibration.run().unwrap();
        let routes: Vec<&str> = calibrated.fits.iter().map(|fit| fit.route).collect();
        assert!(Route::ALL.iter().all(|route| routes.contains(&route.name())), "{routes:?}");
        assert_eq!(resident.device_name().as_deref(), Some("simulator"));
    }

    #[test]
    fn an_empty_index_gives_no_samples() {
        let (_folder, index) = index_of(0);
        let cpu = Engine::new(Arc::new(index));
        let budget = Duration::from_millis(50);
        let calibrated = Calibration { threads: 2, batch: 8, ..Calibration::new(&cpu, budget) }.run().unwrap();
        assert!(calibrated.fits.is_empty());
    }
}
