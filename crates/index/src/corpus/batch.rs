//! A batch of raw records, and the documents parsed from them.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::document::Document;
use super::format::Format;
use super::schema::Schema;
use super::{bulk, csv, json, json_stream, lines, text, trec, tsv};

/// Consecutive records of the input, not parsed yet.
#[derive(Debug)]
pub struct Batch {
    pub(super) content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    Bytes {
        bytes: Vec<u8>,
        parts: Vec<Part>,
    },
    Memory {
        schema: Arc<Schema>,
        /// The number of the first document, from 1.
        first_number: u64,
        documents: Vec<Document>,
    },
}

impl Content {
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Content::Bytes { parts, .. } => parts.is_empty(),
            Content::Memory { documents, .. } => documents.is_empty(),
        }
    }
}

/// The bytes of a batch that come from one file.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) source: Arc<str>,
    pub(super) schema: Arc<Schema>,
    pub(super) range: Range<usize>,
    pub(super) kind: PartKind,
}

#[derive(Debug)]
pub(super) enum PartKind {
    /// Whole records; the first begins on this line of the file.
    Records { first_line: u64 },
    /// A whole file that is one document.
    Document { id: String },
    /// A place of the file that cannot be a document, and why.
    Problem { line: u64, what: String },
}

/// A document as the build needs it. It borrows from the batch and is valid during one visit.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedDocument<'a> {
    /// The file it comes from.
    pub source: &'a str,
    /// The line of that file on which it begins, from 1.
    pub line: u64,
    /// The external id, never empty.
    pub id: &'a str,
    /// The texts of the indexed fields in the order of the options; absent fields are left out.
    pub indexed: Vec<&'a str>,
    /// The texts of the stored fields, one for each name in the options; an absent field is empty.
    pub stored: Vec<&'a str>,
    /// What the record has instead if it has none of the indexed fields: the first names, for some of the records of a
    /// batch; those of arrays and objects say so.
    pub other_fields: Vec<String>,
    /// Terms with their weights: finite, greater than zero, in the order of the input, repeated terms included.
    pub vector: Vec<(&'a str, f32)>,
}

/// A malformed record, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub source: String,
    /// The line in the decompressed file, from 1; for documents in memory, the number of the document.
    pub line: u64,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.source, self.line, self.what)
    }
}

impl std::error::Error for Problem {}

pub(super) type Visit<'v> = dyn FnMut(Result<&ParsedDocument<'_>, Problem>) + 'v;

impl Batch {
    /// Parses every record in order; a malformed record becomes a [`Problem`] and does not stop the others.
    pub fn documents(&self, visit: &mut dyn FnMut(Result<&ParsedDocument<'_>, Problem>)) {
        match &self.content {
            Content::Memory { schema, first_number, documents } => {
                deliver_from_memory(*first_number, documents, &mut Delivery::new(schema, visit));
            }
            Content::Bytes { bytes, parts } => {
                let Some(first) = parts.first() else { return };
                let mut delivery = Delivery::new(&first.schema, visit);
                for part in parts {
                    (delivery.source, delivery.schema) = (&part.source, &part.schema);
                    deliver_part(part, &bytes[part.range.clone()], &mut delivery);
                }
            }
        }
    }
}

fn deliver_part(part: &Part, bytes: &[u8], delivery: &mut Delivery<'_, '_>) {
    match &part.kind {
        PartKind::Problem { line, what } => delivery.problem(*line, what.clone()),
        PartKind::Document { id } => text::document(id, bytes, delivery),
        PartKind::Records { first_line } => match delivery.schema.format {
            Format::Jsonl | Format::Beir => json::documents(bytes, *first_line, delivery),
            Format::Json => json_stream::documents(bytes, *first_line, delivery),
            Format::Bulk => bulk::documents(bytes, *first_line, delivery),
            Format::Tsv => tsv::documents(bytes, *first_line, delivery),
            Format::Csv => csv::documents(bytes, *first_line, delivery),
            Format::Trec => trec::documents(bytes, *first_line, delivery),
            Format::Text => unreachable!("a text file is one document"),
        },
    }
}

fn deliver_from_memory(first_number: u64, documents: &[Document], delivery: &mut Delivery<'_, '_>) {
    delivery.source = "memory";
    for (document, number) in documents.iter().zip(first_number..) {
        if document.id.trim().is_empty() {
            delivery.problem(number, "the id is empty".to_owned());
            continue;
        }
        let names = &delivery.schema.names;
        let field = |field| match field {
            0 => Some(document.id.as_str()),
            _ => document.get(&names[field]),
        };
        let other = || document.fields.iter().map(|(name, _)| name.to_string()).collect();
        delivery.document(number, field, &[], other);
    }
}

/// For how many documents of a batch that have none of the indexed fields their fields are named.
const NAMED_DOCUMENTS: usize = 20;

/// Passes documents to the visitor, and reuses the vectors of one document for the next.
pub(super) struct Delivery<'b, 'v> {
    pub(super) schema: &'b Schema,
    pub(super) source: &'b str,
    visit: &'v mut Visit<'v>,
    indexed: Vec<&'static str>,
    stored: Vec<&'static str>,
    vector: Vec<(&'static str, f32)>,
    /// How many documents without indexed fields have named their fields.
    named: usize,
}

impl<'b, 'v> Delivery<'b, 'v> {
    fn new(schema: &'b Schema, visit: &'v mut Visit<'v>) -> Delivery<'b, 'v> {
        Delivery { schema, source: "", visit, indexed: Vec::new(), stored: Vec::new(), vector: Vec::new(), named: 0 }
    }

    /// Passes on a record whose field 0, the id, or a field that stands for it is not empty. `other` names all fields of
    /// the record; it is called if the record has none of those to index.
    pub(super) fn document<'r>(
        &mut self,
        line: u64,
        field: impl Fn(usize) -> Option<&'r str>,
        weights: &'r [(Cow<'r, str>, f32)],
        other: impl FnOnce() -> Vec<String>,
    ) where
        'b: 'r,
    {
        let mut indexed: Vec<&'r str> = std::mem::take(&mut self.indexed);
        let mut stored: Vec<&'r str> = std::mem::take(&mut self.stored);
        let mut vector: Vec<(&'r str, f32)> = std::mem::take(&mut self.vector);
        let schema = self.schema;
        indexed.extend(schema.indexed.iter().filter_map(|at| schema.value(*at, &field)));
        stored.extend(schema.stored.iter().map(|at| schema.value(*at, &field).unwrap_or("")));
        vector.extend(weights.iter().map(|(term, weight)| (&**term, *weight)));
        let mut other_fields = Vec::new();
        let is_without = indexed.is_empty() && schema.vector_field.is_none();
        if is_without && self.named < NAMED_DOCUMENTS {
            self.named += 1;
            other_fields = other();
        }
        let id = schema.value(0, &field).unwrap_or("");
        let document = ParsedDocument { source: self.source, line, id, indexed, stored, other_fields, vector };
        (self.visit)(Ok(&document));
        self.indexed = emptied(document.indexed);
        self.stored = emptied(document.stored);
        self.vector = emptied(document.vector);
    }

    /// Returns a record as text, and reports one that is not UTF-8; `line` is the line on which it begins.
    pub(super) fn text<'r>(&mut self, record: &'r [u8], line: u64) -> Option<&'r str> {
        lines::utf8(record, line).map_err(|error| self.problem(error.line, error.what)).ok()
    }

    pub(super) fn problem(&mut self, line: u64, what: String) {
        let source = self.source.to_owned();
        (self.visit)(Err(Problem { source, line, what }));
    }
}

/// Turns a vector into an empty one for elements of another lifetime; collecting in place keeps its allocation.
fn emptied<T, U>(mut vector: Vec<T>) -> Vec<U> {
    vector.clear();
    vector.into_iter().map(|_| unreachable!("the vector was cleared")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emptied_vector_keeps_its_memory() {
        let text = String::from("text");
        let mut vector: Vec<&str> = Vec::with_capacity(100);
        vector.push(&text);
        let emptied: Vec<&'static str> = emptied(vector);
        assert_eq!(emptied.len(), 0);
        assert!(emptied.capacity() >= 100);
    }

    #[test]
    fn a_problem_reads_as_file_line_and_reason() {
        let problem = Problem { source: "a.jsonl".to_owned(), line: 12, what: "bad".to_owned() };
        assert_eq!(problem.to_string(), "a.jsonl:12: bad");
    }
}
