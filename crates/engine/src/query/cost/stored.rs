//! Costs as JSON: written by calibration, and checked number by number when read.

use super::costs::{Costs, OPERATIONS, Route};
use super::features::COUNT;
use super::model::{Child, Leaf, Model, Node};
use crate::query::plan::Operation;
use serde::{Deserialize, Serialize};

/// The version of the JSON and of the features that models use; a new feature needs a new version.
pub const FORMAT: u32 = 1;

/// The largest weight of a model, in nanoseconds for one posting or byte.
const LARGEST_WEIGHT: f64 = 1e30;

/// Why costs cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CostsError {
    /// The text is not the JSON of costs.
    #[error("these are no costs ({0}); calibrate again")]
    Json(#[from] serde_json::Error),
    /// Another version wrote them.
    #[error("costs of format {found}, this version reads {FORMAT}; calibrate again")]
    Format {
        /// The format that was found.
        found: u32,
    },
    /// A number is out of range.
    #[error("the costs of {route} are damaged: {what}; calibrate again")]
    Damaged {
        /// The route whose costs are damaged.
        route: String,
        /// What is wrong.
        what: &'static str,
    },
}

#[derive(Serialize, Deserialize)]
struct Stored {
    format: u32,
    models: Vec<StoredModel>,
}

#[derive(Serialize, Deserialize)]
struct StoredModel {
    route: String,
    operation: String,
    model: Model,
}

impl Costs {
    /// The models as JSON. Corrections are not stored: they belong to a process.
    pub fn to_json(&self) -> String {
        let of_route = |route: Route| {
            OPERATIONS.map(|operation| StoredModel {
                route: route.name().to_owned(),
                operation: operation.to_string(),
                model: self.model(route, operation).clone(),
            })
        };
        let stored = Stored { format: FORMAT, models: Route::ALL.into_iter().flat_map(of_route).collect() };
        serde_json::to_string(&stored).expect("costs have only text keys")
    }

    /// Reads models from JSON. Routes that are missing keep their default models.
    pub fn from_json(json: &str) -> Result<Costs, CostsError> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let Version { format } = serde_json::from_str(json)?;
        if format != FORMAT {
            return Err(CostsError::Format { found: format });
        }
        let Stored { models, .. } = serde_json::from_str(json)?;
        let mut costs = Costs::default();
        for StoredModel { route, operation, model } in models {
            let damaged = |what| CostsError::Damaged { route: route.clone(), what };
            let named = Route::ALL.into_iter().find(|known| known.name() == route);
            let named = named.ok_or_else(|| damaged("no route has this name"))?;
            let operation = OPERATIONS.into_iter().find(|known| known.name() == operation);
            let operation: Operation = operation.ok_or_else(|| damaged("an operation is neither `and` nor `or`"))?;
            check(&model).map_err(damaged)?;
            costs = costs.with(named, operation, model);
        }
        Ok(costs)
    }
}

/// Checks everything that predictions rely on.
fn check(Model { nodes, leaves }: &Model) -> Result<(), &'static str> {
    if leaves.is_empty() {
        return Err("a tree has no leaf");
    }
    for (number, Node { feature, threshold, children }) in nodes.iter().enumerate() {
        let is_later = |child: &Child| match *child {
            Child::Node(child) => (number + 1..nodes.len()).contains(&child),
            Child::Leaf(leaf) => leaf < leaves.len(),
        };
        if *feature >= COUNT || !threshold.is_finite() {
            return Err("a node compares what does not exist");
        }
        // Children come after their parents, so every path ends.
        if !children.iter().all(is_later) {
            return Err("a node has a child that is not after it");
        }
    }
    for Leaf { intercept, weights, least, most } in leaves {
        // So sums of products with any features are finite.
        if !weights.iter().chain([intercept]).all(|weight| weight.abs() <= LARGEST_WEIGHT) {
            return Err("a weight is not finite, or far too large");
        }
        if !(0.0 <= *least && least <= most && most.is_finite()) {
            return Err("the limits of a leaf are not a range of times");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn json() -> serde_json::Value {
        serde_json::from_str(&Costs::default().to_json()).unwrap()
    }

    #[test]
    fn costs_are_read_as_they_were_written() {
        let costs = Costs::default();
        let read = Costs::from_json(&costs.to_json()).unwrap();
        for route in Route::ALL {
            assert_eq!(OPERATIONS.map(|it| read.model(route, it)), OPERATIONS.map(|it| costs.model(route, it)));
        }
    }

    #[test]
    fn an_error_says_what_is_wrong_and_what_to_do() {
        let error = |change: &dyn Fn(&mut serde_json::Value)| {
            let mut json = json();
            change(&mut json);
            Costs::from_json(&json.to_string()).unwrap_err().to_string()
        };
        let leaf = |json: &mut serde_json::Value, name: &str, to: serde_json::Value| {
            json["models"][0]["model"]["leaves"][0][name] = to;
        };
        let node = serde_json::json!({"feature": 0, "threshold": 1.0, "children": [{"node": 0}, {"leaf": 0}]});
        let far = serde_json::json!({"feature": 99, "threshold": 1.0, "children": [{"leaf": 0}, {"leaf": 0}]});
        type Change<'a> = &'a dyn Fn(&mut serde_json::Value);
        let cases: [(Change<'_>, &str); 8] = [
            (&|json| json["format"] = 7.into(), "costs of format 7, this version reads 1; calibrate again"),
            (&|json| json["models"][0]["route"] = "tpu".into(), "no route has this name"),
            (&|json| json["models"][0]["operation"] = "xor".into(), "neither `and` nor `or`"),
            (&|json| leaf(json, "intercept", serde_json::Value::Null), "these are no costs"),
            (&|json| leaf(json, "least", (-1.0).into()), "not a range of times"),
            (&|json| json["models"][0]["model"]["leaves"] = serde_json::json!([]), "a tree has no leaf"),
            (&|json| json["models"][0]["model"]["nodes"] = serde_json::json!([node]), "child that is not after it"),
            (&|json| json["models"][0]["model"]["nodes"] = serde_json::json!([far]), "compares what does not exist"),
        ];
        for (change, expected) in cases {
            let error = error(change);
            assert!(error.contains(expected) && error.ends_with("calibrate again"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_reading_panic(at in 0usize..10_000, with in "[0-9e.{}\\[\\],\"a-]{0,6}") {
            let mut json = Costs::default().to_json();
            let at = at % json.len();
            json.replace_range(at..(at + with.len()).min(json.len()), &with);
            if let Ok(costs) = Costs::from_json(&json) {
                let predicted = costs.model(Route::Cpu, Operation::Or).predict(&[1.0; COUNT]);
                prop_assert!(predicted.is_finite() && predicted >= 0.0);
            }
        }
    }
}
