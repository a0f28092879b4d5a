//! Fits a model to samples.
//!
//! All leaves minimize the squares of relative errors: a query of 10 us counts as much as one of 10 ms. A node is split
//! where two linear models fit best, which is cheap to find: the sums that least squares need are added up once for
//! each feature, in bins, and the sums on either side of a threshold are sums of bins. The linear model of a child
//! starts from that of its parent, as if a few samples had confirmed it (ridge regression towards the parent), which
//! takes the place of M5's smoothing; and as in M5, a split must pay for its additional parameters.

use super::features::{COUNT, Features};
use super::model::{Child, Leaf, MARGIN, Model, Node};
use super::quality::mean_relative_error;
use crate::query::plan::Operation;
use std::time::Duration;

/// Parameters of a linear model: the intercept and a weight for each feature.
const PARAMETERS: usize = COUNT + 1;
/// Bins of a feature; thresholds are between them.
const BINS: usize = 16;
/// The fewest samples of a leaf, and so of a model.
const FEWEST: usize = 24;
/// The most splits above a leaf.
const DEEPEST: usize = 6;
/// As many samples as the parent's model counts for in a leaf.
const PRIOR: f64 = 4.0;
/// As many samples as a model of zeros counts for at the root: enough to make the solution unique.
const ROOT_PRIOR: f64 = 0.01;
/// A split must leave at most this share of the error.
const WORTH_A_SPLIT: f64 = 0.97;
/// A relative error that no split has to improve: it is less than the noise of any measurement.
const GOOD_ENOUGH: f64 = 0.005;
/// What a leaf costs, in samples, when splits are compared (the penalty of M5).
const PENALTY: f64 = 4.0;

/// A sample as the fit uses it.
struct Row {
    values: [f64; COUNT],
    nanoseconds: f64,
    /// The parameters' factors divided by time and by their scale.
    relative: [f64; PARAMETERS],
}

/// A plan or a batch that was measured.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The features that a model uses; the mean over the plans of a batch.
    values: [f64; COUNT],
    /// The time of a plan.
    nanoseconds: f64,
}

impl Sample {
    /// A plan that took some time. Plans of one stage are meant: with two, nobody knows which took how long.
    pub fn of_plan(features: &Features, operation: Operation, time: Duration) -> Sample {
        Sample::of_batch(std::slice::from_ref(features), operation, time)
    }

    /// A batch of similar plans that took some time together. Where a model is linear, the time of the mean plan is the
    /// mean of the times.
    pub fn of_batch(plans: &[Features], operation: Operation, time: Duration) -> Sample {
        let count = plans.len().max(1) as f64;
        let mut values = [0.0; COUNT];
        for features in plans {
            let of_plan = features.values(operation);
            values.iter_mut().zip(of_plan).for_each(|(sum, value)| *sum += value / count);
        }
        Sample { values, nanoseconds: (time.as_nanos() as f64 / count).max(1.0) }
    }
}

impl Model {
    /// Fits a model to samples; `None` if there are too few.
    pub fn fit(samples: &[Sample]) -> Option<Model> {
        if samples.len() < FEWEST {
            return None;
        }
        let scales = scales(samples);
        let rows: Vec<Row> = samples.iter().map(|sample| Row::new(sample, &scales)).collect();
        let mut sums = Sums::default();
        rows.iter().for_each(|row| sums.add(row));
        let parameters = sums.solve(&[0.0; PARAMETERS], ROOT_PRIOR);
        let mut tree = Tree { rows, scales, model: Model { nodes: Vec::new(), leaves: Vec::new() } };
        let all = (0..tree.rows.len()).collect();
        tree.grow(all, parameters, sums.error(&parameters), 0);
        Some(tree.model)
    }

    /// The mean relative error of predictions for samples.
    pub fn error(&self, samples: &[Sample]) -> f64 {
        let nanoseconds = |number: f64| Duration::from_nanos(number as u64);
        let pairs = samples.iter().map(|it| (nanoseconds(self.predict(&it.values)), nanoseconds(it.nanoseconds)));
        mean_relative_error(pairs)
    }
}

/// The root of the mean square of each parameter's factor divided by time, so that ridge treats all alike.
fn scales(samples: &[Sample]) -> [f64; PARAMETERS] {
    let mut scales = [0.0; PARAMETERS];
    for Sample { values, nanoseconds } in samples {
        for (scale, factor) in scales.iter_mut().zip(factors(values)) {
            *scale += (factor / nanoseconds).powi(2) / samples.len() as f64;
        }
    }
    scales.map(|square| if square > 0.0 { square.sqrt() } else { 1.0 })
}

fn factors(values: &[f64; COUNT]) -> impl Iterator<Item = f64> {
    [1.0].into_iter().chain(*values)
}

impl Row {
    fn new(&Sample { values, nanoseconds }: &Sample, scales: &[f64; PARAMETERS]) -> Row {
        let mut relative = [0.0; PARAMETERS];
        for ((to, factor), scale) in relative.iter_mut().zip(factors(&values)).zip(scales) {
            *to = factor / (nanoseconds * scale);
        }
        Row { values, nanoseconds, relative }
    }
}

/// The sums over some rows that least squares need.
#[derive(Clone)]
struct Sums {
    /// The lower half of the sum of products of each two factors.
    products: [[f64; PARAMETERS]; PARAMETERS],
    /// The sums of factors. The prediction of each row, divided by its time, should be 1.
    factors: [f64; PARAMETERS],
    count: f64,
}

impl Default for Sums {
    fn default() -> Sums {
        Sums { products: [[0.0; PARAMETERS]; PARAMETERS], factors: [0.0; PARAMETERS], count: 0.0 }
    }
}

impl Sums {
    fn add(&mut self, Row { relative, .. }: &Row) {
        for (i, &factor) in relative.iter().enumerate() {
            self.factors[i] += factor;
            for (product, &other) in self.products[i][..=i].iter_mut().zip(relative) {
                *product += factor * other;
            }
        }
        self.count += 1.0;
    }

    fn combine(&self, other: &Sums, sign: f64) -> Sums {
        let mut sums = self.clone();
        let products = sums.products.as_flattened_mut().iter_mut().zip(other.products.as_flattened());
        products.for_each(|(product, other)| *product += sign * other);
        sums.factors.iter_mut().zip(&other.factors).for_each(|(factor, other)| *factor += sign * other);
        sums.count += sign * other.count;
        sums
    }

    /// The parameters that minimize the error plus `weight` times the squared distance from `prior`, by Cholesky's
    /// decomposition: with a weight above 0 the matrix is positive definite.
    fn solve(&self, prior: &[f64; PARAMETERS], weight: f64) -> [f64; PARAMETERS] {
        let mut lower = self.products;
        let mut solution = [0.0; PARAMETERS];
        for i in 0..PARAMETERS {
            lower[i][i] += weight;
            for j in 0..=i {
                let (row, column) = (lower[i], lower[j]);
                let known: f64 = row[..j].iter().zip(&column[..j]).map(|(a, b)| a * b).sum();
                let rest = lower[i][j] - known;
                // Rounding may make a pivot that should equal the weight smaller.
                lower[i][j] = if i == j { rest.max(1e-3 * weight).sqrt() } else { rest / column[j] };
            }
            let known: f64 = lower[i][..i].iter().zip(&solution).map(|(a, b)| a * b).sum();
            solution[i] = (self.factors[i] + weight * prior[i] - known) / lower[i][i];
        }
        for i in (0..PARAMETERS).rev() {
            let known: f64 = (i + 1..PARAMETERS).map(|j| lower[j][i] * solution[j]).sum();
            solution[i] = (solution[i] - known) / lower[i][i];
        }
        solution
    }

    /// The sum of the squares of relative errors.
    fn error(&self, parameters: &[f64; PARAMETERS]) -> f64 {
        let mut error = self.count;
        for (i, &parameter) in parameters.iter().enumerate() {
            let below: f64 = self.products[i][..i].iter().zip(parameters).map(|(product, other)| product * other).sum();
            error += parameter * (2.0 * below + self.products[i][i] * parameter - 2.0 * self.factors[i]);
        }
        error.max(0.0)
    }

    /// The error with M5's penalty for a small number of rows.
    fn penalized(&self, parameters: &[f64; PARAMETERS]) -> f64 {
        self.error(parameters) * (self.count + PENALTY) / (self.count - PENALTY).max(1.0)
    }
}

/// A tree that grows.
struct Tree {
    rows: Vec<Row>,
    scales: [f64; PARAMETERS],
    model: Model,
}

/// One side of a split.
struct Side {
    parameters: [f64; PARAMETERS],
    error: f64,
}

/// The best split of a node.
struct Split {
    feature: usize,
    threshold: f64,
    sides: [Side; 2],
    /// The errors of both sides, with penalties.
    error: f64,
}

impl Tree {
    /// Adds the tree of some rows to the model, and returns its root.
    fn grow(&mut self, rows: Vec<usize>, parameters: [f64; PARAMETERS], error: f64, depth: usize) -> Child {
        let is_good = error <= GOOD_ENOUGH.powi(2) * rows.len() as f64;
        let split = if depth < DEEPEST && !is_good { self.split(&rows, &parameters) } else { None };
        let Some(split) = split.filter(|split| split.error < WORTH_A_SPLIT * error) else {
            self.model.leaves.push(self.leaf(&rows, &parameters));
            return Child::Leaf(self.model.leaves.len() - 1);
        };
        let Split { feature, threshold, sides: [low, high], .. } = split;
        let number = self.model.nodes.len();
        self.model.nodes.push(Node { feature, threshold, children: [Child::Leaf(0); 2] });
        let (below, above) = rows.into_iter().partition(|&row| self.rows[row].values[feature] <= threshold);
        let children =
            [(below, low), (above, high)].map(|(rows, side)| self.grow(rows, side.parameters, side.error, depth + 1));
        self.model.nodes[number].children = children;
        Child::Node(number)
    }

    fn leaf(&self, rows: &[usize], parameters: &[f64; PARAMETERS]) -> Leaf {
        let [intercept, weights @ ..] = {
            let mut parameters = *parameters;
            parameters.iter_mut().zip(&self.scales).for_each(|(parameter, scale)| *parameter /= scale);
            parameters
        };
        let times = || rows.iter().map(|&row| self.rows[row].nanoseconds);
        let (least, most) = (times().fold(f64::INFINITY, f64::min), times().fold(0.0, f64::max));
        Leaf { intercept, weights, least: least / MARGIN, most: most * MARGIN }
    }

    /// The best split of some rows, if one is possible.
    fn split(&self, rows: &[usize], parent: &[f64; PARAMETERS]) -> Option<Split> {
        if rows.len() < 2 * FEWEST {
            return None;
        }
        let splits = (0..COUNT).filter_map(|feature| self.split_by(feature, rows, parent));
        splits.min_by(|a, b| a.error.total_cmp(&b.error))
    }

    /// The best threshold of a feature.
    fn split_by(&self, feature: usize, rows: &[usize], parent: &[f64; PARAMETERS]) -> Option<Split> {
        let value = |row: usize| self.rows[row].values[feature];
        let mut sorted = rows.to_vec();
        sorted.sort_unstable_by(|&a, &b| value(a).total_cmp(&value(b)));
        // Where equal values end, nearest to the ends of bins of equal size.
        let is_end = |&end: &usize| value(sorted[end - 1]) < value(sorted[end]);
        let mut ends: Vec<usize> = (1..BINS)
            .filter_map(|bin| (bin * rows.len() / BINS..rows.len()).filter(|&end| end > 0).find(is_end))
            .filter(|&end| end >= FEWEST && rows.len() - end >= FEWEST)
            .collect();
        ends.dedup();
        let (mut bins, mut start) = (Vec::with_capacity(BINS), 0);
        for &end in ends.iter().chain([&rows.len()]) {
            let mut sums = Sums::default();
            sorted[start..end].iter().for_each(|&row| sums.add(&self.rows[row]));
            bins.push(sums);
            start = end;
        }
        let all = bins.iter().fold(Sums::default(), |all, bin| all.combine(bin, 1.0));
        let mut below = Sums::default();
        let splits = ends.iter().zip(&bins).map(|(&end, bin)| {
            below = below.combine(bin, 1.0);
            let both = [below.clone(), all.combine(&below, -1.0)];
            let sides = both.each_ref().map(|sums| {
                let parameters = sums.solve(parent, PRIOR);
                Side { parameters, error: sums.error(&parameters) }
            });
            let error = both.iter().zip(&sides).map(|(sums, side)| sums.penalized(&side.parameters)).sum();
            let threshold = (value(sorted[end - 1]) + value(sorted[end])) / 2.0;
            Split { feature, threshold, sides, error }
        });
        splits.min_by(|a, b| a.error.total_cmp(&b.error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn sample(first: f64, second: f64, nanoseconds: f64) -> Sample {
        let mut values = [0.0; COUNT];
        (values[0], values[1]) = (first, second);
        Sample { values, nanoseconds }
    }

    /// Samples of a function of two features over a grid.
    fn samples(function: impl Fn(f64, f64) -> f64) -> Vec<Sample> {
        let pairs = (0..50).flat_map(|first| (0..50).map(move |second| (f64::from(first * 7), f64::from(second))));
        pairs.map(|(first, second)| sample(first, second, function(first, second))).collect()
    }

    fn largest_error(model: &Model, samples: &[Sample]) -> f64 {
        let errors = samples.iter().map(|it| (model.predict(&it.values) / it.nanoseconds - 1.0).abs());
        errors.fold(0.0, f64::max)
    }

    #[test]
    fn a_linear_function_needs_one_leaf() {
        let samples = samples(|first, second| 500.0 + 3.0 * first + 40.0 * second);
        let model = Model::fit(&samples).unwrap();
        assert_eq!(model.leaves(), 1);
        assert!(largest_error(&model, &samples) < 0.001, "{}", largest_error(&model, &samples));
    }

    #[test]
    fn a_piecewise_linear_function_is_recovered_within_a_few_percent() {
        let jump = |first: f64, second: f64| if first > 120.0 { 9000.0 + 20.0 * second } else { 700.0 + 5.0 * first };
        let bend = |first: f64, second: f64| 300.0 + first.max(4.0 * second) * 30.0;
        for function in [&jump as &dyn Fn(f64, f64) -> f64, &bend] {
            let samples = samples(function);
            let model = Model::fit(&samples).unwrap();
            assert!(model.error(&samples) < 0.03, "{}", model.error(&samples));
        }
    }

    #[test]
    fn noise_makes_no_leaves() {
        let mut state = 1u64;
        let noisy = samples(|first, _| 1000.0 + 10.0 * first).into_iter().map(|it| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let noise = 0.8 + 0.4 * (state >> 11) as f64 / (1u64 << 53) as f64;
            Sample { nanoseconds: it.nanoseconds * noise, ..it }
        });
        let model = Model::fit(&noisy.collect::<Vec<_>>()).unwrap();
        assert!(model.leaves() <= 3, "{} leaves", model.leaves());
        assert!(model.error(&samples(|first, _| 1000.0 + 10.0 * first)) < 0.03);
    }

    #[test]
    fn the_mean_plan_of_a_batch_takes_the_mean_time() {
        let plan = |terms: f64| Features { terms, or: Some(Default::default()), ..Features::default() };
        let time = Duration::from_nanos(4000);
        let sample = Sample::of_batch(&[plan(2.0), plan(4.0)], Operation::Or, time);
        assert_eq!((sample.values[0], sample.nanoseconds), (3.0, 2000.0));
        assert!(Model::fit(&[]).is_none());
    }

    proptest! {
        #[test]
        fn predictions_are_times_whatever_the_samples(
            rows in vec((vec(prop_oneof![Just(0.0), 0.0..10.0, 0.0..1e12], COUNT), 1.0..1e12), FEWEST..200),
            asked in vec(prop_oneof![Just(0.0), 0.0..1e3, 0.0..1e15], COUNT),
        ) {
            let sample = |(values, nanoseconds): (Vec<f64>, f64)| Sample { values: values.try_into().unwrap(), nanoseconds };
            let samples: Vec<Sample> = rows.into_iter().map(sample).collect();
            let times = || samples.iter().map(|sample| sample.nanoseconds);
            let (least, most) = (times().fold(f64::INFINITY, f64::min), times().fold(0.0, f64::max));
            let predicted = Model::fit(&samples).unwrap().predict(&asked.try_into().unwrap());
            prop_assert!((least / MARGIN..=most * MARGIN).contains(&predicted), "{predicted} of {least} to {most}");
        }

        #[test]
        fn what_takes_longer_is_predicted_to_take_longer(
            base in 100.0f64..10_000.0, slope in 0.1f64..100.0, bend in 0.5f64..4.0, noise in 0.0f64..0.1,
        ) {
            let time = |first: f64| base + slope * first + if first > 200.0 { bend * slope * (first - 200.0) } else { 0.0 };
            let samples = samples(|first, second| time(first) * (1.0 + noise * (second / 25.0 - 1.0)));
            let model = Model::fit(&samples).unwrap();
            let predicted = |first: f64| model.predict(&sample(first, 25.0, 1.0).values);
            for first in (0..300).step_by(30).map(f64::from) {
                let (here, there) = (predicted(first), predicted(first + 40.0));
                prop_assert!(there > 0.97 * here, "{here} at {first}, then {there}");
                prop_assert!((here / time(first) - 1.0).abs() < 0.1, "{here} instead of {} at {first}", time(first));
            }
        }
    }
}
