//! `lanner eval`: measures runs against relevance judgements, and compares them.

use crate::failure::Failure;
use crate::quantity::count;
use crate::run_comparison::RunComparison;
use crate::terminal::{printable_lines, tell};
use crate::whole_file::{stdout, write_json_line};
use lanner::eval::{EvalError, Evaluation, Measure, Qrels, Run, evaluate};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Measure runs against relevance judgements, as trec_eval -c and ir_measures do
///
/// All judged queries count, those without hits in a run as 0. With several runs, each is compared with the first by a paired
/// t-test over these queries.
#[derive(clap::Args)]
pub struct Arguments {
    /// Judgements, in the format of TREC or BEIR, or `-` for standard input; plain, gzip or zstd
    #[arg(long, value_name = "FILE")]
    qrels: PathBuf,
    /// A TREC run, or `-` for standard input; plain, gzip or zstd; repeat it to compare runs with the first
    #[arg(long, value_name = "FILE", required = true)]
    run: Vec<PathBuf>,
    /// Measures, separated by commas: nDCG[@k], ERR[@k], AP[@k], RR[@k], P@k, R@k, Rprec, Bpref, Judged[@k], Success@k; with
    /// (rel=n) before @k, grades from n on are relevant; also by their names in trec_eval, as map or ndcg_cut_10
    #[arg(long, value_name = "LIST", default_value = "nDCG@10,AP,RR@10,P@10,R@100")]
    measures: String,
    /// Print the values of each query as well; JSON always has them
    #[arg(long)]
    per_query: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let measures = Measure::parse_list(&arguments.measures)?;
    let files = arguments.run.iter().chain([&arguments.qrels]);
    if files.filter(|path| is_standard_input(path)).count() > 1 {
        return Err(Failure::new("standard input can be read only once; give - for one file, and save the others"));
    }
    let qrels = read(&arguments.qrels, Qrels::open, |path| Qrels::read(path, std::io::stdin().lock()))?;
    let mut evaluations = Vec::new();
    for path in &arguments.run {
        let run = read(path, Run::open, |path| Run::read(path, std::io::stdin().lock()))?;
        evaluations.push(evaluate(&qrels, &run, &measures));
    }
    write(arguments, &evaluations)?;
    for (path, evaluation) in arguments.run.iter().zip(&evaluations) {
        let name = match arguments.run.len() {
            1 => "the run".to_owned(),
            _ => path.display().to_string(),
        };
        warn(&name, evaluation);
    }
    Ok(())
}

fn is_standard_input(path: &Path) -> bool {
    path == Path::new("-")
}

/// Reads a file, or standard input.
fn read<T>(
    path: &Path,
    open: fn(&Path) -> Result<T, EvalError>,
    read_standard_input: fn(&Path) -> Result<T, EvalError>,
) -> Result<T, Failure> {
    let read = if is_standard_input(path) { read_standard_input(Path::new("stdin")) } else { open(path) };
    Ok(read?)
}

/// Writes the values of the only run, or compares all runs with the first.
fn write(arguments: &Arguments, evaluations: &[Evaluation]) -> Result<(), Failure> {
    let mut out = stdout();
    if let [evaluation] = evaluations {
        match (arguments.json, arguments.per_query) {
            (true, _) => write_json_line(evaluation, &mut out)?,
            (false, true) => write!(out, "{}", printable_lines(&evaluation.per_query_table()))?,
            (false, false) => write!(out, "{}", evaluation.mean_table())?,
        }
    } else {
        let comparison = RunComparison::new(&arguments.run, evaluations)?;
        if arguments.json {
            write_json_line(&comparison, &mut out)?;
        } else {
            if arguments.per_query {
                comparison.write_queries(&mut out)?;
            }
            comparison.write_means(&mut out)?;
        }
    }
    Ok(out.flush()?)
}

/// Warns of queries that are in the run or in the judgements alone.
fn warn(run: &str, evaluation: &Evaluation) {
    let (judged, missing) = (evaluation.per_query.len(), evaluation.queries_without_hits);
    if missing == judged {
        tell(&format!("warning: no judged query has hits in {run}; do the query ids of both files agree?"));
    } else if missing > 0 {
        let (missing, judged) = (count(missing as u64), count(judged as u64));
        tell(&format!("warning: judged queries without hits in {run}: {missing} of {judged}; they count as 0"));
    }
    let unjudged = evaluation.queries_without_judgements;
    if unjudged > 0 {
        tell(&format!("warning: queries of {run} without judgements: {}; they are left out", count(unjudged as u64)));
    }
}
