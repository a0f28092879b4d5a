//! The measured device, and an engine on it that must not fall back to the CPU.

use crate::error::{BenchError, Result};
use crate::statistics::timed;
use crate::suite::display_by_name;
use clap::ValueEnum;
use lanner::answer::Place;
use lanner::internals::executors::{Counters, Executor};
use lanner::internals::query::answer::Scored;
use lanner::{Answer, Engine, GpuOptions, Index, Plan};
use lanner_gpu::cuda::Cuda;
use lanner_gpu::device::Device;
use lanner_gpu::error::GpuError;
use lanner_gpu::simulator::Simulator;
use std::collections::HashSet;
use std::ops::AddAssign;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DeviceName {
    /// The first device of NVIDIA's driver.
    Cuda,
    /// The simulator, for tests.
    Simulator,
}

impl DeviceName {
    pub fn open(self) -> Result<Arc<dyn Device>, GpuError> {
        Ok(match self {
            DeviceName::Cuda => Arc::new(Cuda::open(0)?),
            DeviceName::Simulator => Arc::new(Simulator::new(1)),
        })
    }
}

display_by_name!(DeviceName);

/// The time of something in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timed {
    /// From the call to the result on the host.
    pub host: f64,
    /// The share of the device; 0 on the CPU.
    pub device: f64,
}

impl AddAssign for Timed {
    fn add_assign(&mut self, other: Timed) {
        *self = Timed { host: self.host + other.host, device: self.device + other.device };
    }
}

/// An engine whose answers all come from the device.
pub struct OnDevice {
    engine: Engine,
    /// The last failure that the engine reported.
    reported: Arc<Mutex<String>>,
}

impl OnDevice {
    /// Uploads the resident lists for an engine whose GPU `usage` configures.
    pub fn connect(
        index: &Arc<Index>,
        device: &Arc<dyn Device>,
        usage: impl FnOnce(GpuOptions) -> GpuOptions,
    ) -> Result<OnDevice> {
        let (device, reported) = (Arc::clone(device), Arc::new(Mutex::new(String::new())));
        let options = usage(GpuOptions::new(Box::new(move || Ok(Arc::clone(&device)))));
        let last = Arc::clone(&reported);
        let report = move |what: &str| what.clone_into(&mut last.lock().unwrap_or_else(PoisonError::into_inner));
        let engine = Engine::new(Arc::clone(index)).gpu(options.report(Box::new(report)));
        engine.connect()?;
        Ok(OnDevice { engine, reported })
    }

    /// Answers plans; it is an error if the CPU answered one of them.
    pub fn answer(&self, plans: &[Plan]) -> Result<Vec<Answer<Scored>>> {
        let answers = self.engine.run(plans)?;
        let counters = self.counters();
        let [unsupported, fallen_back, failures] = [&counters.unsupported, &counters.fallen_back, &counters.failures]
            .map(|count| count.load(Ordering::Relaxed));
        if unsupported + fallen_back + failures > 0 {
            let reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
            let what = format!(
                "the CPU answered for the GPU: {unsupported} plans that the GPU does not support, {fallen_back} after \
                 {failures} failures; {}",
                if reported.is_empty() { "no failure was reported" } else { reported.as_str() }
            );
            return Err(BenchError::Device { what });
        }
        Ok(answers)
    }

    /// Answers plans, and measures the time.
    pub fn time(&self, plans: &[Plan]) -> Result<(Vec<Answer<Scored>>, Timed)> {
        let (answers, host) = timed(|| self.answer(plans))?;
        let device = kernel_seconds(&answers);
        Ok((answers, Timed { host, device }))
    }

    /// Number of plans that the device has answered.
    pub fn answered(&self) -> u64 {
        self.counters().answered.load(Ordering::Relaxed)
    }

    fn counters(&self) -> &Counters {
        self.engine.counters().expect("it has a GPU")
    }
}

/// Returns the seconds of kernels for the answers of one call. All answers of a batch carry its steps, so that each
/// batch is counted once.
fn kernel_seconds(answers: &[Answer<Scored>]) -> f64 {
    let steps_of = |answer: &Answer<Scored>| {
        let on_device = answer.trace.steps.iter().filter(|step| step.place != Place::Cpu);
        on_device.map(|step| (step.name, step.duration)).collect::<Vec<_>>()
    };
    let batches: HashSet<_> = answers.iter().map(steps_of).collect();
    batches.iter().flatten().map(|(_, duration)| *duration).sum::<Duration>().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanner::answer::{Step, Trace};
    use std::time::Instant;

    #[test]
    fn the_kernels_of_a_batch_count_once() {
        let answer = |durations: &[u64]| {
            let started = Instant::now();
            let step = |&ms: &u64| {
                let duration = Duration::from_millis(ms);
                Step { name: "scatter", place: Place::Gpu, started, duration }
            };
            let trace = Trace { arrived: None, steps: durations.iter().map(step).collect() };
            Answer { trace, ..Answer::default() }
        };
        let answers = [answer(&[2, 3]), answer(&[]), answer(&[4]), answer(&[2, 3]), answer(&[4])];
        assert_eq!(kernel_seconds(&answers), 0.009);
    }
}
