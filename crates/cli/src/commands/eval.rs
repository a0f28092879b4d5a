//! `lanner eval`: measures a run against relevance judgements.

use crate::failure::Failure;
use crate::quantity::count;
use crate::terminal::{printable_lines, tell};
use crate::whole_file::{stdout, write_json_line};
use lanner::eval::{Measure, Qrels, Run, evaluate};
use std::io::Write;
use std::path::PathBuf;

/// Measure a run against relevance judgements, as trec_eval and ir_measures do
#[derive(clap::Args)]
pub struct Arguments {
    /// Judgements, in the format of TREC or BEIR; plain, gzip or zstd
    #[arg(long, value_name = "FILE")]
    qrels: PathBuf,
    /// A TREC run; plain, gzip or zstd
    #[arg(long, value_name = "FILE")]
    run: PathBuf,
    /// Measures, separated by commas: nDCG[@k], AP[@k], RR[@k], P@k, R@k, Rprec, Judged[@k], Success@k
    #[arg(long, value_name = "LIST", default_value = "nDCG@10,AP,RR@10,P@10,R@100")]
    measures: String,
    /// Print the values of each query as well
    #[arg(long)]
    per_query: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let measures = Measure::parse_list(&arguments.measures)?;
    let qrels = Qrels::open(&arguments.qrels)?;
    let run = Run::open(&arguments.run)?;
    let evaluation = evaluate(&qrels, &run, &measures);
    let mut out = stdout();
    if arguments.json {
        write_json_line(&evaluation, &mut out)?;
    } else if arguments.per_query {
        write!(out, "{}", printable_lines(&evaluation.per_query_table()))?;
    } else {
        write!(out, "{}", evaluation.mean_table())?;
    }
    out.flush()?;
    let (judged, missing) = (evaluation.per_query.len(), evaluation.queries_without_hits);
    if missing == judged {
        tell("warning: no judged query has hits in the run; do the query ids of both files agree?");
    } else if missing > 0 {
        let (missing, judged) = (count(missing as u64), count(judged as u64));
        tell(&format!("warning: judged queries without hits in the run: {missing} of {judged}; they count as 0"));
    }
    let unjudged = evaluation.queries_without_judgements;
    if unjudged > 0 {
        tell(&format!("warning: queries of the run without judgements: {}; they are left out", count(unjudged as u64)));
    }
    Ok(())
}
