//! Peers that run in their own processes: their installation, the postings they index, and how they are asked.

mod environment;
mod lucene;
mod postings;
mod process;

pub use environment::Environment;
pub use lucene::Lucene;
pub use postings::write_postings;
pub use process::{About, Overhead, Peer, Request, Times};
