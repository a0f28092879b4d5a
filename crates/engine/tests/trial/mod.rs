//! Tests made at run time, and those that need real data: without it they are reported as ignored, and with
//! `LANNER_STRICT=1` they run and fail.

use libtest_mimic::Trial;
use std::path::{Path, PathBuf};

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

/// Whether a test that cannot run is a failure.
pub fn is_strict() -> bool {
    std::env::var("LANNER_STRICT").is_ok_and(|value| value == "1")
}

/// A test over real collections or query logs, which are not part of the project.
pub fn needs_data(trial: Trial) -> Trial {
    let is_missing = std::env::var_os("LANNER_DATA").is_none();
    let is_ignored = trial.has_ignored_flag() || is_missing && !is_strict();
    trial.with_ignored_flag(is_ignored)
}

/// The folder of real collections; a relative path starts at the root of the project.
pub fn data_folder() -> PathBuf {
    let folder = std::env::var_os("LANNER_DATA").expect("set LANNER_DATA to the folder of collections and query logs");
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder)
}
