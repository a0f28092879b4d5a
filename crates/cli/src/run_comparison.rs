//! Several runs side by side, each compared with the first one.

use crate::terminal::printable;
use lanner::eval::{EvalError, Evaluation, PairedTest, compare};
use serde::Serialize;
use std::io::{self, Write};
use std::path::PathBuf;

/// Runs with their values, and the tests of all but the first.
///
/// As JSON: `baseline` (the name of the first run), `test`, and `runs`, each with its name `run`, the fields of an evaluation,
/// and, but for the first, `comparison`: a test for each measure.
#[derive(Serialize)]
pub struct RunComparison<'a> {
    baseline: String,
    test: &'static str,
    runs: Vec<ComparedRun<'a>>,
}

#[derive(Serialize)]
struct ComparedRun<'a> {
    run: String,
    #[serde(flatten)]
    evaluation: &'a Evaluation,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    comparison: Vec<PairedTest>,
}

impl<'a> RunComparison<'a> {
    /// Compares the evaluations of `paths` with the first of them; there is one at least.
    pub fn new(paths: &[PathBuf], evaluations: &'a [Evaluation]) -> Result<RunComparison<'a>, EvalError> {
        let name = |path: &PathBuf| path.display().to_string();
        let compared = |(position, (path, evaluation)): (usize, (&PathBuf, &'a Evaluation))| {
            let comparison = if position == 0 { Vec::new() } else { compare(evaluation, &evaluations[0])? };
            Ok(ComparedRun { run: name(path), evaluation, comparison })
        };
        let runs = paths.iter().zip(evaluations).enumerate().map(compared).collect::<Result<_, EvalError>>()?;
        Ok(RunComparison { baseline: name(&paths[0]), test: "two-sided paired t-test", runs })
    }

    /// Writes a row for each measure of each run: value, difference from the first run, p-value.
    pub fn write_means(&self, out: &mut impl Write) -> io::Result<()> {
        let baseline = self.runs[0].evaluation;
        let (measures, names) = (self.measures(), self.names());
        let (of_measures, of_names) = (width("measure", &measures), width("run", &names));
        writeln!(
            out,
            "{:of_measures$}  {:of_names$}  {:>6}  {:>10}  {:>7}",
            "measure", "run", "mean", "difference", "p"
        )?;
        for (position, measure) in measures.iter().enumerate() {
            for (run, name) in self.runs.iter().zip(&names) {
                let mean = run.evaluation.mean[position];
                write!(out, "{measure:of_measures$}  {name:of_names$}  {mean:6.4}")?;
                match run.comparison.get(position) {
                    Some(test) => writeln!(out, "  {:>+10.4}  {:>7}", test.difference, p_value(test.p))?,
                    None => writeln!(out)?,
                }
            }
        }
        let (queries, name) = (baseline.per_query.len(), &names[0]);
        writeln!(out, "\np: {} of the difference from {name}, over all {queries} judged queries", self.test)
    }

    /// Writes a row for each measure of each query, with a column for each run, and an empty line.
    pub fn write_queries(&self, out: &mut impl Write) -> io::Result<()> {
        let baseline = self.runs[0].evaluation;
        let (measures, names) = (self.measures(), self.names());
        let ids: Vec<String> = baseline.per_query.iter().map(|row| printable(&row.query)).collect();
        let (of_ids, of_measures) = (width("query", &ids), width("measure", &measures));
        write!(out, "{:of_ids$}  {:of_measures$}", "query", "measure")?;
        for name in &names {
            write!(out, "  {name:>6}")?;
        }
        writeln!(out)?;
        for (row, id) in ids.iter().enumerate() {
            for (position, measure) in measures.iter().enumerate() {
                write!(out, "{id:of_ids$}  {measure:of_measures$}")?;
                for (run, name) in self.runs.iter().zip(&names) {
                    let width = name.chars().count().max("0.0000".len());
                    write!(out, "  {:width$.4}", run.evaluation.per_query[row].values[position])?;
                }
                writeln!(out)?;
            }
        }
        writeln!(out)
    }

    fn measures(&self) -> Vec<String> {
        self.runs[0].evaluation.measures.iter().map(ToString::to_string).collect()
    }

    fn names(&self) -> Vec<String> {
        self.runs.iter().map(|run| printable(&run.run)).collect()
    }
}

/// The width of a column.
fn width(head: &str, cells: &[String]) -> usize {
    cells.iter().map(|cell| cell.chars().count()).chain([head.len()]).max().unwrap_or(0)
}

fn p_value(p: Option<f64>) -> String {
    match p {
        Some(p) if p > 0.0 && p < 0.0001 => "<0.0001".to_owned(),
        Some(p) => format!("{p:.4}"),
        None => "-".to_owned(),
    }
}
