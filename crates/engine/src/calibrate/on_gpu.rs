//! Measures plans on the GPU, alone and in batches, and compares the answers.
//!
//! Every sixteenth plan that is answered alone is also answered by the CPU, and some plans of every batch are also
//! answered alone. So a wrong answer is found, and the CPU, which takes a hundred times as long as a batch, does
//! little.

use super::grid::{Cell, Grid};
use super::measure::{Deadline, Samples};
use super::shares::{Share, Shares};
use super::timing::{Timed, time_batch};
use super::{Calibration, CalibrationError};
use crate::engine::Engine;
use crate::executors::Executor;
use crate::query::answer::{Answer, Scored};
use crate::query::cost::{Costs, Features, Route, Sample};
use crate::query::plan::{Operation, Plan};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// What each route gets. Reading host memory takes the longest by far, and a batch is one sample.
const SHARES: [Share; 4] = [
    Share { route: Route::GpuSingle, weight: 0.35, wanted: 2000, enough: 6000 },
    Share { route: Route::GpuBatch, weight: 0.2, wanted: 300, enough: 2000 },
    Share { route: Route::GpuHost, weight: 0.25, wanted: 200, enough: 2000 },
    Share { route: Route::GpuHostSingle, weight: 0.2, wanted: 1000, enough: 4000 },
];
/// Plans that are answered alone in turns.
const IN_TURNS: usize = 64;
/// Of this many plans answered alone, one is compared with the CPU.
const PLANS_PER_COMPARED: usize = 16;
/// Plans of a batch that are compared with answers of plans alone.
const COMPARED: usize = 4;
/// Plans of a cell that say how long a batch of it takes, before the others are drawn.
const PROBED: usize = 8;

/// The thread that drives the GPU.
pub struct OnGpu<'a> {
    calibration: &'a Calibration<'a>,
    grid: Grid<'a>,
    deadline: &'a Deadline,
    shares: Shares,
    /// The formulas, which say roughly what takes long.
    formulas: Costs,
    samples: Samples,
}

impl<'a> OnGpu<'a> {
    pub fn new(calibration: &'a Calibration<'a>, grid: Grid<'a>, deadline: &'a Deadline) -> OnGpu<'a> {
        let has = |share: &Share| match share.route {
            Route::Cpu => false,
            Route::GpuSingle | Route::GpuBatch => calibration.resident.is_some(),
            Route::GpuHost | Route::GpuHostSingle => calibration.in_host_memory.is_some(),
        };
        let shares: Vec<Share> = SHARES.into_iter().filter(has).collect();
        let shares = Shares::new(deadline.budget, &shares);
        OnGpu { calibration, grid, deadline, shares, formulas: Costs::default(), samples: Samples::default() }
    }

    /// Measures until the time is over or there are enough samples.
    pub fn run(mut self) -> Result<Samples, CalibrationError> {
        let Calibration { resident, in_host_memory, .. } = *self.calibration;
        while let Some((route, operation)) = self.shares.next()
            && !self.deadline.is_over()
        {
            let start = Instant::now();
            let samples = match (route, resident, in_host_memory) {
                (Route::GpuSingle, Some(engine), _) | (Route::GpuHostSingle, _, Some(engine)) => {
                    self.measure_singles(engine, route, operation)?
                }
                (Route::GpuBatch, Some(engine), _) | (Route::GpuHost, _, Some(engine)) => {
                    self.measure_batch(engine, route, operation)?
                }
                _ => break,
            };
            self.shares.spend((route, operation), start.elapsed(), samples);
        }
        Ok(self.samples)
    }

    /// Times some plans one by one, and returns how many.
    fn measure_singles(
        &mut self,
        engine: &Engine,
        route: Route,
        operation: Operation,
    ) -> Result<usize, CalibrationError> {
        let (k, most) = (self.grid.k(), self.shares.most(route));
        let mut plans = Vec::with_capacity(IN_TURNS);
        while plans.len() < IN_TURNS.min(self.calibration.batch) && !self.deadline.is_over() {
            let plan = self.grid.single(operation, k)?;
            let predicted = self.formulas.predict(&Features::of(&plan), route);
            if self.grid.keeps(predicted, most) {
                plans.push(plan);
            }
        }
        let timed = on_device(engine, &plans, || Ok(Timed::each(engine, &plans)?))?;
        for (plan, timed) in plans.iter().zip(&timed).step_by(PLANS_PER_COMPARED) {
            compare(&self.calibration.cpu.run(std::slice::from_ref(plan))?[0], &timed.answer)?;
        }
        self.samples.add(route, &plans, timed.iter().map(|timed| timed.time));
        Ok(plans.len())
    }

    /// Times a batch of plans of one cell, which share its time. Returns how many samples it gave.
    fn measure_batch(
        &mut self,
        engine: &Engine,
        route: Route,
        operation: Operation,
    ) -> Result<usize, CalibrationError> {
        let Some(plans) = self.draw_batch(route, operation)? else {
            return Ok(0);
        };
        let (answers, time) = on_device(engine, &plans, || Ok(time_batch(engine, &plans)?))?;
        let Calibration { cpu, resident, .. } = *self.calibration;
        for (plan, answer) in plans.iter().zip(&answers).take(COMPARED) {
            let plan = std::slice::from_ref(plan);
            let expected = match resident {
                Some(resident) => on_device(resident, plan, || Ok(resident.run(plan)?))?,
                None => cpu.run(plan)?,
            };
            compare(&expected[0], answer)?;
        }
        let features: Vec<Features> = plans.iter().map(Features::of).collect();
        self.samples.of(route, operation).push(Sample::of_batch(&features, operation, time));
        Ok(1)
    }

    /// The plans of a batch; `None` if the time is over.
    fn draw_batch(&mut self, route: Route, operation: Operation) -> Result<Option<Vec<Plan>>, CalibrationError> {
        let (batch, most) = (self.calibration.batch, self.shares.most(route));
        while !self.deadline.is_over() {
            let k = self.grid.k();
            let cell = self.grid.cell(operation, k);
            let mut plans = self.draw(cell, batch.min(PROBED))?;
            let probed: Duration = plans.iter().map(|plan| self.formulas.predict(&Features::of(plan), route)).sum();
            if self.grid.keeps(probed.mul_f64(batch as f64 / plans.len() as f64), most) {
                plans.extend(self.draw(cell, batch - plans.len())?);
                return Ok(Some(plans));
            }
        }
        Ok(None)
    }

    fn draw(&mut self, cell: Cell, count: usize) -> Result<Vec<Plan>, CalibrationError> {
        (0..count).map(|_| Ok(self.grid.plan(cell)?)).collect()
    }
}

/// Runs something on a GPU, and fails if the CPU had to answer for it.
fn on_device<T>(
    engine: &Engine,
    plans: &[Plan],
    run: impl FnOnce() -> Result<T, CalibrationError>,
) -> Result<T, CalibrationError> {
    let elsewhere = || {
        let counters = engine.counters();
        counters.map_or(0, |it| it.unsupported.load(Ordering::Relaxed) + it.fallen_back.load(Ordering::Relaxed))
    };
    let before = elsewhere();
    let result = run()?;
    match elsewhere() == before {
        true => Ok(result),
        false => Err(CalibrationError::NotOnGpu { plans: plans.len() }),
    }
}

fn compare(expected: &Answer<Scored>, answer: &Answer<Scored>) -> Result<(), CalibrationError> {
    match expected.hits == answer.hits {
        true => Ok(()),
        false => Err(CalibrationError::Disagreement),
    }
}
