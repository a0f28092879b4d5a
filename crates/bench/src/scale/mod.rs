//! Generates large collections that keep the document lengths, list lengths and topics of a real one.
//!
//! Document i depends only on source document [`Generator::source_of`]`(i)` and the seed, so that documents can be
//! generated in any order on any thread. Each pass over the source, a *copy*, visits groups of neighbouring documents
//! in its own order. A document keeps most of its terms, swaps some with those of a neighbour, and gets new frequencies
//! with the same mean. Rare words get new names at the rate of new words that Heaps' law predicts (`names`).

mod generate;
mod names;
mod profile;
pub(crate) mod random;
mod source;
mod write;

pub use generate::Generator;
pub use profile::{Profile, compare};
pub use source::Source;
pub use write::{build_index, write_jsonl};
