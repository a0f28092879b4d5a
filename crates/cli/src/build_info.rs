//! What this program was built from.

use lanner::GpuOptions;
use serde::Serialize;

/// The version of the program and how it was built.
#[derive(Clone, Debug, Serialize)]
pub struct BuildInfo {
    /// The version of the package.
    pub version: &'static str,
    /// The commit, or `unknown`; it ends in `-dirty` if sources differed from it.
    pub commit: &'static str,
    /// The profile of cargo; tests are built in the folder of `debug`.
    pub profile: &'static str,
    /// The target triple.
    pub target: &'static str,
    /// What is compiled in and not in every build.
    pub features: Vec<&'static str>,
}

impl BuildInfo {
    /// That of this program.
    pub fn of_program() -> BuildInfo {
        BuildInfo {
            version: env!("CARGO_PKG_VERSION"),
            commit: env!("LANNER_BUILD_COMMIT"),
            profile: env!("LANNER_BUILD_PROFILE"),
            target: env!("LANNER_BUILD_TARGET"),
            features: GpuOptions::simulator().map(|_| "simulator").into_iter().collect(),
        }
    }

    /// The text of `--version`, without the name of the program.
    pub fn long(&self) -> String {
        let BuildInfo { version, commit, profile, target, .. } = self;
        format!("{version}\ncommit    {commit}\nprofile   {profile}\ntarget    {target}\nfeatures  {}", self.features())
    }

    /// The features as a list.
    pub fn features(&self) -> String {
        if self.features.is_empty() { "none".to_owned() } else { self.features.join(", ") }
    }
}
