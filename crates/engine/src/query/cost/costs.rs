//! The costs of all routes: which time a plan will take where.

use super::correction::Correction;
use super::features::Features;
use super::model::Model;
use crate::query::plan::Operation;
use std::fmt;
use std::time::Duration;

/// How a query is answered: on which processor, and with which others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Route {
    /// On one core of the CPU.
    Cpu,
    /// Alone on the GPU, with resident lists.
    GpuSingle,
    /// In a large batch on the GPU, with resident lists: its share of the time of the batch.
    GpuBatch,
    /// In a large batch on the GPU that reads its lists in host memory, or uploads them: its share of the time of the batch.
    GpuHost,
    /// Alone on the GPU, with its lists in host memory.
    GpuHostSingle,
}

impl Route {
    /// Every route.
    pub const ALL: [Route; 5] = [Route::Cpu, Route::GpuSingle, Route::GpuBatch, Route::GpuHost, Route::GpuHostSingle];

    /// Its name in files and tables.
    pub fn name(self) -> &'static str {
        match self {
            Route::Cpu => "cpu",
            Route::GpuSingle => "gpu-single",
            Route::GpuBatch => "gpu-batch",
            Route::GpuHost => "gpu-host",
            Route::GpuHostSingle => "gpu-host-single",
        }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Whether a GPU answers a plan alone or with many others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Together {
    /// Alone.
    Alone,
    /// In a large batch.
    InBatch,
}

/// Both operations, in the order of [`Costs`]'s tables.
pub(super) const OPERATIONS: [Operation; 2] = [Operation::And, Operation::Or];

/// Predicts times. Threads share it: observing needs no lock.
///
/// The default has formulas with the figures of one core at 2.8 GHz and of an H200, good to a factor of two or three;
/// corrections then learn what this machine needs.
#[derive(Clone, Debug)]
pub struct Costs {
    /// By route and operation.
    models: [[Model; 2]; 5],
    corrections: [[Correction; 2]; 5],
    /// The corrections of [`Route::Cpu`] while other cores are busy too, which slows all of them down. If there were one
    /// correction for both cases, a CPU that was busy would be thought to be slow when it no longer is, and nothing
    /// would show that for as long as the GPU gets all queries.
    busy: [Correction; 2],
}

impl Default for Costs {
    fn default() -> Costs {
        Costs {
            models: Route::ALL.map(|route| OPERATIONS.map(|operation| Model::of_formula(route, operation))),
            corrections: Default::default(),
            busy: Default::default(),
        }
    }
}

/// What the models say about a plan on a route, in nanoseconds, for each operation and without correction: small enough
/// to travel with the plan until its time is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Modelled {
    nanoseconds: [f32; 2],
}

impl Costs {
    /// How long the CPU answers before a GPU is opened. It took 0.5 to 0.7 s on an H200 to open it and to make an index of
    /// some gigabytes resident (`lanner-bench run gpu`, kind `connect`); a first answer takes 0.15 s.
    pub const OPENING: Duration = Duration::from_millis(500);

    /// Replaces the model of a route and an operation.
    pub fn with(mut self, route: Route, operation: Operation, model: Model) -> Costs {
        self.models[route as usize][index_of(operation)] = model;
        self
    }

    /// The model of a route and an operation.
    pub fn model(&self, route: Route, operation: Operation) -> &Model {
        &self.models[route as usize][index_of(operation)]
    }

    /// Predicts how long a plan takes on a route. An AND+OR counts as both: few ANDs of such queries have k hits.
    pub fn predict(&self, features: &Features, route: Route) -> Duration {
        self.corrected(self.modelled(features, route), route)
    }

    /// Predicts how long a plan takes on one core of the CPU, given whether others are busy.
    pub fn predict_on_cpu(&self, features: &Features, is_busy: bool) -> Duration {
        match is_busy {
            true => corrected(self.modelled(features, Route::Cpu), &self.busy),
            false => self.predict(features, Route::Cpu),
        }
    }

    /// The prediction without correction.
    pub fn modelled(&self, features: &Features, route: Route) -> Modelled {
        let mut modelled = Modelled::default();
        for operation in features.operations() {
            modelled.nanoseconds[index_of(operation)] = self.model_ns(features, route, operation) as f32;
        }
        modelled
    }

    /// The prediction without correction for a plan on the GPU that reads a share of its bytes in host memory: between
    /// those of the routes with all lists resident and with none. The nearer of both learns from the time that it takes.
    pub fn modelled_on_gpu(&self, features: &Features, missing: f64, together: Together) -> (Modelled, Route) {
        let [resident, host] = match together {
            Together::Alone => [Route::GpuSingle, Route::GpuHostSingle],
            Together::InBatch => [Route::GpuBatch, Route::GpuHost],
        };
        let route = if missing > 0.5 { host } else { resident };
        // Both models only where both count: an idle core has neither in its caches.
        if missing <= 0.0 || missing >= 1.0 {
            return (self.modelled(features, route), route);
        }
        let [one, other] = [resident, host].map(|route| self.modelled(features, route).nanoseconds);
        let between = |(one, other): (f32, f32)| one + (other - one) * missing as f32;
        let nanoseconds = [between((one[0], other[0])), between((one[1], other[1]))];
        (Modelled { nanoseconds }, route)
    }

    /// A prediction with what was learnt meanwhile.
    pub fn corrected(&self, modelled: Modelled, route: Route) -> Duration {
        corrected(modelled, &self.corrections[route as usize])
    }

    /// Learns from the time that a plan took on a route. Lock-free; the plan may have been predicted long before.
    pub fn observe(&self, modelled: Modelled, route: Route, observed: Duration) {
        self.observe_batch(std::iter::once((modelled, route)), observed);
    }

    /// Learns from the time that a plan took on one core of the CPU, given whether others were busy.
    pub fn observe_on_cpu(&self, modelled: Modelled, is_busy: bool, observed: Duration) {
        match is_busy {
            true => observe(std::iter::once((modelled, 0)), std::slice::from_ref(&self.busy), observed),
            false => self.observe(modelled, Route::Cpu, observed),
        }
    }

    /// Learns from the time that a batch took, which its plans share, whatever their routes.
    pub fn observe_batch(&self, plans: impl Iterator<Item = (Modelled, Route)>, observed: Duration) {
        observe(plans.map(|(modelled, route)| (modelled, route as usize)), &self.corrections, observed);
    }

    /// The prediction without correction.
    fn model_ns(&self, features: &Features, route: Route, operation: Operation) -> f64 {
        match features.stage(operation) {
            None => 0.0,
            // Nobody measured these.
            Some(stage) if route == Route::Cpu && !stage.is_default => stage.coarse_ns,
            Some(_) => self.model(route, operation).predict(&features.values(operation)),
        }
    }
}

/// A prediction with the corrections of its operations.
fn corrected(modelled: Modelled, corrections: &[Correction; 2]) -> Duration {
    let factors = corrections.iter().map(Correction::factor);
    nanoseconds(modelled.nanoseconds.iter().zip(factors).map(|(&time, factor)| f64::from(time) * factor).sum())
}

/// Corrects by the time that some plans took together, each with the number of its corrections.
fn observe(plans: impl Iterator<Item = (Modelled, usize)>, corrections: &[[Correction; 2]], observed: Duration) {
    let mut counts = [[0; 2]; Route::ALL.len()];
    let mut model_ns = 0.0;
    for (Modelled { nanoseconds }, number) in plans {
        for (count, time) in counts[number].iter_mut().zip(nanoseconds) {
            model_ns += f64::from(time);
            *count += usize::from(time > 0.0);
        }
    }
    let observed = observed.as_nanos() as f64;
    for (correction, count) in corrections.iter().flatten().zip(counts.into_iter().flatten()).filter(|it| it.1 > 0) {
        correction.observe(model_ns, observed, count);
    }
}

fn index_of(operation: Operation) -> usize {
    match operation {
        Operation::And => 0,
        Operation::Or => 1,
    }
}

/// A time from a number that is neither negative nor too large, whatever the model gave.
fn nanoseconds(number: f64) -> Duration {
    Duration::from_nanos(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::plan::tests::plan_over;

    #[test]
    fn an_and_or_costs_both_of_its_stages() {
        let (costs, plan) = (Costs::default(), plan_over(0..1_000_000));
        let stages: Vec<Features> = plan.staged().map(|plan| Features::of(&plan)).collect();
        for route in Route::ALL {
            let each: Duration = stages.iter().map(|features| costs.predict(features, route)).sum();
            let both = costs.predict(&Features::of(&plan), route);
            assert!(both.abs_diff(each) <= Duration::from_nanos(2), "{route}: {both:?} and {each:?}");
        }
    }

    #[test]
    fn what_is_observed_changes_the_predictions_of_its_route_and_operation() {
        let (costs, plan) = (Costs::default(), plan_over(0..1_000_000));
        let [and, or] = [0, 1].map(|stage| Features::of(&plan.staged().nth(stage).unwrap()));
        let before = [Route::Cpu, Route::GpuBatch].map(|route| [&and, &or].map(|stage| costs.predict(stage, route)));
        (0..1000).for_each(|_| costs.observe(costs.modelled(&or, Route::GpuBatch), Route::GpuBatch, 3 * before[1][1]));
        let after = [Route::Cpu, Route::GpuBatch].map(|route| [&and, &or].map(|stage| costs.predict(stage, route)));
        assert_eq!((after[0], after[1][0]), (before[0], before[1][0]));
        let ratio = after[1][1].as_secs_f64() / before[1][1].as_secs_f64();
        assert!((2.9..3.1).contains(&ratio), "{ratio}");
    }

    #[test]
    fn what_a_busy_cpu_takes_does_not_change_what_an_idle_one_is_predicted_to_take() {
        let costs = Costs::default();
        let or = Features::of(&plan_over(0..1_000_000).staged().nth(1).unwrap());
        let idle = costs.predict_on_cpu(&or, false);
        assert_eq!(costs.predict_on_cpu(&or, true), idle);
        (0..1000).for_each(|_| costs.observe_on_cpu(costs.modelled(&or, Route::Cpu), true, 3 * idle));
        let busy = costs.predict_on_cpu(&or, true).as_secs_f64() / idle.as_secs_f64();
        assert!((2.9..3.1).contains(&busy), "{busy}");
        assert_eq!(costs.predict_on_cpu(&or, false), idle);
        (0..1000).for_each(|_| costs.observe_on_cpu(costs.modelled(&or, Route::Cpu), false, 2 * idle));
        let ratio = costs.predict(&or, Route::Cpu).as_secs_f64() / idle.as_secs_f64();
        assert!((1.9..2.1).contains(&ratio), "{ratio}");
    }

    #[test]
    fn the_plans_of_a_batch_share_its_time() {
        let (costs, plan) = (Costs::default(), plan_over(0..1_000_000));
        let plans = [Features::of(&plan); 256];
        let predicted = costs.predict(&plans[0], Route::GpuBatch);
        let batch = || plans.iter().map(|plan| (costs.modelled(plan, Route::GpuBatch), Route::GpuBatch));
        (0..100).for_each(|_| costs.observe_batch(batch(), 256 * 3 * predicted));
        let ratio = costs.predict(&plans[0], Route::GpuBatch).as_secs_f64() / predicted.as_secs_f64();
        assert!((2.9..3.1).contains(&ratio), "{ratio}");
    }

    #[test]
    fn plans_of_different_routes_in_a_batch_all_teach_their_own() {
        let (costs, plan) = (Costs::default(), Features::of(&plan_over(0..1_000_000)));
        let routes = [Route::GpuBatch, Route::GpuHost];
        let before = Route::ALL.map(|route| costs.predict(&plan, route));
        let batch = || (0..256).map(|number| routes[number % 2]).map(|route| (costs.modelled(&plan, route), route));
        let predicted: Duration = routes.iter().map(|&route| 128 * before[route as usize]).sum();
        (0..100).for_each(|_| costs.observe_batch(batch(), 3 * predicted));
        for route in Route::ALL {
            let ratio = costs.predict(&plan, route).as_secs_f64() / before[route as usize].as_secs_f64();
            let expected = if routes.contains(&route) { 3.0 } else { 1.0 };
            assert!((ratio / expected - 1.0).abs() < 0.05, "{route}: {ratio}");
        }
    }
}
