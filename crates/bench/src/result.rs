//! The result of a suite as it is kept: where it comes from, every measured number, the tables and plots made of them.

use crate::error::BenchError;
use crate::machine::Provenance;
use crate::table::Table;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The result of a suite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SuiteResult {
    /// The suite's name.
    pub suite: String,
    /// What it is about.
    pub title: String,
    /// What a reader must know to judge it.
    pub notes: Vec<String>,
    /// What the measured code ran on. Simulated numbers never stand beside those of a device.
    pub ran_on: Processor,
    /// Machine, commit, command, date, versions.
    pub provenance: Provenance,
    /// What was claimed, and whether it holds.
    pub targets: Vec<TargetResult>,
    /// Every measured number.
    pub measurements: Vec<Measurement>,
    /// The same for people.
    pub tables: Vec<Table>,
    /// File names, without `.png` and `.svg`, of the plots beside the result, with a title each.
    pub plots: Vec<(String, String)>,
}

/// What measured code runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Processor {
    /// Processors alone.
    Cpu,
    /// A graphics processor took part.
    Gpu,
    /// A simulated graphics processor took part.
    Simulator,
}

/// One row of numbers: what was measured, of what, and the values by name; units stand in the names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// What was measured: `build`, `query`, …
    pub kind: String,
    /// Of what: `engine`, `threads`, `mode`, `k`, …
    pub labels: BTreeMap<String, String>,
    /// The values.
    pub values: BTreeMap<String, f64>,
}

/// A claim and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetResult {
    /// The claim.
    pub what: String,
    /// The measured value; the largest if several measurements are meant; not a number, `null` in the file, if none is.
    #[serde(deserialize_with = "number_or_null")]
    pub measured: f64,
    /// The claim holds up to this value.
    pub at_most: f64,
    /// Whether it holds.
    pub is_met: bool,
}

fn number_or_null<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

impl Measurement {
    /// A measurement without values yet.
    pub fn new(kind: &str, labels: &[(&str, &str)]) -> Measurement {
        let labels = labels.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        Measurement { kind: kind.to_owned(), labels, values: BTreeMap::new() }
    }

    /// With a further value.
    pub fn with(mut self, name: &str, value: f64) -> Measurement {
        self.values.insert(name.to_owned(), value);
        self
    }

    /// A label; empty if there is none of that name.
    pub fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }

    /// A value; not a number if there is none of that name.
    pub fn value(&self, name: &str) -> f64 {
        self.values.get(name).copied().unwrap_or(f64::NAN)
    }

    /// Whether it is of that kind and has all those labels.
    pub fn is(&self, kind: &str, labels: &BTreeMap<String, String>) -> bool {
        self.kind == kind && labels.iter().all(|(name, value)| self.labels.get(name) == Some(value))
    }
}

impl SuiteResult {
    /// Writes it as `SUITE.json`.
    pub fn write(&self, folder: &Path) -> Result<(), BenchError> {
        let path = folder.join(format!("{}.json", self.suite));
        let mut text = serde_json::to_string_pretty(self).expect("a result is plain data");
        text.push('\n');
        std::fs::write(&path, text).map_err(BenchError::io(&path))
    }

    /// Reads it, and refuses one that does not say where it comes from.
    pub fn read(path: &Path) -> Result<SuiteResult, BenchError> {
        let refuse = |what: String| BenchError::Result { path: path.to_owned(), what };
        let text = std::fs::read_to_string(path).map_err(BenchError::io(path))?;
        let result: SuiteResult = serde_json::from_str(&text)
            .map_err(|error| refuse(format!("not a result of this version: {error}; run its suite again")))?;
        match result.provenance.missing() {
            None => Ok(result),
            Some(what) => Err(refuse(format!(
                "it does not say its {what}; run the suite again where the program can find that out, or remove the file"
            ))),
        }
    }

    /// Everything for the terminal.
    pub fn to_text(&self) -> String {
        let tables: String = self.tables.iter().map(Table::to_text).collect();
        if self.targets.is_empty() { tables } else { format!("{tables}{}", self.target_table().to_text()) }
    }

    /// The claims as a table.
    pub fn target_table(&self) -> Table {
        let mut table = Table::new("Targets", 1, &["what", "measured", "at most", "holds"]);
        for target in &self.targets {
            let measured = if target.measured.is_nan() {
                "not measured".to_owned()
            } else {
                crate::table::number(target.measured)
            };
            let holds = if target.is_met { "yes" } else { "NO" };
            table.row(vec![target.what.clone(), measured, crate::table::number(target.at_most), holds.to_owned()]);
        }
        table
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn example() -> SuiteResult {
        let mut provenance = Provenance::start("lanner-bench run example".to_owned());
        provenance.device.cpu = "some processor".to_owned();
        provenance.commit = "0123abc".to_owned();
        SuiteResult {
            suite: "example".to_owned(),
            title: "An example".to_owned(),
            notes: vec!["Nothing was measured.".to_owned()],
            ran_on: Processor::Cpu,
            provenance,
            targets: vec![TargetResult { what: "time".to_owned(), measured: 0.5, at_most: 1.0, is_met: true }],
            measurements: vec![Measurement::new("build", &[("engine", "lanner")]).with("wall_s", 1.5)],
            tables: vec![],
            plots: vec![],
        }
    }

    #[test]
    fn a_result_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let result = example();
        result.write(folder.path()).unwrap();
        assert_eq!(SuiteResult::read(&folder.path().join("example.json")).unwrap(), result);
    }

    #[test]
    fn a_claim_about_nothing_measured_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut result = example();
        result.targets[0].measured = f64::NAN;
        result.write(folder.path()).unwrap();
        let read = SuiteResult::read(&folder.path().join("example.json")).unwrap();
        assert!(read.targets[0].measured.is_nan());
        assert!(read.to_text().contains("not measured"));
    }

    #[test]
    fn a_result_that_does_not_say_where_it_comes_from_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("example.json");
        for (what, spoil) in [
            ("commit", (|r| r.provenance.commit = "unknown".to_owned()) as fn(&mut SuiteResult)),
            ("command", |r| r.provenance.command.clear()),
            ("device", |r| r.provenance.device.cpu.clear()),
        ] {
            let mut result = example();
            spoil(&mut result);
            result.write(folder.path()).unwrap();
            let error = SuiteResult::read(&path).unwrap_err().to_string();
            assert!(error.contains(&format!("does not say its {what}")), "{error}");
        }
        let mut json = serde_json::to_value(example()).unwrap();
        json["provenance"].as_object_mut().unwrap().remove("device");
        std::fs::write(&path, json.to_string()).unwrap();
        assert!(SuiteResult::read(&path).unwrap_err().to_string().contains("missing field `device`"));
    }
}
