//! Summaries of measured times.
//!
//! Percentiles are nearest ranks: a value that was measured, never an interpolation between two.

use lanner::internals::percentile;
use std::time::Instant;

/// The 99.9th percentile is reported from this many values on.
const P999_MIN_COUNT: usize = 10_000;

/// The distribution of the times of single queries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    pub count: usize,
    pub mean: f64,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    /// `None` below [`P999_MIN_COUNT`] values.
    pub p999: Option<f64>,
}

impl Summary {
    /// Summarizes at least one value.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Summary {
        let sorted = sorted(values);
        let at = |per_mille| percentile(&sorted, per_mille).expect("at least one value");
        Summary {
            count: sorted.len(),
            mean: mean(sorted.iter().copied()),
            p50: at(500),
            p95: at(950),
            p99: at(990),
            p999: (sorted.len() >= P999_MIN_COUNT).then(|| at(999)),
        }
    }
}

/// Median, minimum and maximum of repeated runs of the same work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The mean of the two middle runs if their number is even.
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

impl Spread {
    /// Summarizes at least one run.
    pub fn of(runs: impl IntoIterator<Item = f64>) -> Spread {
        let sorted = sorted(runs);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 };
        Spread { median, least: sorted[0], most: sorted[sorted.len() - 1] }
    }

    /// Median, minimum and maximum.
    pub fn values(&self) -> [f64; 3] {
        [self.median, self.least, self.most]
    }

    /// The spread of the rates of runs that took these times: the shortest time gives the highest rate.
    pub fn rates(&self, count: f64) -> Spread {
        Spread { median: count / self.median, least: count / self.most, most: count / self.least }
    }
}

fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Returns the mean, or NaN if there are no values.
pub fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) = values.into_iter().fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    sum / f64::from(count)
}

/// Returns the result of work and its time in seconds.
pub fn timed<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<(T, f64), E> {
    let start = Instant::now();
    let result = work()?;
    Ok((result, start.elapsed().as_secs_f64()))
}

/// Returns the exponent of the power law `y ~ x^exponent` that fits the points best in logarithms.
pub fn power_law_exponent(points: &[(f64, f64)]) -> f64 {
    let logs: Vec<(f64, f64)> = points.iter().map(|&(x, y)| (x.ln(), y.ln())).collect();
    let (mean_x, mean_y) = (mean(logs.iter().map(|p| p.0)), mean(logs.iter().map(|p| p.1)));
    let covariance: f64 = logs.iter().map(|p| (p.0 - mean_x) * (p.1 - mean_y)).sum();
    let variance: f64 = logs.iter().map(|p| (p.0 - mean_x).powi(2)).sum();
    if variance > 0.0 { covariance / variance } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_does_not_depend_on_the_order_of_values() {
        let values: Vec<f64> = (0..1000).map(|n| f64::from(n * 7 % 1000)).collect();
        let summary = Summary::of(values.iter().copied());
        assert_eq!((summary.count, summary.mean), (1000, 499.5));
        assert_eq!((summary.p50, summary.p95, summary.p99), (499.0, 949.0, 989.0));
    }

    #[test]
    fn the_rarest_percentile_needs_ten_thousand_values() {
        let values: Vec<f64> = (1..=10_000).map(f64::from).collect();
        assert_eq!(Summary::of(values.iter().copied()).p999, Some(9990.0));
        assert_eq!(Summary::of(values[1..].iter().copied()).p999, None);
    }

    #[test]
    fn the_median_of_an_even_number_of_runs_lies_between_two() {
        assert_eq!(Spread::of([4.0, 1.0, 3.0, 2.0]), Spread { median: 2.5, least: 1.0, most: 4.0 });
        assert_eq!(Spread::of([5.0, 1.0, 3.0]).median, 3.0);
    }

    #[test]
    fn the_longest_run_has_the_lowest_rate() {
        assert_eq!(Spread::of([2.0, 1.0, 4.0]).rates(8.0), Spread { median: 4.0, least: 2.0, most: 8.0 });
    }

    #[test]
    fn a_power_law_is_found_again() {
        let points: Vec<(f64, f64)> = (1..10).map(|x| (f64::from(x), 3.0 * f64::from(x).powf(0.6))).collect();
        assert!((power_law_exponent(&points) - 0.6).abs() < 1e-9);
    }
}
