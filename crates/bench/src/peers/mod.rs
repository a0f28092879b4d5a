//! Peers that are Python packages: their installation, the postings they index, and the processes that answer queries.

mod environment;
mod postings;
mod process;

pub use environment::Environment;
pub use postings::write_postings;
pub use process::{About, Overhead, Peer, Request, Times};
