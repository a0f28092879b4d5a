//! The measured device, and an executor on it that must not fall back to the CPU.

use crate::error::{BenchError, Result};
use crate::statistics::timed;
use crate::suite::display_by_name;
use clap::ValueEnum;
use lanner::internals::executors::{Executor, GpuExecutor};
use lanner::internals::query::answer::{Place, Scored};
use lanner::{Answer, Index, Plan};
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

/// An executor whose answers all come from the device.
pub struct OnDevice {
    executor: GpuExecutor,
    /// The last failure that the executor reported.
    reported: Arc<Mutex<String>>,
}

impl OnDevice {
    /// Uploads the resident lists for an executor, which `usage` configures.
    pub fn connect(
        index: &Arc<Index>,
        device: &Arc<dyn Device>,
        usage: impl FnOnce(GpuExecutor) -> GpuExecutor,
    ) -> Result<OnDevice> {
        let (device, reported) = (Arc::clone(device), Arc::new(Mutex::new(String::new())));
        let executor = usage(GpuExecutor::new(Arc::clone(index), Box::new(move || Ok(Arc::clone(&device)))));
        let last = Arc::clone(&reported);
        let report = move |what: &str| what.clone_into(&mut last.lock().unwrap_or_else(PoisonError::into_inner));
        let executor = executor.report(Box::new(report));
        executor.connect()?;
        Ok(OnDevice { executor, reported })
    }

    /// Answers plans; it is an error if the CPU answered one of them.
    pub fn answer(&self, plans: &[Plan]) -> Result<Vec<Answer<Scored>>> {
        let answers = self.executor.run(plans)?;
        let counters = self.executor.counters();
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
        self.executor.counters().answered.load(Ordering::Relaxed)
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
    use lanner::internals::query::answer::{Step, Trace};

    #[test]
    fn the_kernels_of_a_batch_count_once() {
        let answer = |durations: &[u64]| {
            let step = |&ms: &u64| Step { name: "scatter", place: Place::Gpu, duration: Duration::from_millis(ms) };
            Answer { trace: Trace { steps: durations.iter().map(step).collect() }, ..Answer::default() }
        };
        let answers = [answer(&[2, 3]), answer(&[]), answer(&[4]), answer(&[2, 3]), answer(&[4])];
        assert_eq!(kernel_seconds(&answers), 0.009);
    }
}
