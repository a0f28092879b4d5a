//! Running a suite: prepare, build, open, check, ask, and write down what came of it.

use crate::cache::Cache;
use crate::collection;
use crate::error::BenchError;
use crate::experiments::build::Builds;
use crate::experiments::codecs::CodecLists;
use crate::experiments::gpu::{DeviceName, GpuRun};
use crate::experiments::query::{Log, Queries};
use crate::experiments::race::Race;
use crate::experiments::{Findings, open};
use crate::machine::Provenance;
use crate::only::Only;
use crate::plot;
use crate::query_log;
use crate::result::{Measurement, Processor, SuiteResult, TargetResult};
use crate::suite::{QueryPart, Suite, Target};
use lanner_index::text::Analyzer;
use std::path::{Path, PathBuf};

/// How a suite is run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Where the files of suites are.
    pub data: PathBuf,
    /// Where results go.
    pub out: PathBuf,
    /// Where what takes long to make is kept from run to run.
    pub cache: PathBuf,
    /// Which parts of the suite to run, where it can be run in parts.
    pub only: Only,
    /// What a suite about a GPU runs on.
    pub device: DeviceName,
    /// This program.
    pub program: PathBuf,
    /// The command that makes the result again, without paths of this machine.
    pub command: String,
}

/// Runs a suite, writes its result and plots, and returns the result. `say` is told what happens meanwhile.
pub fn run(suite: &Suite, options: &RunOptions, say: &dyn Fn(&str)) -> Result<SuiteResult, BenchError> {
    let mut provenance = Provenance::start(options.command.clone());
    let temporary = tempfile::tempdir().map_err(BenchError::io(&std::env::temp_dir()))?;
    let analyzer = Analyzer::parse(&suite.collection.analyzer)?;

    let mut findings = Findings::default();
    if suite.build.is_some() {
        say("preparing the collection");
        let input = collection::prepare(&suite.collection, &options.data, temporary.path())?;
        findings.extend(build_and_ask(suite, options, (&input, temporary.path()), &analyzer, say)?);
    }
    if let Some(part) = &suite.peers {
        let cache = Cache::new(&options.cache);
        let (data, only, program) = (&options.data, &options.only, &options.program);
        let race = Race { suite, part, only, analyzer: &analyzer, data, cache: &cache, program, say };
        let (of_race, versions) = race.run()?;
        findings.extend(of_race);
        provenance.versions.extend(versions);
    }
    if let Some(part) = &suite.codecs {
        let cache = Cache::new(&options.cache);
        let (data, program) = (&options.data, &options.program);
        findings.extend(CodecLists { suite, part, data, cache: &cache, program, say }.run()?);
    }
    let mut ran_on = Processor::Cpu;
    if let Some(part) = &suite.gpu {
        let cache = Cache::new(&options.cache);
        let (data, only, program) = (&options.data, &options.only, &options.program);
        let run = GpuRun { suite, part, only, data, cache: &cache, program, device: options.device, say };
        let (of_gpu, limits) = run.run()?;
        findings.extend(of_gpu);
        ran_on = if limits.is_simulated { Processor::Simulator } else { Processor::Gpu };
        provenance.device.add_gpu(&limits.name);
    }
    provenance.finish();
    let about = (suite.name.clone(), suite.title.clone());
    write_result(about, &suite.notes, &suite.targets, (provenance, ran_on), findings, &options.out)
}

/// Builds indexes, opens them, asks them.
fn build_and_ask(
    suite: &Suite,
    options: &RunOptions,
    (input, temporary): (&Path, &Path),
    analyzer: &Analyzer,
    say: &dyn Fn(&str),
) -> Result<Findings, BenchError> {
    let Some(part) = &suite.build else { return Ok(Findings::default()) };
    let logs = suite.query.as_ref().map_or(Ok(Vec::new()), |part| read_logs(part, suite, &options.data))?;
    say("building the indexes");
    let builds = Builds { collection: &suite.collection, part, input, temporary, program: &options.program };
    let (mut findings, indexes) = builds.run()?;
    if let Some(part) = &suite.open {
        say("opening the indexes");
        findings.extend(open::run(part, &indexes, analyzer)?);
    }
    if let Some(part) = &suite.query {
        say("checking the answers, then asking");
        let queries = Queries { suite, part, input, indexes: &indexes, logs: &logs, analyzer };
        findings.extend(queries.run()?);
    }
    Ok(findings)
}

/// Writes a result, named and titled, and its plots.
pub(crate) fn write_result(
    (name, title): (String, String),
    notes: &[String],
    targets: &[Target],
    (provenance, ran_on): (Provenance, Processor),
    findings: Findings,
    out: &Path,
) -> Result<SuiteResult, BenchError> {
    std::fs::create_dir_all(out).map_err(BenchError::io(out))?;
    let mut plots = Vec::new();
    for (ending, chart) in &findings.charts {
        let plot_name = format!("{name}-{ending}");
        plot::write(chart, out, &plot_name)?;
        plots.push((plot_name, chart.title().to_owned()));
    }
    let result = SuiteResult {
        suite: name,
        title,
        notes: notes.to_vec(),
        ran_on,
        provenance,
        targets: targets.iter().map(|target| judge(target, &findings.measurements)).collect(),
        measurements: findings.measurements,
        tables: findings.tables,
        plots,
    };
    result.write(out)?;
    Ok(result)
}

fn read_logs(part: &QueryPart, suite: &Suite, data: &Path) -> Result<Vec<Log>, BenchError> {
    let read = |log: &crate::suite::LogPart| {
        let queries = match &log.file {
            Some(file) => query_log::read(&collection::data_file(data, file)?)?,
            None => collection::synthetic_queries(suite.collection.synthetic.unwrap_or(0)),
        };
        Ok(Log { name: log.name.clone(), queries: query_log::sample(&queries, log.sample) })
    };
    part.logs.iter().map(read).collect()
}

/// Compares a claim with the largest of the values it is about; a claim about nothing does not hold.
fn judge(target: &Target, measurements: &[Measurement]) -> TargetResult {
    let values =
        measurements.iter().filter(|row| row.is(&target.kind, &target.labels)).map(|row| row.value(&target.value));
    let measured = values.fold(f64::NAN, |largest, value| if value <= largest { largest } else { value });
    let is_met = measured <= target.at_most;
    TargetResult { what: target.what.clone(), measured, at_most: target.at_most, is_met }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_claim_holds_only_if_every_measurement_it_is_about_keeps_it() {
        let row = |k: &str, ratio| Measurement::new("query", &[("engine", "lanner"), ("k", k)]).with("ratio", ratio);
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
