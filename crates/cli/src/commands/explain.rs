//! `lanner explain`: shows how a query is answered, and why a document has its score.

use crate::failure::Failure;
use crate::query_notes::notes;
use crate::query_options::QueryOptions;
use crate::terminal::{note, printable, printable_lines};
use crate::whole_file::{stdout, write_json_line};
use lanner::answer::Explanation;
use lanner::internals::query::plan::Stage;
use lanner::{Plan, Query, Searcher};
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;

/// Show the plan of a query: lists, bounds and algorithms; with --doc, also why a document has its score
#[derive(clap::Args)]
pub struct Arguments {
    /// The index folder
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    #[command(flatten)]
    options: QueryOptions,
    /// Explain the score of the document with this id, term by term
    #[arg(long, value_name = "ID")]
    doc: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The words of the query; word^2.5 gives a word a weight; only ratios of weights count
    #[arg(required = true, value_name = "QUERY")]
    query: Vec<String>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let searcher = Searcher::open(&arguments.index)?;
    let query = arguments.options.query(&arguments.query.join(" "))?;
    let mut out = stdout();
    match arguments.json {
        true => write_json(&searcher, &query, arguments.doc.as_deref(), &mut out)?,
        false => write_text(&searcher, &query, arguments.doc.as_deref(), &mut out)?,
    }
    out.flush()?;
    Ok(())
}

/// Writes the plan of a query, and why the document with an id has its score; notes on the query go to standard error.
pub fn write_text(
    searcher: &Searcher,
    query: &Query,
    document: Option<&str>,
    out: &mut impl Write,
) -> Result<(), Failure> {
    notes(query, searcher.index().analyzer())?.iter().for_each(|line| note(line));
    let (plan, explanation) = (searcher.plan(query)?, explanation(searcher, query, document)?);
    write!(out, "{}", printable_lines(&plan.to_string()))?;
    if let (Some(explanation), Some(id)) = (explanation, document) {
        write!(out, "\n{}\n{}", printable(id), printable_lines(&explanation.to_string()))?;
    }
    Ok(())
}

fn write_json(searcher: &Searcher, query: &Query, document: Option<&str>, out: &mut impl Write) -> Result<(), Failure> {
    let notes = notes(query, searcher.index().analyzer())?;
    let (plan, explanation) = (searcher.plan(query)?, explanation(searcher, query, document)?);
    write_json_line(&Explained { query: &query.text, notes, plan: described(&plan), explanation }, out)
}

fn explanation(searcher: &Searcher, query: &Query, id: Option<&str>) -> Result<Option<Explanation>, Failure> {
    let Some(id) = id else {
        return Ok(None);
    };
    let absent = || Failure::new(format!("no document has the id {id:?}; ids are those of the collection"));
    let document = searcher.index().find(id)?.ok_or_else(absent)?;
    Ok(Some(searcher.explain(query, document)?.ok_or_else(absent)?))
}

#[derive(Serialize)]
struct Explained<'a> {
    query: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    plan: DescribedPlan<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<Explanation>,
}

#[derive(Serialize)]
struct DescribedPlan<'a> {
    mode: String,
    k: usize,
    score: String,
    first_document: u32,
    end_document: u32,
    lists: Vec<DescribedList<'a>>,
    missing: &'a [String],
    largest_score: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    accumulator_bits: Option<u32>,
    seed: Option<f64>,
    block_bounds_hold: bool,
    stages: Vec<DescribedStage>,
}

#[derive(Serialize)]
struct DescribedList<'a> {
    term: &'a str,
    postings: u32,
    document_frequency: u64,
    query_weight: f64,
    relative_weight: f64,
    idf: f64,
    bound: f64,
    bound_units: u32,
}

#[derive(Serialize)]
struct DescribedStage {
    operation: String,
    algorithm: &'static str,
}

fn described(plan: &Plan) -> DescribedPlan<'_> {
    let lists = plan.lists.iter().map(|list| DescribedList {
        term: &list.term,
        postings: list.postings,
        document_frequency: list.document_frequency,
        query_weight: list.query_weight,
        relative_weight: list.relative_weight,
        idf: list.idf,
        bound: plan.score.score(list.bound),
        bound_units: list.bound,
    });
    let stages = plan.stages.iter().map(|Stage { operation, algorithm }| DescribedStage {
        operation: operation.to_string(),
        algorithm: algorithm.name(),
    });
    DescribedPlan {
        mode: plan.mode.to_string(),
        k: plan.k,
        score: plan.score.to_string(),
        first_document: plan.range.start,
        end_document: plan.range.end,
        lists: lists.collect(),
        missing: &plan.missing,
        largest_score: plan.score.score(plan.largest_score),
        accumulator_bits: plan.accumulator_bits(),
        seed: plan.seed.map(|seed| plan.score.score(seed)),
        block_bounds_hold: plan.block_bounds_hold,
        stages: stages.collect(),
    }
}
