//! CIFF, the Common Index File Format: exchange of postings with other engines.
//!
//! A file has a header, then postings lists, then document records, each a protobuf message preceded by its length as
//! a varint. The first document of a list is a number, the others are gaps. The protobuf definition does not say so,
//! and some exporters wrote numbers instead of gaps. Such a file is read as gaps too: that is an error if a sum exceeds
//! the number of documents, and goes unnoticed otherwise. Lengths are those of the exporter; Lucene rounds them, so
//! their sum may differ from the total in the header. Paper: Lin et al., "Supporting
//! Interoperability Between Open-Source Search Engines with the Common Index File Format", SIGIR 2020.

mod read;
#[cfg(test)]
mod tests;
mod write;

use std::fmt;
use std::io;

use prost::Message;

pub use read::CiffReader;
pub use write::CiffWriter;

/// The version of the format that is read and written.
const VERSION: i32 = 1;

#[derive(Clone, PartialEq, Message)]
struct HeaderMessage {
    #[prost(int32, tag = "1")]
    version: i32,
    #[prost(int32, tag = "2")]
    num_postings_lists: i32,
    #[prost(int32, tag = "3")]
    num_docs: i32,
    #[prost(int32, tag = "4")]
    total_postings_lists: i32,
    #[prost(int32, tag = "5")]
    total_docs: i32,
    #[prost(int64, tag = "6")]
    total_terms_in_collection: i64,
    #[prost(double, tag = "7")]
    average_doclength: f64,
    #[prost(string, tag = "8")]
    description: String,
}

#[derive(Clone, PartialEq, Message)]
struct PostingsListMessage {
    #[prost(string, tag = "1")]
    term: String,
    #[prost(int64, tag = "2")]
    df: i64,
    #[prost(int64, tag = "3")]
    cf: i64,
    #[prost(message, repeated, tag = "4")]
    postings: Vec<PostingMessage>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct PostingMessage {
    /// A number in the first posting, a gap in the others.
    #[prost(int32, tag = "1")]
    docid: i32,
    #[prost(int32, tag = "2")]
    tf: i32,
}

#[derive(Clone, PartialEq, Message)]
struct DocRecordMessage {
    #[prost(int32, tag = "1")]
    docid: i32,
    #[prost(string, tag = "2")]
    collection_docid: String,
    #[prost(int32, tag = "3")]
    doclength: i32,
}

/// The header of a CIFF file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Header {
    /// Postings lists in this file.
    pub lists: u32,
    /// Documents in this file.
    pub documents: u32,
    /// Terms of the whole collection; more than `lists` if only some were exported.
    pub total_lists: u32,
    /// Documents of the whole collection.
    pub total_documents: u32,
    /// Tokens of the whole collection: the sum of exact lengths.
    pub total_tokens: u64,
    /// The average length as the exporter computed it.
    pub average_length: f64,
    /// Free text.
    pub description: String,
}

/// A term with its postings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    /// The term, as the exporter's analyzer made it.
    pub term: String,
    /// Document numbers, strictly increasing, and frequencies, at least 1.
    pub postings: Vec<(u32, u32)>,
}

/// A document's external id and length; its number is its position in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The external id.
    pub id: String,
    /// The length in tokens, possibly rounded.
    pub length: u32,
}

/// The kinds of messages in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The first message.
    Header,
    /// A term with its postings.
    PostingsList,
    /// A document.
    DocRecord,
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Kind::Header => "header",
            Kind::PostingsList => "postings list",
            Kind::DocRecord => "document record",
        })
    }
}

/// Why a CIFF file cannot be read or written. Messages of a kind are numbered from 1.
#[derive(Debug, thiserror::Error)]
pub enum CiffError {
    /// The file cannot be opened.
    #[error("{path}: cannot be opened: {source}")]
    Open {
        /// The file.
        path: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Reading failed: an error of the operating system, or damaged compressed data.
    #[error("CIFF {kind} {number}: reading failed: {source}")]
    Read {
        /// The message that was read.
        kind: Kind,
        /// Its number.
        number: u32,
        /// The error of the operating system or the decoder.
        source: io::Error,
    },
    /// The file ends before all messages that its header announces.
    #[error("CIFF {kind} {number}: the file ends too early; get a complete copy")]
    Truncated {
        /// The message that is cut or missing.
        kind: Kind,
        /// Its number.
        number: u32,
    },
    /// The bytes are not a message of this kind.
    #[error("CIFF {kind} {number}: not a valid message ({source}); is this a CIFF file?")]
    Malformed {
        /// The expected kind.
        kind: Kind,
        /// Its number.
        number: u32,
        /// The error of the decoder.
        source: prost::DecodeError,
    },
    /// The message is well-formed, but its content is wrong.
    #[error("CIFF {kind} {number}: {what}")]
    Invalid {
        /// The message.
        kind: Kind,
        /// Its number.
        number: u32,
        /// What is wrong.
        what: String,
    },
    /// Writing failed.
    #[error("writing CIFF failed: {0}")]
    Write(#[source] io::Error),
}

fn invalid(kind: Kind, number: u32, what: String) -> CiffError {
    CiffError::Invalid { kind, number, what }
}
