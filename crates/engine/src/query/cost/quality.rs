//! How good predictions are.

use super::features::Features;
use std::time::Duration;

/// One number of a plan from which cooperative predicts times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// LOS: the length of the shortest list.
    Los,
    /// UBOC: the comparisons of binary searches for all postings of the shortest list in the others.
    Uboc,
    /// UBOCT: the comparisons of one thread.
    Uboct,
}

impl Metric {
    /// Every metric.
    pub const ALL: [Metric; 3] = [Metric::Los, Metric::Uboc, Metric::Uboct];

    /// Its name in the paper.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Los => "LOS",
            Metric::Uboc => "UBOC",
            Metric::Uboct => "UBOCT",
        }
    }

    /// Its value for a plan.
    pub fn of(self, features: &Features) -> f64 {
        match self {
            Metric::Los => features.shortest,
            Metric::Uboc => features.uboc(),
            Metric::Uboct => features.comparisons,
        }
    }
}

/// The mean of |predicted - observed| / observed over pairs of both; 0 without pairs.
pub fn mean_relative_error(pairs: impl Iterator<Item = (Duration, Duration)>) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for (predicted, observed) in pairs {
        let observed = observed.as_secs_f64().max(1e-9);
        sum += (predicted.as_secs_f64() - observed).abs() / observed;
        count += 1.0;
    }
    if count > 0.0 { sum / count } else { 0.0 }
}

/// The share of the variance of a number (such as a time, or the difference of two) that a line over another number
/// explains: cooperative's R^2, the square of the correlation. 0 if one of the numbers does not vary.
pub fn r_squared(pairs: impl Iterator<Item = (f64, f64)> + Clone) -> f64 {
    let count = pairs.clone().count() as f64;
    let mean = |number: fn((f64, f64)) -> f64| pairs.clone().map(number).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(|(x, _)| x), mean(|(_, y)| y));
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for (x, y) in pairs {
        xx += (x - mean_x).powi(2);
        yy += (y - mean_y).powi(2);
        xy += (x - mean_x) * (y - mean_y);
    }
    if xx > 0.0 && yy > 0.0 { xy * xy / (xx * yy) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_relative_to_what_was_observed() {
        let us = Duration::from_micros;
        let pairs = [(us(10), us(10)), (us(15), us(10)), (us(5), us(10))];
        assert!((mean_relative_error(pairs.into_iter()) - 1.0 / 3.0).abs() < 1e-9);
        assert_eq!(mean_relative_error([].into_iter()), 0.0);
    }

    #[test]
    fn a_line_explains_what_lies_on_it() {
        let r_squared = |y: fn(f64) -> f64| r_squared((0..9).map(|x| f64::from(x) - 4.0).map(|x| (x, y(x))));
        assert!((r_squared(|x| 7.0 - 2.0 * x) - 1.0).abs() < 1e-12);
        assert!(r_squared(|x| x * x) < 1e-12, "nothing of a parabola around its middle");
        assert_eq!(r_squared(|_| 1.0), 0.0);
    }

    #[test]
    fn metrics_are_those_of_cooperative() {
        let features = Features { shortest: 8.0, comparisons: 5.0 + 10.0, ..Features::default() };
        assert_eq!(Metric::ALL.map(|metric| metric.of(&features)), [8.0, 8.0 * 15.0, 15.0]);
    }
}
