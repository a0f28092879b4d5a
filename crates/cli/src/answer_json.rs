//! Answers as lines of JSON for programs.

use crate::failure::Failure;
use crate::hits::{Answered, Presenter, SNIPPET};
use crate::shown::{Details, Reader, Shown};
use crate::whole_file::write_json_line;
use lanner::answer::{Ids, Snippet, Trace, Work};
use lanner::{Index, Query};
use serde::{Serialize, Serializer};
use std::io::Write;

/// A query, its id in a log, its answer, and the ids and details of its hits.
#[derive(Clone, Copy)]
pub struct AnsweredQuery<'a> {
    /// The id; `None` for a query that is not of a log.
    pub id: Option<&'a str>,
    /// The query.
    pub query: &'a Query,
    /// Its answer.
    pub answered: &'a Answered,
    /// The external ids of the hits.
    pub ids: &'a Ids,
    /// What is shown of each hit.
    pub details: &'a [Details],
}

/// Reads what is shown of each hit.
pub fn details(index: &Index, query: &Query, answered: &Answered, shown: &Shown) -> Result<Vec<Details>, Failure> {
    let reader = Reader::new(index, query)?;
    answered.answer.hits.iter().map(|hit| reader.details(hit.document, shown, SNIPPET)).collect()
}

impl Presenter<'_> {
    /// Writes the answer to a query that somebody typed.
    pub fn write_json(&self, query: &Query, answered: &Answered, out: &mut impl Write) -> Result<(), Failure> {
        let details = &details(self.searcher.index(), query, answered, &self.shown)?;
        let ids = &self.searcher.ids(&answered.answer.hits)?;
        self.write_json_of(AnsweredQuery { id: None, query, answered, ids, details }, out)
    }

    /// Writes an answer with its hits.
    pub fn write_json_of(&self, line: AnsweredQuery<'_>, out: &mut impl Write) -> Result<(), Failure> {
        let AnsweredQuery { id, query, answered, ids, details } = line;
        let Answered { answer, offset, time, notes } = answered;
        let hits = answered.ranked().zip(ids.iter()).zip(details).map(|(((rank, hit), id), details)| HitLine {
            rank,
            id,
            score: self.model.score(hit.units),
            units: hit.units,
            document: hit.document.0,
            title: details.title.as_deref(),
            snippet: details.snippet.as_ref(),
            fields: details.fields.as_deref(),
        });
        let line = AnswerLine {
            id,
            query: &query.text,
            notes,
            mode: query.mode.to_string(),
            k: query.k - offset,
            offset: *offset,
            score: self.model.to_string(),
            exact: answer.exact,
            microseconds: time.as_nanos() as f64 / 1000.0,
            hits: hits.collect(),
            work: self.trace.then_some(&answer.work),
            trace: self.trace.then_some(&answer.trace),
        };
        write_json_line(&line, out)
    }

    /// Writes an error instead of the answer to a query.
    pub fn write_error(&self, id: Option<&str>, query: &str, error: &str, out: &mut impl Write) -> Result<(), Failure> {
        write_json_line(&ErrorLine { id, query, error }, out)
    }
}

#[derive(Serialize)]
struct ErrorLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    query: &'a str,
    error: &'a str,
}

#[derive(Serialize)]
struct AnswerLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    query: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    notes: &'a [String],
    mode: String,
    k: usize,
    #[serde(skip_serializing_if = "is_zero")]
    offset: usize,
    score: String,
    exact: bool,
    microseconds: f64,
    hits: Vec<HitLine<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    work: Option<&'a Work>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<&'a Trace>,
}

#[derive(Serialize)]
struct HitLine<'a> {
    rank: usize,
    id: &'a str,
    /// The exact score: `units` divided by a power of two.
    score: f64,
    units: u32,
    document: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    snippet: Option<&'a Snippet>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_map")]
    fields: Option<&'a [(String, String)]>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Writes pairs as an object, in their order.
fn as_map<S: Serializer>(pairs: &Option<&[(String, String)]>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.unwrap_or_default().iter().map(|(name, text)| (name, text)))
}
