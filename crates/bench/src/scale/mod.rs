//! Large collections made of a real one, so that they keep its lengths, its lists and its topics.
//!
//! Document number i is made of source document [`Generator::source_of`]`(i)` and the seed alone: any part can be made
//! on any thread. Each pass over the source, a *copy*, visits groups of neighbouring documents in an order of its own.
//! A document keeps most of its terms, swaps some with a neighbour's, and its frequencies are redrawn around those it
//! has. Rare words get new names at the rate at which Heaps' law wants new words (`names`).

mod generate;
mod names;
mod profile;
pub(crate) mod random;
mod source;
mod write;

pub use generate::{Generator, Made};
pub use profile::{Profile, compare};
pub use source::Source;
pub use write::{build_index, documents, write_jsonl};
