//! Agreement: every algorithm, codec, thread count, device, k, mode and score model gives the oracle's hits, on random
//! collections, on real ones and on one built to be nasty.
//!
//! A test is a function over an engine, run for every row of the table in `table.rs`. Its name is the path of the
//! function and the name of the engine: `random::random_texts::auto_dense_device`.

mod and_or;
mod collection;
#[path = "../device/mod.rs"]
mod device;
mod engine;
mod filters;
mod nasty;
mod random;
mod real;
#[path = "../requirements/mod.rs"]
mod requirements;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    let trials =
        [and_or::trials(), filters::trials(), nasty::trials(), random::trials(), real::trials(), table::trials()];
    requirements::run(trials.into_iter().flatten())
}
