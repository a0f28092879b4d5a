//! Builds in child processes, so that their peak memory is their own and they can be pinned to one core.

use crate::engines::{self, BuildTask, LannerVariant};
use crate::error::BenchError;
use crate::machine::Usage;
use crate::suite::{BuildEngine, Builder};
use lanner_index::codec::Codecs;
use lanner_index::text::Analyzer;
use lanner_index::weight::Bm25;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Instant;

/// Arguments of the child process.
#[derive(Clone, Debug, clap::Args)]
pub struct ChildArguments {
    #[arg(long, value_enum)]
    pub engine: BuildEngine,
    #[arg(long)]
    pub input: PathBuf,
    #[arg(long)]
    pub folder: PathBuf,
    #[arg(long)]
    pub analyzer: String,
    #[arg(long)]
    pub k1: f64,
    #[arg(long)]
    pub b: f64,
    #[arg(long)]
    pub threads: usize,
    #[arg(long)]
    pub memory_bytes: usize,
    /// Codecs for all lists of Lanner's index; the default index if absent.
    #[arg(long)]
    pub codecs: Option<Codecs>,
}

/// What the child process reports.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChildReport {
    pub documents: u64,
    /// Time from opening the input to an index on disk.
    pub wall_s: f64,
    /// CPU time and memory of the whole process.
    pub usage: Usage,
}

/// Builds in this process, which is the child.
pub fn build_here(arguments: &ChildArguments) -> Result<ChildReport, BenchError> {
    let task = BuildTask {
        input: &arguments.input,
        folder: &arguments.folder,
        analyzer: Analyzer::parse(&arguments.analyzer)?,
        bm25: Bm25 { k1: arguments.k1, b: arguments.b },
        threads: arguments.threads,
        memory_bytes: arguments.memory_bytes,
    };
    let start = Instant::now();
    let variant = arguments.codecs.map_or(LannerVariant::Default, LannerVariant::Codecs);
    let documents = engines::build(arguments.engine, &task, &variant)?;
    Ok(ChildReport { documents, wall_s: start.elapsed().as_secs_f64(), usage: Usage::now() })
}

/// Builds in a child process and waits for its report.
pub fn build_in_child(
    program: &Path,
    builder: &Builder,
    arguments: &ChildArguments,
) -> Result<ChildReport, BenchError> {
    let mut command = if builder.pinned && can_pin() {
        let mut command = Command::new("taskset");
        command.args(["-c", "0"]).arg(program);
        command
    } else {
        Command::new(program)
    };
    command.args(["child-build", "--engine", &arguments.engine.to_string(), "--analyzer", &arguments.analyzer]);
    command.arg("--input").arg(&arguments.input).arg("--folder").arg(&arguments.folder);
    command.args(["--k1", &arguments.k1.to_string(), "--b", &arguments.b.to_string()]);
    command.args(["--threads", &arguments.threads.to_string()]);
    command.args(["--memory-bytes", &arguments.memory_bytes.to_string()]);
    let codecs = arguments.codecs.map(|codecs| format!("documents={},weights={}", codecs.documents, codecs.weights));
    command.args(codecs.map(|codecs| format!("--codecs={codecs}")));
    let failed = |message: String| BenchError::Child { engine: arguments.engine.to_string(), message };
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))
}

/// Whether processes can be pinned here: whether `taskset` exists and core 0 may be used.
pub fn can_pin() -> bool {
    static CAN_PIN: OnceLock<bool> = OnceLock::new();
    *CAN_PIN.get_or_init(|| {
        let output = Command::new("taskset").args(["-c", "0", "true"]).output();
        output.is_ok_and(|output| output.status.success())
    })
}
