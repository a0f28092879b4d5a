//! Where the records of a file end, for each format.

use super::format::Format;
use super::schema::Schema;
use super::{bulk, csv, json_stream, lines, trec};

/// Finds the ends of records in bytes that come piece after piece.
#[derive(Clone, Debug)]
pub(super) enum Ends {
    Lines,
    Trec,
    Json(json_stream::Ends),
    Csv(Box<csv::Ends>),
    Bulk(bulk::Ends),
}

impl Ends {
    pub(super) fn new(schema: &Schema) -> Ends {
        match schema.format {
            Format::Jsonl | Format::Beir | Format::Tsv | Format::Text => Ends::Lines,
            Format::Trec => Ends::Trec,
            Format::Json => Ends::Json(json_stream::Ends::default()),
            Format::Csv => Ends::Csv(Box::new(csv::Ends::new(schema.columns.delimiter))),
            Format::Bulk => Ends::Bulk(bulk::Ends::default()),
        }
    }

    /// Returns how much must be read again to see an end that lies across the border of two pieces; `None` if all bytes
    /// must be read, from the first on, and each once.
    pub(super) fn overlap(&self) -> Option<usize> {
        match self {
            Ends::Lines => Some(0),
            Ends::Trec => Some(trec::DOCUMENT_END.len() - 1),
            Ends::Json(_) | Ends::Csv(_) | Ends::Bulk(_) => None,
        }
    }

    /// Returns the position after the first record that ends.
    pub(super) fn next(&mut self, bytes: &[u8]) -> Option<usize> {
        match self {
            Ends::Lines => lines::line_end(bytes),
            Ends::Trec => trec::document_end(bytes),
            Ends::Json(ends) => ends.next(bytes),
            Ends::Csv(ends) => ends.next(bytes),
            Ends::Bulk(ends) => ends.next(bytes),
        }
    }

    /// Returns what is wrong with a file that ends here, if that shows only at its end.
    pub(super) fn complaint(&self) -> Option<&'static str> {
        match self {
            Ends::Json(ends) if ends.is_in_array() => Some("an array without its end; is the file complete?"),
            _ => None,
        }
    }
}
