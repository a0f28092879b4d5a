//! `lanner doctor`: shows what the program finds on this machine, what would run where, and what is missing.

use crate::CommandLine;
use crate::build_info::BuildInfo;
use crate::configuration::Configuration;
use crate::failure::Failure;
use crate::machine::{Cpu, Limit, Memory, driver_version, limits};
use crate::quantity::{bytes, count, counted};
use crate::whole_file::{stdout, write_json_line};
use clap::CommandFactory;
use lanner::Index;
use lanner::internals::calibrate::Folder;
use lanner_gpu::cuda::Cuda;
use lanner_gpu::device::{Device, Properties};
use serde::Serialize;
use std::io::Write;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

/// A merge opens this many files at once.
const FILES: u64 = 256;

/// Show what this machine offers, what would run where, and what is missing
#[derive(clap::Args)]
pub struct Arguments {
    /// An index, to see if it can be opened and is calibrated
    #[arg(long, value_name = "DIR")]
    index: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    build: BuildInfo,
    cpu: Cpu,
    memory: Option<Memory>,
    /// The version of the driver in the kernel.
    driver: Option<String>,
    gpu: Finding<Gpu>,
    limits: Vec<Limit>,
    configuration: Finding<Option<PathBuf>>,
    /// The devices for which costs are calibrated: of the index, if there is one.
    calibrated: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<Finding<OpenIndex>>,
    queries: String,
    builds: String,
    advice: Vec<String>,
}

/// What was found, or why not.
#[derive(Serialize)]
#[serde(untagged)]
enum Finding<T> {
    Found(T),
    Problem { problem: String },
}

impl<T> Finding<T> {
    fn of(result: Result<T, String>) -> Finding<T> {
        match result {
            Ok(found) => Finding::Found(found),
            Err(problem) => Finding::Problem { problem },
        }
    }

    fn problem(&self) -> Option<String> {
        match self {
            Finding::Found(_) => None,
            Finding::Problem { problem } => Some(problem.clone()),
        }
    }
}

#[derive(Serialize)]
struct Gpu {
    name: String,
    memory: u64,
    free: u64,
    multiprocessors: u32,
}

#[derive(Serialize)]
struct OpenIndex {
    documents: u32,
    bytes: u64,
}

/// Runs the command, which does not fail because of what it finds.
pub fn run(arguments: &Arguments, configuration: Option<&Path>) -> Result<(), Failure> {
    let report = Report::new(arguments.index.as_deref(), configuration);
    let mut out = stdout();
    match arguments.json {
        true => write_json_line(&report, &mut out)?,
        false => report.write(&mut out)?,
    }
    Ok(out.flush()?)
}

impl Report {
    fn new(folder: Option<&Path>, configuration: Option<&Path>) -> Report {
        let opened = folder.map(|folder| Index::open(folder).map_err(|error| error.to_string()));
        let costs = Folder::of_user().map(|costs| costs.devices(opened.as_ref().and_then(|it| it.as_ref().ok())));
        let index = opened.map(|index| {
            index.map(|index| OpenIndex { documents: index.documents(), bytes: index.segment().header().file_bytes })
        });
        let mut report = Report {
            build: BuildInfo::of_program(),
            cpu: Cpu::of_machine(),
            memory: Memory::of_machine(),
            driver: driver_version(),
            gpu: Finding::of(open_gpu()),
            limits: limits(),
            configuration: Finding::of(read(configuration)),
            calibrated: costs.unwrap_or_default().into_iter().collect(),
            index: index.map(Finding::of),
            queries: String::new(),
            builds: String::new(),
            advice: Vec::new(),
        };
        let (threads, kernels) = (counted(report.cpu.cores as u64, "thread"), report.cpu.kernels());
        report.builds = format!("CPU, {threads}");
        report.queries = match &report.gpu {
            Finding::Found(_) => format!("GPU or CPU ({threads}, {kernels}), whichever is predicted to finish first"),
            Finding::Problem { .. } => format!("CPU, {threads}, {kernels} kernels"),
        };
        report.advice = report.missing(folder);
        report
    }

    /// What is missing and how to get it.
    fn missing(&self, folder: Option<&Path>) -> Vec<String> {
        let mut advice = Vec::new();
        advice.extend(self.configuration.problem());
        advice.extend(self.index.as_ref().and_then(Finding::problem));
        advice.extend(self.gpu.problem());
        if let Finding::Found(gpu) = &self.gpu
            && !self.calibrated.contains(&gpu.name)
        {
            let folder = folder.map_or_else(|| "DIR".to_owned(), |folder| folder.display().to_string());
            advice.push(format!(
                "costs are not calibrated: run 'lanner calibrate --index {folder}' for good predictions"
            ));
        }
        if self.cpu.kernels() == "portable" {
            advice.push("the CPU has no AVX2: queries take several times as long".to_owned());
        }
        let limit = |name: &str| self.limits.iter().find(|limit| limit.name == name).and_then(|limit| limit.value);
        if limit("open files").is_some_and(|files| files < FILES) {
            advice.push(format!("large builds open {FILES} files at once: allow that many (ulimit -n {FILES})"));
        }
        if limit("address space").is_some() {
            advice
                .push("the address space is limited: an index that is larger cannot be opened (ulimit -v)".to_owned());
        }
        advice
    }

    fn write(&self, out: &mut impl Write) -> Result<(), Failure> {
        let mut row = |name: &str, value: &str| writeln!(out, "{name:<14}{value}");
        let BuildInfo { version, commit, profile, target, .. } = &self.build;
        row("lanner", &format!("{version}, commit {commit}, {profile}, {target}"))?;
        row("features", &self.build.features())?;
        row(
            "cpu",
            &format!("{}, {}", self.cpu.name.as_deref().unwrap_or("unknown"), counted(self.cpu.cores as u64, "core")),
        )?;
        row("cpu features", &self.cpu_features())?;
        if let Some(Memory { total, available }) = self.memory {
            row("memory", &format!("{}, {} available", bytes(total), bytes(available)))?;
        }
        row("driver", self.driver.as_deref().unwrap_or("none"))?;
        match &self.gpu {
            Finding::Found(Gpu { name, memory, free, multiprocessors }) => {
                row("gpu", &format!("{name}, {multiprocessors} SMs"))?;
                row("gpu memory", &format!("{}, {} free", bytes(*memory), bytes(*free)))?;
            }
            Finding::Problem { .. } => row("gpu", "none")?,
        }
        row("limits", &self.limits.iter().map(Limit::described).collect::<Vec<_>>().join(", "))?;
        match &self.configuration {
            Finding::Found(Some(path)) => row("configuration", &path.display().to_string())?,
            Finding::Found(None) => row("configuration", "no file")?,
            Finding::Problem { .. } => row("configuration", "cannot be used")?,
        }
        match self.calibrated[..] {
            [] => row("calibration", "none")?,
            _ => row("calibration", &self.calibrated.join(", "))?,
        }
        match &self.index {
            Some(Finding::Found(OpenIndex { documents, bytes: size })) => {
                row("index", &format!("{}, {}", counted(u64::from(*documents), "document"), bytes(*size)))?;
            }
            Some(Finding::Problem { .. }) => row("index", "cannot be opened")?,
            None => {}
        }
        row("queries on", &self.queries)?;
        row("builds on", &self.builds)?;
        match self.advice[..] {
            [] => writeln!(out, "\nNothing is missing.")?,
            _ => writeln!(out, "\nMissing:")?,
        }
        self.advice.iter().try_for_each(|line| writeln!(out, "- {line}"))?;
        Ok(())
    }

    fn cpu_features(&self) -> String {
        let words = self.cpu.features.iter().map(|(name, has)| format!("{name} {}", if *has { "yes" } else { "no" }));
        let words: Vec<String> = words.collect();
        if words.is_empty() { "portable kernels".to_owned() } else { words.join(", ") }
    }
}

impl Limit {
    fn described(&self) -> String {
        match self.value {
            None => format!("{} unlimited", self.name),
            Some(value) if self.is_bytes => format!("{} {}", self.name, bytes(value)),
            Some(value) => format!("{} {}", self.name, count(value)),
        }
    }
}

/// Opens the GPU as a search would. A driver that is broken in ways nobody foresaw is no reason to fail.
fn open_gpu() -> Result<Gpu, String> {
    let opened = catch_unwind(|| Cuda::open(0).map(|gpu| gpu.properties().clone()).map_err(|error| error.to_string()));
    let opened = opened.unwrap_or_else(|_| Err("the GPU driver cannot be used; install it again".to_owned()));
    let Properties { name, memory, free, multiprocessors, .. } = opened?;
    Ok(Gpu { name, memory, free, multiprocessors })
}

/// Reads the configuration and checks all of it.
fn read(named: Option<&Path>) -> Result<Option<PathBuf>, String> {
    let checked = Configuration::read(named).and_then(|configuration| {
        configuration.check(&CommandLine::command())?;
        Ok(configuration.file)
    });
    checked.map_err(|failure| match failure {
        Failure::Message(message) => message,
        Failure::ClosedPipe => "the configuration cannot be read".to_owned(),
    })
}
