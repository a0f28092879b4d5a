//! Whether two runs differ by more than chance: the paired t-test (Student, Biometrika 1908; for retrieval: Hull, SIGIR 1993).
//!
//! Each query gives the difference of its values in both runs. If the runs were equally good, these differences would have mean
//! 0; p is the probability of a mean at least this far from 0 by chance, to either side, if differences are distributed
//! normally.

use super::{EvalError, Evaluation, Measure};
use serde::Serialize;

/// A measure of a run compared with that of another run, the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PairedTest {
    /// The measure.
    pub measure: Measure,
    /// The mean over all judged queries, less that of the baseline.
    pub difference: f64,
    /// The statistic of the test; `None` if all queries differ by the same, or there are fewer than two.
    pub t: Option<f64>,
    /// The number of queries less one.
    pub degrees_of_freedom: usize,
    /// The two-sided p-value: 1 if no query differs, 0 if all differ by the same; `None` with fewer than two queries.
    pub p: Option<f64>,
}

/// Compares a run with the baseline, measure by measure. Both must be evaluated with the same judgements and measures; a query
/// that a run does not have counts as 0 there.
pub fn compare(evaluation: &Evaluation, baseline: &Evaluation) -> Result<Vec<PairedTest>, EvalError> {
    let queries =
        |evaluation: &Evaluation| evaluation.per_query.iter().map(|row| row.query.clone()).collect::<Vec<_>>();
    if evaluation.measures != baseline.measures || queries(evaluation) != queries(baseline) {
        return Err(EvalError::NotComparable);
    }
    let pairs = || evaluation.per_query.iter().zip(&baseline.per_query);
    let test = |(position, measure): (usize, &Measure)| {
        let differences: Vec<f64> =
            pairs().map(|(ours, theirs)| ours.values[position] - theirs.values[position]).collect();
        paired_test(*measure, &differences)
    };
    Ok(evaluation.measures.iter().enumerate().map(test).collect())
}

fn paired_test(measure: Measure, differences: &[f64]) -> PairedTest {
    let count = differences.len() as f64;
    let degrees_of_freedom = differences.len().saturating_sub(1);
    let difference = differences.iter().sum::<f64>() / count;
    let squares: f64 = differences.iter().map(|value| (value - difference).powi(2)).sum();
    let is_constant = differences.windows(2).all(|pair| pair[0] == pair[1]);
    let (t, p) = match degrees_of_freedom {
        0 => (None, None),
        _ if is_constant => (None, Some(if difference == 0.0 { 1.0 } else { 0.0 })),
        _ => {
            let t = difference / (squares / degrees_of_freedom as f64 / count).sqrt();
            (Some(t), Some(two_sided_p(t, degrees_of_freedom)))
        }
    };
    PairedTest { measure, difference, t, degrees_of_freedom, p }
}

/// The probability that Student's t is at least this far from 0: the incomplete beta function I_x(n / 2, 1 / 2) at
/// x = n / (n + t²), for n degrees of freedom.
fn two_sided_p(t: f64, freedom: usize) -> f64 {
    let (n, square) = (freedom as f64, t * t);
    let (outside, inside) = (n / (n + square), square / (n + square));
    let factor = outside_power(n, outside, inside) * inside.sqrt() * inverse_beta(freedom);
    // The share of the distribution beyond t, or within t, whichever is small: neither suffers from cancellation.
    if square * (n + 2.0) < 3.0 * n {
        1.0 - factor / 0.5 * continued_fraction(0.5, n / 2.0, inside)
    } else if outside > 0.0 {
        factor / (n / 2.0) * continued_fraction(n / 2.0, 0.5, outside)
    } else {
        0.0
    }
}

/// `outside` to the power of n / 2, where `inside` is 1 - `outside`.
fn outside_power(n: f64, outside: f64, inside: f64) -> f64 {
    let logarithm = if outside < 0.5 { outside.ln() } else { (-inside).ln_1p() };
    (n / 2.0 * logarithm).exp()
}

/// 1 / B(n / 2, 1 / 2), by its recurrence.
fn inverse_beta(n: usize) -> f64 {
    let (first, start) = if n % 2 == 1 { (1, std::f64::consts::FRAC_1_PI) } else { (2, 0.5) };
    (first..n).step_by(2).fold(start, |value, m| value * (m as f64 + 1.0) / m as f64)
}

/// The continued fraction of the incomplete beta function I_x(a, b), for x below about (a + 1) / (a + b + 2), by Lentz's
/// method (Abramowitz and Stegun, 26.5.8).
fn continued_fraction(a: f64, b: f64, x: f64) -> f64 {
    // In the place of a denominator of 0.
    const TINY: f64 = 1e-300;
    const MOST_STEPS: u32 = 10_000;
    let not_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut d = 1.0 / not_zero(1.0 - (a + b) * x / (a + 1.0));
    let (mut c, mut fraction) = (1.0, d);
    for step in 1..=MOST_STEPS {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut factor = 1.0;
        for coefficient in [even, odd] {
            d = 1.0 / not_zero(1.0 + coefficient * d);
            c = not_zero(1.0 + coefficient / c);
            factor = c * d;
            fraction *= factor;
        }
        if (factor - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    fraction
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::{Qrels, Run, evaluate};
    use std::path::Path;

    fn assert_close(value: f64, expected: f64, tolerance: f64) {
        assert!((value - expected).abs() <= tolerance * expected.abs(), "{value} is not {expected}");
    }

    #[test]
    fn p_is_that_of_scipy() {
        // 2 * scipy.stats.t.sf(abs(t), df), scipy 1.17.1.
        let expected: [(f64, usize, f64); 13] = [
            (0.0, 1, 1.0),
            (0.5, 1, 0.7048327646991335),
            (1.0, 2, 0.4226497308103742),
            (-2.0, 5, 0.10193947882985835),
            (2.7764451051977987, 4, 0.04999999999999977),
            (1e-08, 30, 0.9999999920873563),
            (3.1, 49, 0.003204136942408607),
            (12.5, 9, 5.434313181780654e-07),
            (1.96, 100000, 0.04999856319430168),
            (6.0, 224, 7.855892745157672e-09),
            (40.0, 60, 5.755480486627385e-45),
            (-10000.0, 3, 2.20531550229581e-12),
            (0.001, 1000, 0.9992023150184528),
        ];
        for (t, freedom, p) in expected {
            assert_close(two_sided_p(t, freedom), p, 1e-11);
        }
    }

    const MEASURE: Measure = Measure::Ndcg { cut: None };

    #[test]
    fn a_paired_test_is_that_of_scipy() {
        let ours = [0.5, 0.5, 0.5, 1.0, 0.25, 0.875, 0.0, 0.75];
        let theirs = [0.25, 0.5, 0.75, 1.0, 0.0, 0.625, 0.125, 0.375];
        let differences: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours - theirs).collect();
        let test = paired_test(MEASURE, &differences);
        // scipy.stats.ttest_rel(ours, theirs), scipy 1.17.1.
        assert_eq!((test.difference, test.degrees_of_freedom), (0.09375, 7));
        assert_close(test.t.unwrap(), 1.2104198771788934, 1e-14);
        assert_close(test.p.unwrap(), 0.2653980394260699, 1e-12);
    }

    #[test]
    fn equal_runs_have_p_1_and_constant_differences_0() {
        let outcome = |differences: &[f64]| {
            let test = paired_test(MEASURE, differences);
            (test.difference, test.t, test.p)
        };
        assert_eq!(outcome(&[0.0; 4]), (0.0, None, Some(1.0)));
        assert_eq!(outcome(&[0.25; 4]), (0.25, None, Some(0.0)));
        assert_eq!(outcome(&[0.25]), (0.25, None, None));
    }

    #[test]
    fn only_evaluations_of_the_same_queries_and_measures_are_compared() {
        let evaluated = |qrels: &str, measures: &str| {
            let qrels = Qrels::read(Path::new("qrels"), qrels.as_bytes()).unwrap();
            let run = Run::read(Path::new("run"), &b"1 Q0 a 1 1 x\n"[..]).unwrap();
            evaluate(&qrels, &run, &Measure::parse_list(measures).unwrap())
        };
        let [same, other] = ["1 0 a 1\n2 0 a 1\n", "1 0 a 1\n3 0 a 1\n"];
        assert!(compare(&evaluated(same, "AP"), &evaluated(same, "AP")).is_ok());
        for (qrels, measures) in [(other, "AP"), (same, "RR")] {
            let error = compare(&evaluated(same, "AP"), &evaluated(qrels, measures)).unwrap_err();
            assert!(error.to_string().contains("other queries or measures"));
        }
    }
}
