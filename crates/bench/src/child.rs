//! Child processes: builds, so that their peak memory is their own and they can be pinned to one core, and engines that
//! nothing has warmed up.

use crate::engines::{self, BuildTask, LannerVariant};
use crate::error::{BenchError, Result};
use crate::machine::Usage;
use crate::result::Measurement;
use crate::statistics::timed;
use crate::suite::BuildEngine;
use lanner_index::codec::Codecs;
use lanner_index::text::Analyzer;
use lanner_index::weight::Bm25;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// What the child process builds; it gets this as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChildTask {
    pub engine: BuildEngine,
    pub input: PathBuf,
    pub folder: PathBuf,
    pub analyzer: String,
    pub bm25: Bm25,
    pub threads: usize,
    pub memory_bytes: usize,
    /// Codecs for all lists of Lanner's index; the default index if absent.
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
pub fn build_here(task: &str) -> Result<ChildReport> {
    let task: ChildTask = serde_json::from_str(task).map_err(|error| BenchError::Usage(error.to_string()))?;
    let ChildTask { engine, input, folder, analyzer, bm25, threads, memory_bytes, codecs } = &task;
    let (analyzer, threads, memory_bytes) = (Analyzer::parse(analyzer)?, *threads, *memory_bytes);
    let task = BuildTask { input, folder, analyzer, bm25: *bm25, threads, memory_bytes };
    let variant = codecs.map_or(LannerVariant::Default, LannerVariant::Codecs);
    let (documents, wall_s) = timed(|| engines::build(*engine, &task, &variant))?;
    Ok(ChildReport { documents, wall_s, usage: Usage::now() })
}

/// Builds in a child process and waits for its report.
pub fn build_in_child(program: &Path, is_pinned: bool, task: &ChildTask) -> Result<ChildReport> {
    let failed = |message: String| BenchError::Child { engine: task.engine.to_string(), message };
    let mut command = if is_pinned && can_pin() {
        let mut command = Command::new("taskset");
        command.args(["-c", "0"]).arg(program);
        command
    } else {
        Command::new(program)
    };
    let task = serde_json::to_string(task).map_err(|error| failed(error.to_string()))?;
    command.args(["child-build", &task]);
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))
}

/// Runs a hidden command of this program with a task as JSON, and returns what it has measured.
pub fn measure_in_child(program: &Path, command: &str, task: &str) -> Result<Measurement> {
    let failed = |message: String| BenchError::Device { what: format!("the process {command}: {message}") };
    let output = Command::new(program).args([command, task]).output().map_err(|error| failed(error.to_string()))?;
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
