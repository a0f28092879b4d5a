//! JASSv2, the engine of the authors of saat, beside score-at-a-time over the same impacts. Its programs are built outside
//! of the project.

use super::super::Choice;
use super::workload::{K, Workload};
use crate::error::{BenchError, Result};
use crate::experiments::Findings;
use crate::result::Measurement;
use crate::statistics::{Spread, Summary};
use crate::table::{Table, number};
use lanner::Algorithm;
use lanner_index::open::{Column, export_ciff};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The name of the entry.
pub const NAME: &str = "saat/jass";

const OURS: [(&str, Algorithm); 2] =
    [("Lanner, score at a time", Algorithm::ScoreAtATime), ("Lanner, document at a time", Algorithm::Auto)];
const JASS: &str = "JASSv2";

/// JASSv2 with an index of its own.
struct Jass {
    programs: PathBuf,
    folder: TempDir,
}

/// What JASSv2 says of a query.
#[derive(Clone, Debug, Default, PartialEq)]
struct Answered {
    us: f64,
    /// The scores of its hits, highest first.
    scores: Vec<u32>,
}

/// The time of a query in JASSv2 and in Lanner, on one thread.
pub fn table(workload: &Workload, choice: &Choice) -> Result<Findings> {
    let programs = choice.jass.as_deref().ok_or_else(|| {
        let what =
            "give the folder of ciff_to_JASS and JASS_anytime by --jass; docs/benchmarks.md says how to build them";
        BenchError::Usage(what.to_owned())
    })?;
    let (jass, queries) = (Jass::new(programs, workload)?, workload.terms());
    let mut times: Vec<Vec<Vec<f64>>> = vec![Vec::new(); 1 + OURS.len()];
    for _ in 0..choice.runs {
        let answered = jass.answer(&queries)?;
        times[0].push(answered.iter().map(|answered| answered.us).collect());
        for ((_, algorithm), times) in OURS.iter().zip(&mut times[1..]) {
            // The first pass warms up, as that of JASSv2.
            workload.answer(&queries, *algorithm)?;
            let ours = workload.answer(&queries, *algorithm)?;
            let scores =
                |hits: &[_]| hits.iter().map(|hit: &lanner::internals::query::answer::Scored| hit.units).collect();
            for ((query, answered), (_, hits)) in queries.iter().zip(&answered).zip(&ours) {
                same_scores(query, &answered.scores, scores(hits))?;
            }
            times.push(ours.into_iter().map(|(us, _)| us).collect());
        }
    }
    Ok(findings(workload, choice.runs, &times))
}

/// Ties at rank k go to the greater document in JASSv2, so that scores are compared alone.
fn same_scores(query: &str, jass: &[u32], ours: Vec<u32>) -> Result<()> {
    if jass == ours {
        return Ok(());
    }
    Err(BenchError::Usage(format!(
        "the scores of JASSv2 for {query:?} are not the sums of impacts: {jass:?} instead of {ours:?}; build it with 16-bit \
         accumulators (docs/benchmarks.md), it adds in 8 bits by default"
    )))
}

fn findings(workload: &Workload, runs: usize, times: &[Vec<Vec<f64>>]) -> Findings {
    let columns = ["engine", "mean", "p50", "p95", "p99", "x JASSv2, mean", "x JASSv2, p99"];
    let mut table = Table::new("saat/jass: microseconds per query, one thread", 1, &columns);
    let (mut measurements, mut of_jass) = (Vec::new(), None);
    for (engine, runs) in [JASS].into_iter().chain(OURS.map(|(name, _)| name)).zip(times) {
        let of_query = |at: usize| Spread::of(runs.iter().map(|run| run[at])).median;
        let summary = Summary::of((0..workload.queries()).map(of_query));
        let (mean, p99) = *of_jass.get_or_insert((summary.mean, summary.p99));
        let values = [summary.mean, summary.p50, summary.p95, summary.p99, summary.mean / mean, summary.p99 / p99];
        table.row([engine.to_owned()].into_iter().chain(values.map(number)));
        measurements.push(
            Measurement::new("time", &[("engine", &engine)])
                .with("queries", summary.count as f64)
                .with("mean_us", summary.mean)
                .with("p50_us", summary.p50)
                .with("p95_us", summary.p95)
                .with("p99_us", summary.p99)
                .with("x_mean", summary.mean / mean)
                .with("x_p99", summary.p99 / p99),
        );
    }
    let table = table.notes(&[
        &format!("{}; the median of {runs} runs of each query, the engines alternate.", workload.note()),
        "From the terms of a query to its hits; JASSv2's times are its own, without writing results. Both add the same 8-bit \
         impacts, and the scores of all hits are equal.",
    ]);
    Findings::new(measurements).table(table)
}

impl Jass {
    /// Converts the impacts of an index.
    fn new(programs: &Path, workload: &Workload) -> Result<Jass> {
        let programs = programs.canonicalize().map_err(BenchError::io(programs))?;
        let folder = tempfile::tempdir().map_err(BenchError::io(Path::new("the folder for temporary files")))?;
        let ciff = folder.path().join("impacts.ciff");
        let file = File::create(&ciff).map_err(BenchError::io(&ciff))?;
        let exported = export_ciff(workload.index(), Column::Impact, BufWriter::new(file));
        exported.map_err(|error| BenchError::Usage(error.to_string()))?;
        let jass = Jass { programs, folder };
        jass.run("ciff_to_JASS", &["impacts.ciff", "-passthrough"])?;
        std::fs::remove_file(&ciff).map_err(BenchError::io(&ciff))?;
        Ok(jass)
    }

    /// Runs a program in the folder of the index. Their exit status says nothing.
    fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        let path = self.programs.join(program);
        let output = Command::new(&path).args(arguments).current_dir(self.folder.path()).output();
        let output = output.map_err(BenchError::io(&path))?;
        Ok(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    }

    /// Answers queries, after a first pass that warms up.
    fn answer(&self, queries: &[String]) -> Result<Vec<Answered>> {
        let write = |name: &str, text: String| {
            let path = self.folder.path().join(name);
            std::fs::write(&path, text).map_err(BenchError::io(&path))
        };
        let read = |name: &str| {
            let path = self.folder.path().join(name);
            std::fs::read_to_string(&path).map_err(BenchError::io(&path))
        };
        // Each has a number of its own: results are sorted by it, and one would replace an earlier one.
        let lines = queries.iter().chain(queries).enumerate().map(|(number, query)| format!("{number} {query}\n"));
        write("queries.txt", lines.collect())?;
        let said = self.run("JASS_anytime", &["-a", "-q", "queries.txt", "-k", &K.to_string(), "-t", "1"])?;
        let answered = parse(&read("JASSv2Stats.txt")?, &read("ranking.txt")?, queries.len());
        let failed = || BenchError::Usage(format!("JASS_anytime did not answer all queries; it says: {}", said.trim()));
        answered.ok_or_else(failed)
    }
}

/// Reads the times and the scores of the second pass over some queries; `None` if one is missing.
fn parse(times: &str, ranking: &str, queries: usize) -> Option<Vec<Answered>> {
    let mut answered: Vec<Option<Answered>> = vec![None; queries];
    let mut query =
        |number: &str| number.parse::<usize>().ok()?.checked_sub(queries).filter(|&number| number < queries);
    for line in times.lines() {
        let between = |tag: &str| line.split_once(&format!("<{tag}>"))?.1.split_once(&format!("</{tag}>"));
        if let (Some((number, _)), Some((nanoseconds, _))) = (between("id"), between("time_ns"))
            && let Some(number) = query(number)
        {
            let us = nanoseconds.parse::<f64>().ok()? / 1e3;
            answered[number] = Some(Answered { us, scores: Vec::new() });
        }
    }
    // As TREC runs: query, Q0, document, rank, score, name. A document's id may have spaces.
    for line in ranking.lines() {
        let number = line.split_whitespace().next().and_then(&mut query);
        if let Some(number) = number {
            let score = line.split_whitespace().rev().nth(1)?.parse().ok()?;
            answered[number].as_mut()?.scores.push(score);
        }
    }
    answered.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_scores_are_those_of_the_second_pass() {
        let times = "<JASSv2stats>\n<id>0</id><query>a b</query><postings>3</postings><time_ns>9000</time_ns>\n\
                     <id>1</id><query>c</query><postings>3</postings><time_ns>9000</time_ns>\n\
                     <id>3</id><query>c</query><postings>3</postings><time_ns>2500</time_ns>\n\
                     <id>2</id><query>a b</query><postings>3</postings><time_ns>1000</time_ns>\n</JASSv2stats>\n";
        let ranking = "0 Q0 d1 1 70 JASSv2(ID:1->70)\n2 Q0 d 1 1 68 JASSv2(ID:1->68)\n2 Q0 d2 2 66 JASSv2(ID:2->66)\n";
        let expected = [Answered { us: 1.0, scores: vec![68, 66] }, Answered { us: 2.5, scores: vec![] }];
        assert_eq!(parse(times, ranking, 2), Some(expected.to_vec()));
        assert_eq!(parse(&times.replace("<id>3<", "<id>4<"), ranking, 2), None, "a query has no time");
        assert_eq!(parse(times, &ranking.replace("66 JASS", "x JASS"), 2), None, "a score is no number");
    }

    #[test]
    fn scores_that_are_not_sums_of_impacts_are_refused() {
        assert!(same_scores("a", &[3, 2], vec![3, 2]).is_ok());
        let error = same_scores("a b", &[255, 254], vec![300, 299]).unwrap_err().to_string();
        assert!(error.contains("16-bit"), "{error}");
    }
}
