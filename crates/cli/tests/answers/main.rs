//! The answers of the program: how good they are on judged sets, and that they are the same wherever queries are
//! answered. Tests that need real data or the simulator are ignored without it.

mod effectiveness;
mod executors;
#[allow(dead_code)]
#[path = "../cli/program.rs"]
mod program;
#[path = "../../../engine/tests/requirements/mod.rs"]
mod requirements;
#[allow(dead_code)]
#[path = "../cli/texts.rs"]
mod texts;

use std::process::ExitCode;

fn main() -> ExitCode {
    requirements::run(effectiveness::tests().into_iter().chain(executors::tests()))
}
