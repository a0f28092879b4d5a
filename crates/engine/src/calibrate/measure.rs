//! Measures all routes: threads of the CPU beside each other, and meanwhile one thread that drives the GPU.

use super::grid::Grid;
use super::on_cpu::OnCpu;
use super::on_gpu::OnGpu;
use super::{Calibration, CalibrationError};
use crate::query::cost::{Features, Route, Sample};
use crate::query::plan::{Operation, Plan};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// The samples of a route and an operation.
pub struct Measured {
    /// The route.
    pub route: Route,
    /// The operation.
    pub operation: Operation,
    /// Plans or batches with their times.
    pub samples: Vec<Sample>,
}

/// The samples of all routes and operations.
pub struct Samples {
    measured: Vec<Measured>,
}

impl Default for Samples {
    fn default() -> Samples {
        let routes = Route::ALL.into_iter().flat_map(|route| [(route, Operation::And), (route, Operation::Or)]);
        let measured = routes.map(|(route, operation)| Measured { route, operation, samples: Vec::new() }).collect();
        Samples { measured }
    }
}

impl Samples {
    /// Those of a route and an operation.
    pub fn of(&mut self, route: Route, operation: Operation) -> &mut Vec<Sample> {
        let found = self.measured.iter_mut().find(|it| it.route == route && it.operation == operation);
        &mut found.expect("there is an entry for each route and operation").samples
    }

    /// Adds plans with their times.
    pub fn add(&mut self, route: Route, plans: &[Plan], times: impl Iterator<Item = Duration>) {
        for (plan, time) in plans.iter().zip(times) {
            let features = Features::of(plan);
            for operation in features.operations() {
                self.of(route, operation).push(Sample::of_plan(&features, operation, time));
            }
        }
    }

    fn append(&mut self, other: Samples) {
        for Measured { route, operation, mut samples } in other.measured {
            self.of(route, operation).append(&mut samples);
        }
    }
}

/// When measuring ends.
pub struct Deadline {
    pub budget: Duration,
    start: Instant,
    has_failed: AtomicBool,
}

impl Deadline {
    fn new(budget: Duration) -> Deadline {
        Deadline { budget, start: Instant::now(), has_failed: AtomicBool::new(false) }
    }

    /// Whether the time is over, or another thread has failed.
    pub fn is_over(&self) -> bool {
        self.start.elapsed() >= self.budget || self.has_failed.load(Ordering::Relaxed)
    }

    /// Ends the other threads if this one has failed.
    fn note<T, E>(&self, result: Result<T, E>) -> Result<T, E> {
        if result.is_err() {
            self.has_failed.store(true, Ordering::Relaxed);
        }
        result
    }
}

/// Measures until the time is over or there are enough samples.
pub fn measure(calibration: &Calibration<'_>) -> Result<Vec<Measured>, CalibrationError> {
    let Calibration { cpu, budget, queries, .. } = *calibration;
    let deadline = Deadline::new(budget);
    let grid = Grid::new(cpu.index(), queries)?;
    let mut samples = Samples::default();
    if grid.is_empty() {
        return Ok(samples.measured);
    }
    let threads = calibration.threads.max(1);
    let deadline = &deadline;
    std::thread::scope(|scope| {
        let start = |number: usize| {
            let on_cpu = OnCpu::new(cpu, grid.fork(1 + number as u64), deadline, threads);
            Ok(Builder::new().spawn_scoped(scope, || deadline.note(on_cpu.run()))?)
        };
        let on_cpu = (0..threads).map(start).collect::<Result<Vec<_>, CalibrationError>>();
        let on_cpu = deadline.note(on_cpu)?;
        let on_gpu = deadline.note(OnGpu::new(calibration, grid.fork(0), deadline).run());
        for thread in on_cpu {
            samples.append(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        samples.append(on_gpu?);
        Ok(samples.measured)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_fails_ends_the_others() {
        let deadline = Deadline::new(Duration::from_secs(3600));
        assert_eq!(deadline.note(Ok::<_, ()>(1)), Ok(1));
        assert!(!deadline.is_over());
        assert_eq!(deadline.note(Err::<(), _>(2)), Err(2));
        assert!(deadline.is_over());
    }

    #[test]
    fn time_passes() {
        assert!(Deadline::new(Duration::ZERO).is_over());
    }
}
