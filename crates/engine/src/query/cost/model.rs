//! A model of times: a tree whose leaves are linear in the features.
//!
//! In the spirit of M5 (Quinlan 1992; gpu-ir uses the rules of Weka's M5): inner nodes compare one feature with a
//! threshold, so that each leaf sees plans of one kind, and a leaf adds up its features with weights. What a leaf
//! predicts stays near the times it was fitted to, because a line says nothing about plans unlike those. `fit.rs` makes
//! the tree.

use super::costs::Route;
use super::features::{COUNT, position};
use crate::query::plan::Operation;
use serde::{Deserialize, Serialize};

/// Predictions of a leaf are between its shortest sample divided by this and its longest multiplied by it.
pub(super) const MARGIN: f64 = 1.5;

/// A tree of linear models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// The root first, each node before its children.
    pub(super) nodes: Vec<Node>,
    pub(super) leaves: Vec<Leaf>,
}

/// An inner node.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Node {
    /// Which feature is compared.
    pub feature: usize,
    /// Up to this, the first child is next, else the second.
    pub threshold: f64,
    pub children: [Child; 2],
}

/// A child of a node, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Child {
    Node(usize),
    Leaf(usize),
}

/// A linear model of times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Leaf {
    pub intercept: f64,
    pub weights: [f64; COUNT],
    /// The limits of predictions.
    pub least: f64,
    pub most: f64,
}

impl Model {
    /// Predicts a time in nanoseconds.
    pub(super) fn predict(&self, values: &[f64; COUNT]) -> f64 {
        let mut child = if self.nodes.is_empty() { Child::Leaf(0) } else { Child::Node(0) };
        loop {
            match child {
                Child::Leaf(leaf) => return self.leaves[leaf].predict(values),
                Child::Node(number) => {
                    let node = &self.nodes[number];
                    child = node.children[usize::from(values[node.feature] > node.threshold)];
                }
            }
        }
    }

    /// A model without measurements on this machine. For the CPU, the coarse formula; for the GPU, figures of an H200:
    /// a single query takes 25 to 35 us, whatever it is; of a batch over 8.8 million documents (queries of
    /// Terabyte-2005) an OR takes 3.5 us and an AND 1.3 us; lists are uploaded at 18 GB/s.
    pub(super) fn of_formula(route: Route, operation: Operation) -> Model {
        let (work, bytes, coarse) = match operation {
            Operation::And => (position::AND_WORK, position::AND_BYTES, position::AND_COARSE),
            Operation::Or => (position::OR_WORK, position::OR_BYTES, position::OR_COARSE),
        };
        let mut weights = [0.0; COUNT];
        let per_work = match operation {
            Operation::And => 0.003,
            Operation::Or => 0.0055,
        };
        let intercept = match route {
            Route::Cpu => {
                weights[coarse] = 1.0;
                0.0
            }
            Route::GpuSingle => {
                weights[work] = 0.002;
                25_000.0
            }
            Route::GpuBatch => {
                weights[work] = per_work;
                700.0
            }
            Route::GpuHost => {
                weights[work] = per_work;
                weights[bytes] = 1.0 / 18.0;
                700.0
            }
            // A few threads copy one query's lists, and no other query shares them.
            Route::GpuHostSingle => {
                weights[work] = 0.002;
                weights[bytes] = 1.0 / 6.0;
                100_000.0
            }
        };
        Model { nodes: Vec::new(), leaves: vec![Leaf { intercept, weights, least: 0.0, most: 1e15 }] }
    }

    /// Leaves of the tree.
    pub fn leaves(&self) -> usize {
        self.leaves.len()
    }
}

impl Leaf {
    /// The linear model without limits.
    pub fn linear(&self, values: &[f64; COUNT]) -> f64 {
        self.intercept + values.iter().zip(&self.weights).map(|(value, weight)| value * weight).sum::<f64>()
    }

    fn predict(&self, values: &[f64; COUNT]) -> f64 {
        self.linear(values).clamp(self.least, self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_nodes_choose_the_leaf_and_leaves_stay_near_their_samples() {
        let leaf = |intercept: f64, weight: f64| {
            let mut weights = [0.0; COUNT];
            weights[1] = weight;
            Leaf { intercept, weights, least: 10.0, most: 100.0 }
        };
        let node = |feature, threshold, children| Node { feature, threshold, children };
        let nodes =
            vec![node(0, 5.0, [Child::Leaf(0), Child::Node(1)]), node(2, 7.0, [Child::Leaf(1), Child::Leaf(2)])];
        let model = Model { nodes, leaves: vec![leaf(20.0, 0.0), leaf(30.0, 1.0), leaf(0.0, -1.0)] };
        let predict = |first: f64, second: f64, third: f64| {
            let mut values = [0.0; COUNT];
            (values[0], values[1], values[2]) = (first, second, third);
            model.predict(&values)
        };
        assert_eq!([predict(5.0, 9.0, 0.0), predict(6.0, 9.0, 7.0), predict(6.0, 9.0, 8.0)], [20.0, 39.0, 10.0]);
        assert_eq!(predict(6.0, 1e9, 7.0), 100.0);
    }

    #[test]
    fn formulas_have_the_figures_of_an_h200() {
        let (work, bytes) = (500_000.0, 4e6);
        let predicted = |route, operation| {
            let mut values = [0.0; COUNT];
            let places = match operation {
                Operation::And => [position::AND_WORK, position::AND_BYTES, position::AND_COARSE],
                Operation::Or => [position::OR_WORK, position::OR_BYTES, position::OR_COARSE],
            };
            places.into_iter().zip([work, bytes, 7000.0]).for_each(|(place, value)| values[place] = value);
            Model::of_formula(route, operation).predict(&values)
        };
        for operation in [Operation::And, Operation::Or] {
            assert_eq!(predicted(Route::Cpu, operation), 7000.0, "the coarse prediction");
            assert!((25_000.0..35_000.0).contains(&predicted(Route::GpuSingle, operation)));
            assert!((200_000.0..250_000.0).contains(&predicted(Route::GpuHost, operation)));
        }
        assert!((3000.0..4000.0).contains(&predicted(Route::GpuBatch, Operation::Or)));
    }
}
