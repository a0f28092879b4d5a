//! The index of Lanner: analyzers, collections, codecs, the build and the file format.
//!
//! Modules in order; each knows only those before it (the `tidy` test keeps it so):
//! [`text`], [`codec`], [`weight`], [`format`](mod@format), [`corpus`], [`open`], [`build`].

pub mod text;

pub mod codec;

pub mod weight;

pub mod format;

pub mod corpus;

pub mod open;

pub mod build;

/// The number of a document: its place in the index's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct DocId(pub u32);

/// The number of a term: its place in the order of all terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct TermId(pub u64);
