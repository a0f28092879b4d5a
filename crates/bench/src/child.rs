//! Builds in processes of their own: their memory is theirs alone, and they can be kept on one processor.

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

/// The arguments of the process that builds.
#[derive(Clone, Debug, clap::Args)]
pub struct ChildArguments {
    /// Who builds.
    #[arg(long, value_enum)]
    pub engine: BuildEngine,
    /// The documents.
    #[arg(long)]
    pub input: PathBuf,
    /// Where the index goes.
    #[arg(long)]
    pub folder: PathBuf,
    /// The analyzer.
    #[arg(long)]
    pub analyzer: String,
    /// BM25's k1.
    #[arg(long)]
    pub k1: f64,
    /// BM25's b.
    #[arg(long)]
    pub b: f64,
    /// Threads.
    #[arg(long)]
    pub threads: usize,
    /// Memory that the build may use.
    #[arg(long)]
    pub memory_bytes: usize,
    /// Codecs that pack all lists of ours; the default index if absent.
    #[arg(long)]
    pub codecs: Option<Codecs>,
}

/// What a process that builds says when it is done.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChildReport {
    /// Documents in the index.
    pub documents: u64,
    /// From opening the input to an index on disk.
    pub wall_s: f64,
    /// Processor time and memory of the whole process.
    pub usage: Usage,
}

/// Builds in this process and reports.
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

/// Starts a process that builds, and waits for its report.
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
    let failed = |message: String| BenchError::Child { what: arguments.engine.to_string(), message };
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))
}

/// Whether processes can be kept on one processor here: whether there is `taskset`, and processor 0 is ours.
pub fn can_pin() -> bool {
    static CAN_PIN: OnceLock<bool> = OnceLock::new();
    *CAN_PIN.get_or_init(|| {
        let output = Command::new("taskset").args(["-c", "0", "true"]).output();
        output.is_ok_and(|output| output.status.success())
    })
}
