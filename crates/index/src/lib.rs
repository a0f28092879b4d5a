//! The index of Lanner: analyzers, collections, codecs, the build and the file format.
//!
//! Modules in order; each uses only those before it, which the `tidy` test checks:
//! [`unfinished`], [`attempt`], [`text`], [`codec`], [`weight`], [`format`](mod@format), [`corpus`], [`open`], [`build`].

pub mod unfinished;

pub mod attempt;

pub mod text;

pub mod codec;

pub mod weight;

pub mod format;

pub mod corpus;

pub mod open;

pub mod build;

/// The number of a document: its position in the document order of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct DocId(pub u32);

/// The number of a term: its position among all terms of the index, sorted by their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct TermId(pub u64);
