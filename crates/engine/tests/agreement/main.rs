//! Agreement: every algorithm, thread count, codec, k, mode and score model gives the oracle's hits, on random
//! collections, on real ones and on one built to be nasty.

mod collection;
#[path = "../device/mod.rs"]
mod device;
#[macro_use]
mod engine;
mod and_or;
mod nasty;
mod random;
mod real;
