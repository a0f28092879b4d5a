//! Tables and figures of papers, with our measurements next to the paper's numbers. Each paper has a module.

mod cooperative;
mod gpu_ir;
mod griffin;
mod saat;
mod setup;

use crate::error::{BenchError, Result};
use crate::experiments::codecs::CodecLists;
use crate::experiments::gpu::DeviceName;
use crate::experiments::{Context, Findings, RunOptions, Say};
use crate::machine::cores;
use crate::result::{Measurement, SuiteResult};
use crate::run::{About, Origin};
use crate::suite::{Suite, Target};
use setup::Setup;
use std::cell::OnceCell;
use std::path::PathBuf;

/// A table or figure of a paper.
pub struct Entry {
    /// `paper/table`.
    pub name: &'static str,
    pub title: &'static str,
    run: Run,
    targets: Vec<Target>,
}

/// How the findings of an entry are made.
#[derive(Clone, Copy)]
enum Run {
    /// From the measurements of all codecs on the lists of suite `codecs`.
    Codecs(fn(Vec<Measurement>) -> Findings),
    /// From the queries of saat.
    Saat(fn(&saat::Workload, &Choice) -> Result<Findings>),
    /// On a GPU.
    Gpu(fn(&Setup) -> Result<Findings>),
    /// From the batches of cooperative, which are measured on a GPU.
    Batches(fn(&Setup, &[Measurement]) -> Findings),
}

impl Entry {
    fn new(name: &'static str, title: &'static str, run: Run) -> Entry {
        Entry { name, title, run, targets: Vec::new() }
    }

    /// Whether it runs on a GPU, compared with the CPU.
    fn needs_gpu(&self) -> bool {
        matches!(self.run, Run::Gpu(_) | Run::Batches(_))
    }

    /// Whether it runs JASSv2, which is built outside of the project.
    fn needs_jass(&self) -> bool {
        self.name == saat::JASS
    }

    /// What it runs on, by its name in `--only side=`.
    pub fn side(&self) -> &'static str {
        if self.needs_gpu() { "gpu" } else { "cpu" }
    }

    fn paper(&self) -> &str {
        self.name.split('/').next().unwrap_or_default()
    }

    /// Whether a name of the command line selects the entry.
    fn has_name(&self, name: &str) -> bool {
        self.name == name || self.paper() == name || (name == "gpu" && self.needs_gpu())
    }
}

/// Returns all tables and figures that can be reproduced.
pub fn entries() -> Vec<Entry> {
    let papers = [griffin::entries(), gpu_ir::entries(), cooperative::entries(), saat::entries()];
    papers.into_iter().flatten().collect()
}

/// Options of the measurements.
#[derive(Clone, Debug, clap::Args)]
pub struct Choice {
    /// Collection of saat [default: the Wikipedia passages in the data folder]
    #[arg(long)]
    pub input: Option<PathBuf>,
    /// Query log of saat [default: the Terabyte-2005 queries in the data folder]
    #[arg(long)]
    pub queries: Option<PathBuf>,
    /// Number of queries, from the half of the log that is kept for reporting; saat has 20,000, gpu-ir 1,000.
    #[arg(long, default_value_t = 1000)]
    pub count: usize,
    /// Maximal number of threads that answer queries.
    #[arg(long, default_value_t = cores())]
    pub threads: usize,
    /// Number of runs of saat.
    #[arg(long, default_value_t = 5)]
    pub runs: usize,
    /// Folder with the programs `ciff_to_JASS` and `JASS_anytime` of JASSv2, for saat/jass (docs/benchmarks.md).
    #[arg(long)]
    pub jass: Option<PathBuf>,
    /// Suffix for the names of the results, to keep them apart from those of another collection or machine.
    #[arg(long)]
    pub label: Option<String>,
    /// The suite with the collection and query log for entries that need a GPU.
    #[arg(long, default_value = "gpu")]
    pub suite: String,
    /// Scales the collection of that suite to this many documents instead.
    #[arg(long)]
    pub documents: Option<u64>,
}

impl Choice {
    /// Returns the options of an entry as they are written on the command line, with a space before each. Files are
    /// given by name only.
    fn to_arguments(&self, entry: &Entry, device: DeviceName) -> String {
        let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (count, threads) = (Some(self.count.to_string()), Some(self.threads.to_string()));
        let options = match entry.run {
            Run::Codecs(_) => Vec::new(),
            Run::Saat(_) => vec![
                ("input", self.input.as_ref().map(name)),
                ("queries", self.queries.as_ref().map(name)),
                ("count", count),
                ("threads", threads),
                ("runs", Some(self.runs.to_string())),
                ("jass", self.jass.as_ref().filter(|_| entry.needs_jass()).map(name)),
                ("label", self.label.clone()),
            ],
            Run::Gpu(_) | Run::Batches(_) => vec![
                ("suite", (self.suite != "gpu").then(|| self.suite.clone())),
                ("documents", self.documents.map(|documents| documents.to_string())),
                ("count", count),
                ("threads", threads),
                ("device", (device != DeviceName::Cuda).then(|| device.to_string())),
                ("label", self.label.clone()),
            ],
        };
        options.into_iter().filter_map(|(option, value)| Some(format!(" --{option} {}", value?))).collect()
    }

    /// Loads the suite for entries that need a GPU.
    fn gpu_suite(&self) -> Result<Suite> {
        let mut suite = Suite::load(&self.suite)?;
        if let (Some(documents), Some(scale)) = (self.documents, &mut suite.collection.scale) {
            scale.documents = documents;
        }
        Ok(suite)
    }
}

/// What entries share. Cells are filled when the first entry needs them.
pub struct Reproduction<'a> {
    options: &'a RunOptions,
    choice: &'a Choice,
    say: Say<'a>,
    codecs: OnceCell<Vec<Measurement>>,
    saat: OnceCell<saat::Workload>,
    setup: OnceCell<Setup>,
    batches: OnceCell<Vec<Measurement>>,
}

impl<'a> Reproduction<'a> {
    pub fn new(options: &'a RunOptions, choice: &'a Choice, say: Say<'a>) -> Result<Reproduction<'a>> {
        if choice.count == 0 || choice.threads == 0 || choice.runs == 0 {
            return Err(BenchError::Usage("--count, --threads and --runs must be at least 1".to_owned()));
        }
        let (codecs, saat, setup, batches) = (OnceCell::new(), OnceCell::new(), OnceCell::new(), OnceCell::new());
        Ok(Reproduction { options, choice, say, codecs, saat, setup, batches })
    }

    /// Measures the named entries, writes their results, and passes each to `show`. A paper's name stands for all of
    /// its entries, and `gpu` for all that need one. If one fails, the others still run; the first error is returned.
    pub fn run(&self, names: &[String], show: &mut dyn FnMut(&SuiteResult)) -> Result<()> {
        let mut outcome = Ok(());
        for entry in wanted(names, self.options)? {
            if entry.needs_jass() && self.choice.jass.is_none() && !names.iter().any(|name| name == entry.name) {
                (self.say)(&format!("{} is left out: it needs --jass", entry.name));
                continue;
            }
            match self.run_entry(&entry) {
                Ok(result) => show(&result),
                // Without a device or an index, the other entries that need a GPU would fail too.
                Err(error) if entry.needs_gpu() && self.setup.get().is_none() => return outcome.and(Err(error)),
                Err(error) => {
                    (self.say)(&format!("{} failed: {error}", entry.name));
                    outcome = outcome.and(Err(error));
                }
            }
        }
        outcome
    }

    fn run_entry(&self, entry: &Entry) -> Result<SuiteResult> {
        let (options, choice) = (self.options, self.choice);
        let arguments = choice.to_arguments(entry, options.device);
        let mut origin = Origin::start(format!("lanner-bench reproduce {}{arguments}", entry.name));
        (self.say)(entry.name);
        let findings = match entry.run {
            Run::Codecs(findings) => findings(self.codecs()?.clone()),
            Run::Saat(findings) => findings(self.saat()?, choice)?,
            Run::Gpu(findings) => findings(self.setup()?)?,
            Run::Batches(findings) => findings(self.setup()?, self.batches()?),
        };
        let (mut name, mut title) = (entry.name.replace('/', "-"), format!("{}: {}", entry.name, entry.title));
        if let Some(label) = &choice.label {
            (name, title) = (format!("{name}-{label}"), format!("{title} ({label})"));
        }
        let mut out = options.out.clone();
        if entry.needs_gpu() {
            origin.add_gpu(self.setup()?.gpu.properties());
            out.extend(choice.gpu_suite()?.results);
        }
        About { name, title, notes: Vec::new() }.write(origin, &entry.targets, findings, &out)
    }

    fn codecs(&self) -> Result<&Vec<Measurement>> {
        get_or_try_init(&self.codecs, || {
            let suite = Suite::load("codecs")?;
            let part = suite.codecs.as_ref().expect("the suite has a section [codecs]");
            let context = Context { suite: &suite, options: self.options, say: self.say };
            Ok(CodecLists { context, part }.run()?.measurements)
        })
    }

    fn saat(&self) -> Result<&saat::Workload> {
        get_or_try_init(&self.saat, || saat::prepare(self))
    }

    fn setup(&self) -> Result<&Setup> {
        get_or_try_init(&self.setup, || Setup::prepare(self))
    }

    fn batches(&self) -> Result<&Vec<Measurement>> {
        get_or_try_init(&self.batches, || cooperative::measure(self.setup()?, self.say))
    }
}

fn get_or_try_init<T>(cell: &OnceCell<T>, make: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(value) = cell.get() {
        return Ok(value);
    }
    let value = make()?;
    Ok(cell.get_or_init(|| value))
}

/// Returns the named entries that `--only` keeps.
fn wanted(names: &[String], options: &RunOptions) -> Result<Vec<Entry>> {
    let keeps = |key: &str, value: &str| options.only.keeps(key, value);
    let is_kept = |entry: &Entry| {
        let part = entry.name.split('/').nth(1).unwrap_or_default();
        let is_named = keeps("entry", part) || keeps("entry", entry.name);
        is_named && keeps("paper", entry.paper()) && keeps("side", entry.side())
    };
    let wanted: Vec<Entry> = named(names)?.into_iter().filter(is_kept).collect();
    if wanted.is_empty() {
        let known: Vec<&str> = named(names)?.iter().map(|entry| entry.name).collect();
        return Err(BenchError::Usage(format!("--only selects nothing of {}", known.join(", "))));
    }
    Ok(wanted)
}

fn named(names: &[String]) -> Result<Vec<Entry>> {
    if let Some(unknown) = names.iter().find(|name| !entries().iter().any(|entry| entry.has_name(name))) {
        let known: Vec<&str> = entries().iter().map(|entry| entry.name).collect();
        return Err(BenchError::Usage(format!("unknown entry {unknown}; there are {}", known.join(", "))));
    }
    Ok(entries().into_iter().filter(|entry| names.iter().any(|name| entry.has_name(name))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn entry_names_are_unique() {
        let names: BTreeSet<&str> = entries().iter().map(|entry| entry.name).collect();
        assert_eq!(names.len(), entries().len());
        assert!(names.iter().all(|name| name.split('/').count() == 2));
    }

    #[test]
    fn a_paper_stands_for_all_its_entries() {
        let names = |given: &[&str]| -> Vec<&str> {
            let given: Vec<String> = given.iter().map(|&name| name.to_owned()).collect();
            named(&given).unwrap().iter().map(|entry| entry.name).collect()
        };
        assert_eq!(
            names(&["saat", "saat/table2"]),
            ["saat/table1", "saat/table2", "saat/table3", "saat/figure2", "saat/jass"]
        );
        assert_eq!(names(&["gpu-ir/table1", "griffin/table1"]), ["griffin/table1", "gpu-ir/table1"]);
        assert!(named(&["nonsense".to_owned()]).is_err_and(|error| error.to_string().contains("saat/figure2")));
    }
}
