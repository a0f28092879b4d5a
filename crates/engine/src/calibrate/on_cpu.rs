//! Measures plans on one core of the CPU. Several threads do so beside each other, each with its own plans.

use super::CalibrationError;
use super::grid::Grid;
use super::measure::{Deadline, Samples};
use super::shares::{Share, Shares};
use super::timing::{RUNS, Timed, alone};
use crate::engine::Engine;
use crate::query::cost::{Route, cpu_time};
use crate::query::plan::{Operation, Plan};
use std::time::{Duration, Instant};

/// Plans that are timed in turns, so that a list is not still in the caches from the run before. All have the same
/// operation and k: among other plans, a short AND takes half as long again, because its code is no longer in the
/// caches.
const IN_TURNS: usize = 512;
/// The samples of all threads for an operation that the time should suffice for.
const WANTED: usize = 3000;
/// The most samples of all threads for an operation; more hardly improve a model.
const ENOUGH: usize = 20_000;
/// Plans that are predicted to take longer than this, in nanoseconds for each document of the index, are drawn less
/// often: about twice the mean of Terabyte-2005 over 8.8 million documents (105 us for an AND, 623 us for an OR). With
/// more long plans among them, short ones would find less in the caches than they do in a log.
const LONG_AND: f64 = 0.03;
const LONG_OR: f64 = 0.15;
/// No plan up to this long is drawn less often, however small the index is or little time there is.
const SHORT: Duration = Duration::from_micros(20);
/// Turns that fit in the time: no turn is predicted to take more than this part of it.
const FEWEST_TURNS: u32 = 16;

/// One of the threads.
pub struct OnCpu<'a> {
    engine: Engine,
    grid: Grid<'a>,
    deadline: &'a Deadline,
    shares: Shares,
    longest_turn: Duration,
}

impl<'a> OnCpu<'a> {
    /// One of `threads` threads.
    pub fn new(engine: &Engine, grid: Grid<'a>, deadline: &'a Deadline, threads: usize) -> OnCpu<'a> {
        let each = |samples: usize| samples.div_ceil(threads);
        let share = Share { route: Route::Cpu, weight: 1.0, wanted: each(WANTED), enough: each(ENOUGH) };
        let shares = Shares::new(deadline.budget, &[share]);
        OnCpu { engine: alone(engine), grid, deadline, shares, longest_turn: deadline.budget / FEWEST_TURNS }
    }

    /// Measures until the time is over or there are enough samples.
    pub fn run(mut self) -> Result<Samples, CalibrationError> {
        let mut samples = Samples::default();
        while let Some((route, operation)) = self.shares.next()
            && !self.deadline.is_over()
        {
            let start = Instant::now();
            let plans = self.draw(operation)?;
            let timed = Timed::each(&self.engine, &plans)?;
            samples.add(route, &plans, timed.iter().map(|timed| timed.time));
            self.shares.spend((route, operation), start.elapsed(), plans.len());
        }
        Ok(samples)
    }

    /// The plans of a turn.
    fn draw(&mut self, operation: Operation) -> Result<Vec<Plan>, CalibrationError> {
        let (k, most) = (self.grid.k(), self.most(operation));
        let (mut plans, mut predicted) = (Vec::with_capacity(IN_TURNS), Duration::ZERO);
        while plans.len() < IN_TURNS && predicted < self.longest_turn && !self.deadline.is_over() {
            let plan = self.grid.single(operation, k)?;
            let time = cpu_time(&plan);
            if self.grid.keeps(time, most) {
                predicted += time * RUNS as u32;
                plans.push(plan);
            }
        }
        Ok(plans)
    }

    /// The most time that a plan should take.
    fn most(&self, operation: Operation) -> Duration {
        let long = match operation {
            Operation::And => LONG_AND,
            Operation::Or => LONG_OR,
        };
        let long = Duration::from_nanos((long * f64::from(self.engine.index().documents())) as u64);
        long.min(self.shares.most(Route::Cpu)).max(SHORT)
    }
}
