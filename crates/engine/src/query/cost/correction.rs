//! A correction of predictions, learnt from observed times.

use std::sync::atomic::{AtomicU64, Ordering};

/// The share of an observed deviation by which the correction moves. With noise of 30 % a correction stays within 3 %
/// (standard deviation), and a change by a factor of three is learnt from 120 observations.
const RATE: f64 = 1.0 / 64.0;
/// The most that one observation moves the correction, as a logarithm: 2 %. So an outlier, such as a query that waited
/// for another process, changes little.
const LARGEST_MOVE: f64 = 0.02;
/// Beyond this factor a correction would hide that the model is wrong.
const LARGEST: f64 = 100.0;

/// A factor for predictions: an exponential average of observed / predicted, in logarithms.
#[derive(Debug, Default)]
pub struct Correction {
    /// The bits of the logarithm. 0 is a factor of 1.
    logarithm: AtomicU64,
}

impl Correction {
    /// The factor now.
    pub fn factor(&self) -> f64 {
        self.logarithm().exp()
    }

    fn logarithm(&self) -> f64 {
        f64::from_bits(self.logarithm.load(Ordering::Relaxed))
    }

    /// Learns from `count` observations at once: what a model predicted for them, without this correction, and the time
    /// that they took together. Predictions may be old: what has been learnt since does not matter.
    pub fn observe(&self, model_ns: f64, observed_ns: f64, count: usize) {
        if !(model_ns.is_finite() && observed_ns.is_finite() && model_ns > 0.0 && observed_ns > 0.0) {
            return;
        }
        let target = (observed_ns / model_ns).ln();
        let share = 1.0 - (1.0 - RATE).powi(count.min(1 << 20) as i32);
        let moved = |bits: u64| {
            let now = f64::from_bits(bits);
            let step = (share * (target - now)).clamp(-LARGEST_MOVE, LARGEST_MOVE);
            Some((now + step).clamp(-LARGEST.ln(), LARGEST.ln()).to_bits())
        };
        _ = self.logarithm.fetch_update(Ordering::Relaxed, Ordering::Relaxed, moved);
    }
}

impl Clone for Correction {
    fn clone(&self) -> Correction {
        Correction { logarithm: AtomicU64::new(self.logarithm.load(Ordering::Relaxed)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise between -1 and 1.
    fn noise(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    #[test]
    fn a_worker_that_becomes_three_times_slower_is_relearnt_within_a_thousand_observations() {
        let (correction, mut state) = (Correction::default(), 1);
        let mut observe = |factor: f64, count: usize| {
            for _ in 0..count {
                // Queries of 10 us to 1 ms, a third of noise, and now and then a query that waits 100 times as long.
                let model = 10_000.0 * (1.0 + noise(&mut state)).mul_add(50.0, 1.0);
                let outlier = if noise(&mut state) > 0.96 { 100.0 } else { 1.0 };
                correction.observe(model, model * factor * outlier * (0.33 * noise(&mut state)).exp(), 1);
            }
            correction.factor()
        };
        for factor in [1.0, 3.0, 1.0, 0.2, 3.0] {
            let learnt = observe(factor, 1000);
            assert!((learnt / factor - 1.0).abs() < 0.2, "{learnt} for {factor}");
        }
    }

    #[test]
    fn an_outlier_moves_predictions_by_two_percent() {
        for observed in [1e-9, 1e15, f64::MAX] {
            for count in [1, 1000] {
                let correction = Correction::default();
                correction.observe(1000.0, observed, count);
                assert!((correction.factor() - 1.0).abs() < 0.021, "{}", correction.factor());
            }
        }
    }

    #[test]
    fn nothing_is_learnt_from_what_is_no_time() {
        let correction = Correction::default();
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            correction.observe(bad, 1.0, 1);
            correction.observe(1.0, bad, 1);
        }
        correction.observe(1.0, 2.0, 0);
        assert_eq!(correction.factor(), 1.0);
    }

    #[test]
    fn old_predictions_do_not_make_corrections_overshoot() {
        let correction = Correction::default();
        // All of these were predicted before the first was observed.
        for _ in 0..10_000 {
            correction.observe(1000.0, 3000.0, 1);
        }
        assert!((correction.factor() - 3.0).abs() < 0.01, "{}", correction.factor());
    }

    #[test]
    fn threads_lose_no_observation() {
        let correction = Correction::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..20).for_each(|_| correction.observe(1.0, 1e9, 1)));
            }
        });
        assert!((correction.factor().ln() - 80.0 * LARGEST_MOVE).abs() < 1e-9, "{}", correction.factor());
    }
}
