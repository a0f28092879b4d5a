//! The result file of a suite: its provenance, every measured number, and the tables and plots made from them.

use crate::error::{BenchError, Result};
use crate::machine::Provenance;
use crate::statistics::Spread;
use crate::table::{Table, count, number};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

/// The result of a suite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SuiteResult {
    /// The name of the suite.
    pub suite: String,
    pub title: String,
    /// How the measurement was done.
    pub notes: Vec<String>,
    pub ran_on: RanOn,
    pub provenance: Provenance,
    pub targets: Vec<TargetResult>,
    /// Every measured number.
    pub measurements: Vec<Measurement>,
    pub tables: Vec<Table>,
    /// File names of the plots, without `.png` and `.svg`, and their titles.
    pub plots: Vec<(String, String)>,
}

/// What the measured code ran on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RanOn {
    Cpu,
    /// CPU and GPU.
    Gpu,
    /// CPU and simulated GPU; the times are meaningless.
    Simulator,
}

/// One row of measured values. Names of values contain their units.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// `build`, `query`, …
    pub kind: String,
    /// `engine`, `threads`, `mode`, `k`, …
    pub labels: BTreeMap<String, String>,
    pub values: BTreeMap<String, f64>,
}

/// A target of a suite, and whether it was met.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetResult {
    pub what: String,
    /// The largest of the values that the target is about; NaN, `null` in the file, if none was measured.
    #[serde(deserialize_with = "number_or_null")]
    pub measured: f64,
    pub at_most: f64,
    pub is_met: bool,
}

fn number_or_null<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// The name of a label and its value.
pub type Label<'a> = (&'a str, &'a dyn Display);

impl Measurement {
    /// Creates a measurement without values.
    pub fn new(kind: &str, labels: &[Label<'_>]) -> Measurement {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), value.to_string())).collect();
        Measurement { kind: kind.to_owned(), labels, values: BTreeMap::new() }
    }

    /// Adds a value, unless it is `None`.
    pub fn with(mut self, name: &str, value: impl Into<Option<f64>>) -> Measurement {
        self.values.extend(value.into().map(|value| (name.to_owned(), value)));
        self
    }

    /// Adds median, minimum and maximum.
    pub fn with_spread(self, names: [&str; 3], spread: Spread) -> Measurement {
        names.into_iter().zip(spread.values()).fold(self, |row, (name, value)| row.with(name, value))
    }

    /// Returns a label, or an empty string.
    pub fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }

    /// Returns a value, or NaN.
    pub fn value(&self, name: &str) -> f64 {
        self.values.get(name).copied().unwrap_or(f64::NAN)
    }

    /// Formats a value that is a count; 0 if it is missing.
    pub fn count(&self, name: &str) -> String {
        count(self.value(name) as u64)
    }

    /// Formats labels, then values, as the cells of a table.
    pub fn cells(&self, labels: &[&str], values: &[&str]) -> Vec<String> {
        let labels = labels.iter().map(|name| self.label(name).to_owned());
        labels.chain(values.iter().map(|name| number(self.value(name)))).collect()
    }

    /// Whether it has the kind and all of the labels.
    pub fn is(&self, kind: &str, labels: &BTreeMap<String, String>) -> bool {
        self.kind == kind && labels.iter().all(|(name, value)| self.labels.get(name) == Some(value))
    }
}

/// Returns the first row with all of these labels.
pub fn find<'a>(rows: &'a [Measurement], labels: &[Label<'_>]) -> Option<&'a Measurement> {
    rows.iter().find(|row| labels.iter().all(|(name, value)| row.label(name) == value.to_string()))
}

/// Returns a value of the first row with all of these labels, or NaN.
pub fn find_value(rows: &[Measurement], labels: &[Label<'_>], name: &str) -> f64 {
    find(rows, labels).map_or(f64::NAN, |row| row.value(name))
}

/// Returns the runs of rows that have the same value of a label.
pub fn groups<'a>(rows: &'a [Measurement], label: &str) -> impl Iterator<Item = &'a [Measurement]> {
    rows.chunk_by(move |one, other| one.label(label) == other.label(label))
}

impl SuiteResult {
    /// Writes the file `SUITE.json`.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let path = folder.join(format!("{}.json", self.suite));
        let mut text = serde_json::to_string_pretty(self).expect("a result is plain data");
        text.push('\n');
        std::fs::write(&path, text).map_err(BenchError::io(&path))
    }

    /// Reads a result; one without provenance is an error.
    pub fn read(path: &Path) -> Result<SuiteResult> {
        let refuse = |what: String| BenchError::File { path: path.to_owned(), what };
        let text = std::fs::read_to_string(path).map_err(BenchError::io(path))?;
        let result: SuiteResult = serde_json::from_str(&text)
            .map_err(|error| refuse(format!("not a result of this version: {error}; run the suite again")))?;
        match result.provenance.missing() {
            None => Ok(result),
            Some(what) => Err(refuse(format!(
                "its {what} is unknown; run the suite again where the program can determine it, or remove the file"
            ))),
        }
    }

    /// Formats all tables for the terminal.
    pub fn to_text(&self) -> String {
        let tables: String = self.tables.iter().map(Table::to_text).collect();
        if self.targets.is_empty() { tables } else { format!("{tables}{}", self.target_table().to_text()) }
    }

    /// Returns the targets as a table.
    pub fn target_table(&self) -> Table {
        let mut table = Table::new("Targets", 1, &["what", "measured", "at most", "holds"]);
        for target in &self.targets {
            let is_measured = !target.measured.is_nan();
            let measured = if is_measured { number(target.measured) } else { "not measured".to_owned() };
            let holds = if target.is_met { "yes" } else { "NO" };
            table.row([target.what.clone(), measured, number(target.at_most), holds.to_owned()]);
        }
        table
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn example() -> SuiteResult {
        let mut provenance = Provenance::start("lanner-bench run example".to_owned());
        provenance.device.cpu = "some CPU".to_owned();
        provenance.commit = "0123abc".to_owned();
        SuiteResult {
            suite: "example".to_owned(),
            title: "An example".to_owned(),
            notes: vec!["Nothing was measured.".to_owned()],
            ran_on: RanOn::Cpu,
            provenance,
            targets: vec![TargetResult { what: "time".to_owned(), measured: 0.5, at_most: 1.0, is_met: true }],
            measurements: vec![Measurement::new("build", &[("engine", &"lanner")]).with("wall_s", 1.5)],
            tables: vec![],
            plots: vec![],
        }
    }

    #[test]
    fn a_result_is_read_back_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let result = example();
        result.write(folder.path()).unwrap();
        assert_eq!(SuiteResult::read(&folder.path().join("example.json")).unwrap(), result);
    }

    #[test]
    fn a_target_without_a_measurement_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut result = example();
        result.targets[0].measured = f64::NAN;
        result.write(folder.path()).unwrap();
        let read = SuiteResult::read(&folder.path().join("example.json")).unwrap();
        assert!(read.targets[0].measured.is_nan());
        assert!(read.to_text().contains("not measured"));
    }

    #[test]
    fn a_result_without_provenance_is_refused() {
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
            assert!(error.contains(&format!("its {what} is unknown")), "{error}");
        }
        let mut json = serde_json::to_value(example()).unwrap();
        json["provenance"].as_object_mut().unwrap().remove("device");
        std::fs::write(&path, json.to_string()).unwrap();
        assert!(SuiteResult::read(&path).unwrap_err().to_string().contains("missing field `device`"));
    }
}
