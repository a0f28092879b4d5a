//! Runs a suite: prepares the collection, runs each experiment, and writes the result.

use crate::collection;
use crate::error::{BenchError, Result};
use crate::experiments::build::Builds;
use crate::experiments::codecs::CodecLists;
use crate::experiments::gpu::GpuRun;
use crate::experiments::lists::ListsRun;
use crate::experiments::load::LoadRun;
use crate::experiments::query::{Log, Queries};
use crate::experiments::race::Race;
use crate::experiments::{Context, Findings, RunOptions, Say, open};
use crate::machine::Provenance;
use crate::query_log;
use crate::result::{Measurement, RanOn, SuiteResult, TargetResult};
use crate::suite::{BuildPart, LogPart, Suite, Target};
use lanner_gpu::device::Properties;
use std::path::Path;

/// Runs a suite, writes its result and plots, and returns the result.
pub fn run(suite: &Suite, options: &RunOptions, say: Say<'_>) -> Result<SuiteResult> {
    let context = Context { suite, options, say };
    let mut origin = Origin::start(options.command.clone());
    let mut findings = Findings::default();
    if let Some(part) = &suite.build {
        findings.extend(build_and_query(context, part)?);
    }
    if let Some(part) = &suite.peers {
        let (of_race, versions) = Race::new(context, part)?.run()?;
        findings.extend(of_race);
        origin.provenance.versions.extend(versions);
    }
    if let Some(part) = &suite.codecs {
        findings.extend(CodecLists { context, part }.run()?);
    }
    if let Some(part) = &suite.gpu {
        let (of_gpu, limits) = GpuRun { context, part }.run()?;
        findings.extend(of_gpu);
        origin.add_gpu(&limits);
    }
    if let Some(part) = &suite.load {
        let (of_load, properties) = LoadRun { context, part }.run()?;
        findings.extend(of_load);
        origin.add_gpu(&properties);
    }
    if let Some(part) = &suite.lists {
        let (of_lists, properties) = ListsRun { context, part }.run()?;
        findings.extend(of_lists);
        origin.add_gpu(&properties);
    }
    let about = About { name: suite.name.clone(), title: suite.title.clone(), notes: suite.notes.clone() };
    about.write(origin, &suite.targets, findings, &options.out)
}

/// Builds indexes, opens them, and runs queries on them.
fn build_and_query(context: Context<'_>, part: &BuildPart) -> Result<Findings> {
    let Context { suite, options, say } = context;
    let temporary = tempfile::tempdir().map_err(BenchError::io(&std::env::temp_dir()))?;
    say("preparing the collection");
    let input = collection::prepare(&suite.collection, &options.data, temporary.path())?;
    let analyzer = suite.collection.analyzer()?;
    let read = |log: &LogPart| {
        let queries = query_log::sample(&context.read_log(log)?, log.sample);
        Ok(Log { name: log.name.clone(), queries })
    };
    let logs = suite.query.iter().flat_map(|part| &part.logs).map(read).collect::<Result<Vec<Log>>>()?;
    say("building the indexes");
    let (mut findings, indexes) = Builds { context, part, input: &input, temporary: temporary.path() }.run()?;
    if let Some(part) = &suite.open {
        say("opening the indexes");
        findings.extend(open::run(part, &indexes, &analyzer)?);
    }
    if let Some(part) = &suite.query {
        say("checking the answers, then measuring queries");
        let queries = Queries { suite, part, input: &input, indexes: &indexes, logs: &logs, analyzer: &analyzer };
        findings.extend(queries.run()?);
    }
    Ok(findings)
}

/// The provenance of a result, and what the measured code ran on.
pub struct Origin {
    pub provenance: Provenance,
    pub ran_on: RanOn,
}

impl Origin {
    pub fn start(command: String) -> Origin {
        Origin { provenance: Provenance::start(command), ran_on: RanOn::Cpu }
    }

    pub fn add_gpu(&mut self, properties: &Properties) {
        self.ran_on = if properties.is_simulated { RanOn::Simulator } else { RanOn::Gpu };
        self.provenance.device.add_gpu(&properties.name);
    }
}

/// Name, title and notes of a result.
pub struct About {
    pub name: String,
    pub title: String,
    pub notes: Vec<String>,
}

impl About {
    /// Writes the result and its plots.
    pub fn write(self, mut origin: Origin, targets: &[Target], findings: Findings, out: &Path) -> Result<SuiteResult> {
        origin.provenance.finish();
        std::fs::create_dir_all(out).map_err(BenchError::io(out))?;
        let mut plots = Vec::new();
        for (suffix, chart) in &findings.charts {
            let name = format!("{}-{suffix}", self.name);
            chart.write(out, &name)?;
            plots.push((name, chart.title().to_owned()));
        }
        let result = SuiteResult {
            suite: self.name,
            title: self.title,
            notes: self.notes,
            ran_on: origin.ran_on,
            provenance: origin.provenance,
            targets: targets.iter().map(|target| judge(target, &findings.measurements)).collect(),
            measurements: findings.measurements,
            tables: findings.tables,
            plots,
        };
        result.write(out)?;
        Ok(result)
    }
}

/// Compares a target with the largest value that it is about; a target without values is not met.
fn judge(target: &Target, measurements: &[Measurement]) -> TargetResult {
    let rows = measurements.iter().filter(|row| row.is(&target.kind, &target.labels));
    let values = rows.map(|row| row.value(&target.value));
    let measured = values.fold(f64::NAN, |largest, value| if value <= largest { largest } else { value });
    let is_met = measured <= target.at_most;
    TargetResult { what: target.what.clone(), measured, at_most: target.at_most, is_met }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_target_is_met_only_if_every_measurement_meets_it() {
        let row = |k: &str, ratio| Measurement::new("query", &[("engine", &"lanner"), ("k", &k)]).with("ratio", ratio);
        let rows = [row("10", 0.4), row("100", 0.9), row("1000", 0.5)];
        let target = |k: Option<&str>, at_most| Target {
            what: "time".to_owned(),
            kind: "query".to_owned(),
            labels: k.map(|k| ("k".to_owned(), k.to_owned())).into_iter().collect::<BTreeMap<_, _>>(),
            value: "ratio".to_owned(),
            at_most,
        };
        assert_eq!(judge(&target(None, 0.8), &rows).measured, 0.9);
        assert!(!judge(&target(None, 0.8), &rows).is_met);
        assert!(judge(&target(Some("10"), 0.8), &rows).is_met);
        assert!(!judge(&target(Some("7"), 0.8), &rows).is_met, "nothing was measured");
    }
}
