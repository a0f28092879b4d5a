//! The formats of collections and their names.

use std::fmt;
use std::str::FromStr;

/// The format of a file of documents. CIFF has postings, not documents: see [`super::ciff`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON lines: one object per line.
    Jsonl,
    /// `id<TAB>text` or `id<TAB>title<TAB>text`, one document per line.
    Tsv,
    /// SGML with `<DOC>`, `<DOCNO>` and, for the title, `<TITLE>` or `<HEADLINE>`.
    Trec,
    /// JSON lines with `_id`, `title` and `text`: a file, or a folder with a `corpus.jsonl`.
    Beir,
    /// Each file is one document: its path is the id, its first non-empty line the title.
    Text,
}

impl Format {
    /// All formats, in the order in which messages list them.
    pub const ALL: [Format; 5] = [Format::Jsonl, Format::Tsv, Format::Trec, Format::Beir, Format::Text];

    fn name(self) -> &'static str {
        match self {
            Format::Jsonl => "jsonl",
            Format::Tsv => "tsv",
            Format::Trec => "trec",
            Format::Beir => "beir",
            Format::Text => "text",
        }
    }

    /// Returns the extensions of this format, without `.gz` or `.zst`.
    pub(super) fn extensions(self) -> &'static [&'static str] {
        match self {
            Format::Jsonl | Format::Beir => &["jsonl", "ndjson", "json"],
            Format::Tsv => &["tsv"],
            Format::Trec => &["trec", "sgml", "sgm"],
            Format::Text => &["txt", "text", "md"],
        }
    }

    pub(super) fn is_json(self) -> bool {
        matches!(self, Format::Jsonl | Format::Beir)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The error for a name that is not a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown format \"{0}\"; choose one of jsonl, tsv, trec, beir, text")]
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
        assert_eq!(message, "unknown format \"pdf\"; choose one of jsonl, tsv, trec, beir, text");
    }
}
