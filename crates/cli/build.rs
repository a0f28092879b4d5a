//! Records what the program is built from: commit, profile and target, for `lanner --version`.
//!
//! The commit is that of `LANNER_COMMIT`, or in a release build that of the repository, if this is its own one. A tarball
//! needs neither, and development builds do not depend on git, so that a commit does not build them again.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=LANNER_COMMIT");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let given = Some(variable("LANNER_COMMIT")).filter(|commit| !commit.is_empty());
    let commit = given.or_else(|| if variable("PROFILE") == "release" { commit_of_repository() } else { None });
    println!("cargo::rustc-env=LANNER_BUILD_COMMIT={}", commit.unwrap_or_else(|| "unknown".to_owned()));
    println!("cargo::rustc-env=LANNER_BUILD_PROFILE={}", profile(Path::new(&variable("OUT_DIR"))));
    println!("cargo::rustc-env=LANNER_BUILD_TARGET={}", variable("TARGET"));
}

/// The commit of the repository that this workspace is, with `-dirty` if a tracked file has changed.
fn commit_of_repository() -> Option<String> {
    let root = Path::new("../..").canonicalize().ok()?;
    let repository = PathBuf::from(git(&["rev-parse", "--show-toplevel"])?);
    if repository.canonicalize().ok()? != root {
        // The sources of a tarball may lie in another repository.
        return None;
    }
    // Every change of the commit appends a line to this log; a change of the sources makes them differ from it.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    let sources = ["../cli/src", "../engine/src", "../gpu/src", "../index/src"].map(str::to_owned);
    for path in sources.into_iter().chain([log]).filter(|path| Path::new(path).exists()) {
        println!("cargo::rerun-if-changed={path}");
    }
    git(&["describe", "--always", "--abbrev=40", "--dirty", "--exclude", "*"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The name of the profile: cargo builds in `target/PROFILE/build/PACKAGE/out`.
fn profile(out: &Path) -> String {
    let folder = out.ancestors().nth(3).and_then(Path::file_name);
    folder.map_or_else(|| "unknown".to_owned(), |name| name.to_string_lossy().into_owned())
}
