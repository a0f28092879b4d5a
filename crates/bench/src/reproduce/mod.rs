//! The papers' tables and figures, each beside ours: one module a paper.

mod cooperative;
mod gpu_ir;
mod griffin;
mod on_device;
mod saat;

use crate::cache::Cache;
use crate::error::BenchError;
use crate::experiments::Findings;
use crate::experiments::codecs::CodecLists;
use crate::experiments::gpu::DeviceName;
use crate::machine::Provenance;
use crate::result::{Measurement, Processor, SuiteResult};
use crate::run::{RunOptions, write_result};
use crate::suite::{Suite, Target};
use on_device::Ground;
use std::cell::OnceCell;
use std::path::PathBuf;

/// A table or figure of a paper.
pub struct Entry {
    /// `paper/table`.
    pub name: &'static str,
    /// What the paper shows there.
    pub title: &'static str,
    /// What it runs on.
    pub side: Side,
    /// What is claimed of ours.
    targets: Vec<Target>,
    run: fn(&Reproduction<'_>) -> Result<Findings, BenchError>,
}

/// What a table or figure is measured on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The processor alone.
    Cpu,
    /// A GPU, with the processor beside it.
    Gpu,
}

impl Side {
    /// Its name, which stands for all its entries.
    pub fn name(self) -> &'static str {
        match self {
            Side::Cpu => "cpu",
            Side::Gpu => "gpu",
        }
    }
}

/// What to measure on, where that can be chosen.
#[derive(Clone, Debug, clap::Args)]
pub struct Choice {
    /// The collection of saat; the Wikipedia passages of the data folder if absent.
    #[arg(long)]
    pub input: Option<PathBuf>,
    /// The query log of saat; the Terabyte-2005 queries of the data folder if absent.
    #[arg(long)]
    pub queries: Option<PathBuf>,
    /// How many queries of the log's half that is kept for reporting (every second one); saat has 20,000, gpu-ir 1,000.
    #[arg(long, default_value_t = 1000)]
    pub count: usize,
    /// The most threads; as many as there are processors if absent.
    #[arg(long, default_value_t = std::thread::available_parallelism().map_or(1, usize::from))]
    pub threads: usize,
    /// Runs of saat that count.
    #[arg(long, default_value_t = 5)]
    pub runs: usize,
    /// Ends the names of the results, so that those of another machine or collection stand beside the others.
    #[arg(long)]
    pub label: Option<String>,
    /// The suite whose collection and query log the figures about a GPU have.
    #[arg(long, default_value = "gpu")]
    pub suite: String,
    /// Scales that collection to so many documents instead of the suite's number.
    #[arg(long)]
    pub documents: Option<u64>,
}

/// Every table and figure that can be reproduced. A paper's module gives its own entries.
pub fn entries() -> Vec<Entry> {
    let papers = [griffin::entries(), gpu_ir::entries(), cooperative::entries(), saat::entries()];
    papers.into_iter().flatten().collect()
}

/// What reproductions work with, and what they share.
pub struct Reproduction<'a> {
    options: &'a RunOptions,
    choice: &'a Choice,
    /// Is told what happens.
    say: &'a dyn Fn(&str),
    codecs: OnceCell<Vec<Measurement>>,
    saat: OnceCell<saat::Workload>,
    ground: OnceCell<Ground>,
    batches: OnceCell<Vec<Measurement>>,
}

impl Reproduction<'_> {
    /// Every codec on the lists of the suite `codecs`.
    fn codecs(&self) -> Result<Vec<Measurement>, BenchError> {
        if let Some(rows) = self.codecs.get() {
            return Ok(rows.clone());
        }
        let suite = Suite::load("codecs")?;
        let part = suite.codecs.as_ref().expect("the suite is about codecs");
        let (cache, options) = (Cache::new(&self.options.cache), self.options);
        let (data, program, say) = (&options.data, &options.program, self.say);
        let rows = CodecLists { suite: &suite, part, data, cache: &cache, program, say }.run()?.measurements;
        Ok(self.codecs.get_or_init(|| rows).clone())
    }

    /// The device, with an index and its lists.
    fn ground(&self) -> Result<&Ground, BenchError> {
        if let Some(ground) = self.ground.get() {
            return Ok(ground);
        }
        let ground = Ground::prepare(self)?;
        Ok(self.ground.get_or_init(|| ground))
    }

    /// The batches of cooperative.
    fn batches(&self) -> Result<&[Measurement], BenchError> {
        if let Some(rows) = self.batches.get() {
            return Ok(rows);
        }
        let rows = cooperative::measure(self)?;
        Ok(self.batches.get_or_init(|| rows))
    }

    /// The queries of saat, planned and with checked answers.
    fn saat(&self) -> Result<&saat::Workload, BenchError> {
        if let Some(workload) = self.saat.get() {
            return Ok(workload);
        }
        let workload = saat::prepare(self)?;
        Ok(self.saat.get_or_init(|| workload))
    }
}

impl Choice {
    /// The options that say this on the command line, files by name alone, with a space before each.
    fn to_arguments(&self, entry: &Entry, device: DeviceName) -> String {
        let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let count = ("count", Some(self.count.to_string()));
        let threads = ("threads", Some(self.threads.to_string()));
        let (label, documents) = (("label", self.label.clone()), self.documents.map(|documents| documents.to_string()));
        let options = if entry.side == Side::Gpu {
            let device = (device != DeviceName::Cuda).then(|| device.to_string());
            let suite = (self.suite != "gpu").then(|| self.suite.clone());
            vec![("suite", suite), ("documents", documents), count, threads, ("device", device), label]
        } else if entry.name.starts_with("saat/") {
            let files = [("input", self.input.as_ref().map(name)), ("queries", self.queries.as_ref().map(name))];
            files.into_iter().chain([count, threads, ("runs", Some(self.runs.to_string())), label]).collect()
        } else {
            Vec::new()
        };
        options.into_iter().filter_map(|(option, value)| Some(format!(" --{option} {}", value?))).collect()
    }
}

/// Measures what each of some entries needs, writes the results beside those of the suites, and shows each as it comes.
/// A paper's name stands for all its entries, and `gpu` for all that need one. Where an entry fails, the others are
/// measured all the same, and the first failure is returned.
pub fn reproduce(
    names: &[String],
    options: &RunOptions,
    choice: &Choice,
    say: &dyn Fn(&str),
    show: &mut dyn FnMut(&SuiteResult),
) -> Result<(), BenchError> {
    if choice.count == 0 || choice.threads == 0 || choice.runs == 0 {
        return Err(BenchError::Usage("--count, --threads and --runs take at least 1".to_owned()));
    }
    let (codecs, saat, ground, batches) = (OnceCell::new(), OnceCell::new(), OnceCell::new(), OnceCell::new());
    let shared = Reproduction { options, choice, say, codecs, saat, ground, batches };
    let mut outcome = Ok(());
    for entry in wanted(names, options)? {
        match shared.run(&entry) {
            Ok(result) => show(&result),
            // Without a device or an index there is nothing to go on with.
            Err(error) if entry.side == Side::Gpu && shared.ground.get().is_none() => return outcome.and(Err(error)),
            Err(error) => {
                say(&format!("{} failed: {error}", entry.name));
                outcome = outcome.and(Err(error));
            }
        }
    }
    outcome
}

impl Reproduction<'_> {
    fn run(&self, entry: &Entry) -> Result<SuiteResult, BenchError> {
        let (options, choice) = (self.options, self.choice);
        let arguments = choice.to_arguments(entry, options.device);
        let mut provenance = Provenance::start(format!("lanner-bench reproduce {}{arguments}", entry.name));
        (self.say)(entry.name);
        let findings = (entry.run)(self)?;
        provenance.finish();
        let mut about = (entry.name.replace('/', "-"), format!("{}: {}", entry.name, entry.title));
        if let Some(label) = &choice.label {
            about = (format!("{}-{label}", about.0), format!("{} ({label})", about.1));
        }
        let (mut out, mut ran_on) = (options.out.clone(), Processor::Cpu);
        if entry.side == Side::Gpu {
            let limits = self.ground()?.gpu.limits();
            ran_on = if limits.is_simulated { Processor::Simulator } else { Processor::Gpu };
            provenance.device.add_gpu(&limits.name);
            out.extend(choice.gpu_suite()?.results);
        }
        write_result(about, &[], &entry.targets, (provenance, ran_on), findings, &out)
    }
}

/// What is named, without what `--only` leaves out.
fn wanted(names: &[String], options: &RunOptions) -> Result<Vec<Entry>, BenchError> {
    let keeps = |entry: &Entry| {
        let (paper, part) = entry.name.split_once('/').unwrap_or_default();
        let keeps = |key, value| options.only.keeps(key, value);
        let is_named = keeps("entry", part) || keeps("entry", entry.name);
        is_named && keeps("paper", paper) && keeps("side", entry.side.name())
    };
    let wanted: Vec<Entry> = named(names)?.into_iter().filter(keeps).collect();
    if wanted.is_empty() {
        let known: Vec<&str> = named(names)?.iter().map(|entry| entry.name).collect();
        return Err(BenchError::Usage(format!("--only leaves nothing of {}", known.join(", "))));
    }
    Ok(wanted)
}

fn named(names: &[String]) -> Result<Vec<Entry>, BenchError> {
    let is_meant = |name: &str, entry: &Entry| {
        entry.name == name || entry.name.split('/').next() == Some(name) || (name == "gpu" && entry.side == Side::Gpu)
    };
    if let Some(unknown) = names.iter().find(|name| !entries().iter().any(|entry| is_meant(name, entry))) {
        let known: Vec<&str> = entries().iter().map(|entry| entry.name).collect();
        let what = format!("nothing to reproduce is called {unknown}; there are {}", known.join(", "));
        return Err(BenchError::Usage(what));
    }
    Ok(entries().into_iter().filter(|entry| names.iter().any(|name| is_meant(name, entry))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_has_a_name_of_its_own() {
        let names: std::collections::BTreeSet<&str> = entries().iter().map(|entry| entry.name).collect();
        assert_eq!(names.len(), entries().len());
        assert!(names.iter().all(|name| name.split('/').count() == 2));
    }

    #[test]
    fn a_paper_stands_for_all_its_entries() {
        let names = |given: &[&str]| -> Vec<&str> {
            let given: Vec<String> = given.iter().map(|&name| name.to_owned()).collect();
            named(&given).unwrap().iter().map(|entry| entry.name).collect()
        };
        assert_eq!(names(&["saat", "saat/table2"]), ["saat/table1", "saat/table2", "saat/table3", "saat/figure2"]);
        assert_eq!(names(&["gpu-ir/table1", "griffin/table1"]), ["griffin/table1", "gpu-ir/table1"]);
        assert!(named(&["nonsense".to_owned()]).is_err_and(|error| error.to_string().contains("saat/figure2")));
    }
}
