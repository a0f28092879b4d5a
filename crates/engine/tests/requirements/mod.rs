//! Tests that need what may be absent: real data, the simulator, a GPU. Without it they are reported as ignored, and
//! with `LANNER_STRICT=1` they run and fail. Test programs of all crates use this file; they have `harness = false`.
// Each of them uses a part of it.
#![allow(dead_code)]

use libtest_mimic::{Arguments, Trial};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs tests as the command line says.
pub fn run(tests: impl IntoIterator<Item = Trial>) -> ExitCode {
    libtest_mimic::run(&Arguments::from_args(), tests.into_iter().collect()).exit_code()
}

/// A test with the name that `#[test]` would give it.
pub fn test<F: Fn() + Send + 'static>(body: F) -> Trial {
    let run = move || {
        body();
        Ok(())
    };
    Trial::test(path_of::<F>(), run)
}

/// The path of a function below the root of its crate.
pub fn path_of<F>() -> &'static str {
    let path = std::any::type_name::<F>();
    path.split_once("::").map_or(path, |(_, path)| path)
}

/// A test that needs something: it is ignored where that is absent, unless `LANNER_STRICT=1` makes it a failure.
pub fn needs(is_present: bool, test: Trial) -> Trial {
    let is_strict = std::env::var("LANNER_STRICT").is_ok_and(|value| value == "1");
    let is_ignored = test.has_ignored_flag() || !is_present && !is_strict;
    test.with_ignored_flag(is_ignored)
}

/// A test over real collections or query logs, which are not part of the project.
pub fn needs_data(test: Trial) -> Trial {
    needs(std::env::var_os("LANNER_DATA").is_some(), test)
}

/// The folder of real collections; a relative path starts at the root of the project.
pub fn data_folder() -> PathBuf {
    let folder = std::env::var_os("LANNER_DATA").expect("set LANNER_DATA to the folder of collections and query logs");
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder)
}
