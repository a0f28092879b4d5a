//! Divides the time of calibration: which route and operation is measured next.

use super::timing::RUNS;
use crate::query::cost::Route;
use crate::query::plan::Operation;
use std::time::Duration;

/// What a route gets.
#[derive(Clone, Copy)]
pub struct Share {
    pub route: Route,
    /// Its part of the time, compared with those of the other routes.
    pub weight: f64,
    /// The samples of each operation that the time should suffice for. Plans that take more than their part of it are
    /// drawn less often.
    pub wanted: usize,
    /// The samples of each operation that are enough.
    pub enough: usize,
}

/// How much time each route and operation has had.
pub struct Shares {
    budget: Duration,
    of: Vec<Spent>,
}

struct Spent {
    share: Share,
    operation: Operation,
    time: Duration,
    samples: usize,
}

impl Shares {
    pub fn new(budget: Duration, shares: &[Share]) -> Shares {
        let both = |&share: &Share| {
            [Operation::And, Operation::Or].map(|operation| Spent {
                share,
                operation,
                time: Duration::ZERO,
                samples: 0,
            })
        };
        Shares { budget, of: shares.iter().flat_map(both).collect() }
    }

    /// The route and the operation that has had the least of its share; `None` if all have enough samples. What one
    /// does not need is left to the others.
    pub fn next(&self) -> Option<(Route, Operation)> {
        let lacking = self.of.iter().filter(|spent| spent.samples < spent.share.enough);
        let used = |spent: &Spent| spent.time.as_secs_f64() / spent.share.weight;
        let next = lacking.min_by(|a, b| used(a).total_cmp(&used(b)))?;
        Some((next.share.route, next.operation))
    }

    /// The most time that one run of a sample should take.
    pub fn most(&self, route: Route) -> Duration {
        let all: f64 = self.of.iter().map(|spent| spent.share.weight).sum();
        let share = self.of.iter().map(|spent| spent.share).find(|share| share.route == route);
        share.map_or(Duration::ZERO, |share| self.budget.mul_f64(share.weight / all / (RUNS * share.wanted) as f64))
    }

    /// Counts the time that some samples took, with everything around them.
    pub fn spend(&mut self, (route, operation): (Route, Operation), time: Duration, samples: usize) {
        let is_it = |spent: &&mut Spent| spent.share.route == route && spent.operation == operation;
        if let Some(spent) = self.of.iter_mut().find(is_it) {
            spent.time += time;
            spent.samples += samples;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(route: Route, weight: f64, enough: usize) -> Share {
        Share { route, weight, wanted: 100, enough }
    }

    /// Measures for a second; a sample of an operation on a route takes `time`.
    fn samples_of(shares: &[Share], time: impl Fn(Route, Operation) -> Duration) -> Vec<usize> {
        let mut shares = Shares::new(Duration::from_secs(1), shares);
        let mut spent = Duration::ZERO;
        while spent < Duration::from_secs(1)
            && let Some(next) = shares.next()
        {
            let time = time(next.0, next.1);
            shares.spend(next, time, 1);
            spent += time;
        }
        shares.of.iter().map(|spent| spent.samples).collect()
    }

    #[test]
    fn a_slow_route_does_not_take_the_time_of_a_fast_one() {
        let shares = [share(Route::GpuBatch, 1.0, usize::MAX), share(Route::GpuHost, 3.0, usize::MAX)];
        let time = |route, operation| match (route, operation) {
            (Route::GpuHost, _) => Duration::from_millis(10),
            (_, Operation::And) => Duration::from_micros(100),
            (_, Operation::Or) => Duration::from_micros(400),
        };
        let samples = samples_of(&shares, time);
        let expected = [1250, 312, 37, 37];
        assert!(
            samples.iter().zip(expected).all(|(&samples, expected)| samples.abs_diff(expected) <= 50),
            "{samples:?}"
        );
    }

    #[test]
    fn what_has_enough_samples_leaves_its_time_to_the_others() {
        let shares = [share(Route::Cpu, 1.0, 200)];
        let time = |_, operation| match operation {
            Operation::And => Duration::from_micros(10),
            Operation::Or => Duration::from_millis(8),
        };
        assert_eq!(samples_of(&shares, time), [200, 125]);
        assert_eq!(samples_of(&shares, |_, _| Duration::from_micros(1)), [200, 200], "then it ends");
    }

    #[test]
    fn the_most_time_of_a_sample_follows_from_the_samples_wanted() {
        let shares = Shares::new(
            Duration::from_secs(24),
            &[share(Route::GpuSingle, 1.0, 1000), share(Route::GpuHost, 3.0, 1000)],
        );
        let most = [Route::GpuSingle, Route::GpuHost, Route::Cpu].map(|route| shares.most(route).as_millis());
        assert_eq!(most, [10, 30, 0]);
    }
}
