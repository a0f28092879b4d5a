//! The formats of collections and their names.

use std::fmt;
use std::str::FromStr;

/// The format of a file of documents. CIFF has postings, not documents: see [`super::ciff`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON lines: one object per line.
    Jsonl,
    /// JSON objects on any lines, one after the other or in arrays.
    Json,
    /// `id<TAB>text` or `id<TAB>title<TAB>text`, one document per line.
    Tsv,
    /// CSV as in RFC 4180; the first record names the columns.
    Csv,
    /// SGML with `<DOC>`, `<DOCNO>` and, for the title, `<TITLE>` or `<HEADLINE>`.
    Trec,
    /// JSON lines with `_id`, `title` and `text`: a file, or a folder with a `corpus.jsonl`.
    Beir,
    /// The body of requests to Elasticsearch's `_bulk`: a line with an action, then a line with the document.
    Bulk,
    /// Each file is one document: its path is the id, its first non-empty line the title.
    Text,
}

impl Format {
    /// All formats, in the order in which messages list them.
    pub const ALL: [Format; 8] =
        [Format::Jsonl, Format::Json, Format::Tsv, Format::Csv, Format::Trec, Format::Beir, Format::Bulk, Format::Text];

    fn name(self) -> &'static str {
        match self {
            Format::Jsonl => "jsonl",
            Format::Json => "json",
            Format::Tsv => "tsv",
            Format::Csv => "csv",
            Format::Trec => "trec",
            Format::Beir => "beir",
            Format::Bulk => "bulk",
            Format::Text => "text",
        }
    }

    /// Returns the extensions of this format, without `.gz` or `.zst`.
    pub(super) fn extensions(self) -> &'static [&'static str] {
        match self {
            Format::Jsonl | Format::Json | Format::Beir | Format::Bulk => &["jsonl", "ndjson", "json"],
            Format::Csv => &["csv"],
            Format::Tsv => &["tsv"],
            Format::Trec => &["trec", "sgml", "sgm"],
            Format::Text => &["txt", "text", "md"],
        }
    }

    pub(super) fn is_json(self) -> bool {
        matches!(self, Format::Jsonl | Format::Json | Format::Beir | Format::Bulk)
    }

    /// Whether records name their fields.
    pub(super) fn has_named_fields(self) -> bool {
        self.is_json() || self == Format::Csv
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The error for a name that is not a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown format \"{0}\"; choose one of jsonl, json, tsv, csv, trec, beir, bulk, text")]
pub struct UnknownFormat(String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Format, UnknownFormat> {
        Format::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_read_back_from_its_name() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
    }

    #[test]
    fn an_unknown_format_is_refused_with_the_list_of_formats() {
        let message = "pdf".parse::<Format>().unwrap_err().to_string();
        assert_eq!(message, "unknown format \"pdf\"; choose one of jsonl, json, tsv, csv, trec, beir, bulk, text");
    }
}
