//! Peers that are Python packages: where they are installed, what their indexes are made of, how they are asked.

mod environment;
mod postings;
mod process;

pub use environment::Environment;
pub use postings::write_postings;
pub use process::{About, Overhead, Peer, Request, Times};
