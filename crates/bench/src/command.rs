//! The command line: runs suites, puts loads on an engine, reproduces figures of papers, scales collections, asks an
//! engine for a long time, and writes the report.

use crate::child;
use crate::collection;
use crate::error::{BenchError, Result};
use crate::experiments::gpu::DeviceName;
use crate::experiments::lists::opening;
use crate::experiments::load::cold;
use crate::experiments::{RunOptions, Say};
use crate::load_command::{self, LoadArguments};
use crate::machine::cores;
use crate::only::Only;
use crate::report;
use crate::reproduce::{self, Choice, Reproduction};
use crate::result::SuiteResult;
use crate::run;
use crate::scale::{self, Generator, Profile, Source};
use crate::soak::{self, SoakArguments};
use crate::suite::Suite;
use crate::table::bytes;
use clap::{Parser, Subcommand};
use lanner_index::build::{BuildOptions, Quiet, Weights, build};
use lanner_index::open::Index;
use lanner_index::text::Analyzer;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

/// Benchmarks Lanner against other engines; every result records where it comes from.
#[derive(Parser)]
#[command(name = "lanner-bench", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs a suite: checks the answers, then measures, and writes JSON and plots.
    Run(RunArguments),
    /// Puts a load on an index, and prints delays, failures and which queries the CPU and the GPU answered.
    Load(LoadArguments),
    /// Prints tables and figures of papers next to our measurements, and writes JSON and plots.
    Reproduce(ReproduceArguments),
    /// Generates a large collection from a real one.
    Scale(ScaleArguments),
    /// Asks the engine for a long time, on a simulated GPU that fails at random; checks answers and memory.
    Soak(SoakArguments),
    /// Writes report.md from all results in a folder.
    Report {
        /// The folder with the results.
        #[arg(long, default_value = "docs/benchmarks")]
        out: PathBuf,
    },
    /// Builds one index and prints its cost; suites run this in a separate process.
    #[command(hide = true)]
    ChildBuild {
        /// What to build, as JSON.
        task: String,
    },
    /// Answers queries in a new process; the suite `load` runs this for cold starts.
    #[command(hide = true)]
    ChildCold {
        /// What to do, as JSON.
        task: String,
    },
    /// Opens an index in a new process; the suite `lists` runs this.
    #[command(hide = true)]
    ChildOpening {
        /// What to do, as JSON.
        task: String,
    },
}

/// Options of the commands that measure.
#[derive(clap::Args)]
struct SharedOptions {
    /// Folder with the files that suites need [default: $LANNER_DATA]
    #[arg(long)]
    data: Option<PathBuf>,
    /// Folder with the large collections of [peers]; those that are not there are left out [default: $LANNER_LARGE]
    #[arg(long)]
    large: Option<PathBuf>,
    /// Folder in which indexes and installed packages are kept between runs.
    #[arg(long, default_value = "target/peers")]
    cache: PathBuf,
    /// Device for GPU measurements. Times of the simulator are meaningless, and the report refuses them.
    #[arg(long, value_enum, default_value_t = DeviceName::Cuda)]
    device: DeviceName,
}

#[derive(clap::Args)]
struct RunArguments {
    /// A name from --list, or a TOML file.
    #[arg(required_unless_present = "list")]
    suite: Option<String>,
    #[command(flatten)]
    shared: SharedOptions,
    /// Folder for the results [default: docs/benchmarks, or the suite's folder in it]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Runs only a part of the suite. With [peers]: collection=, engine=, log=, answer= (documents, ids), mode= or k=,
    /// with values separated by commas. With [gpu]: part= (throughput, latency, cpu, batches, small, uploaded, decode),
    /// score=, mode= or k=. With [load]: part= (stream, together, open, policies, cold, step, overhead, costs), log=,
    /// mode=, policy= or lists= (resident, uploaded, or a percentage such as 40%). With [lists]: part= (memory, drift,
    /// opening, beyond, replay), mode= or lists= (also host, directories).
    #[arg(long, value_name = "KEY=VALUES")]
    only: Vec<String>,
    /// Takes at most this many queries from each log ([peers], [gpu], [load] and [lists]).
    #[arg(long)]
    queries: Option<usize>,
    /// Scales the collection to this many documents instead of the suite's number.
    #[arg(long)]
    documents: Option<u64>,
    /// Sends queries from this many threads instead of the suite's number ([load]).
    #[arg(long, value_name = "N")]
    senders: Option<NonZeroUsize>,
    /// Suffix for the names of the results, to keep them apart from those of another collection or machine.
    #[arg(long)]
    label: Option<String>,
    /// Lists the suites.
    #[arg(long)]
    list: bool,
}

#[derive(clap::Args)]
struct ReproduceArguments {
    /// Names from --list, a paper (such as saat) for all of its entries, or gpu for all entries that need a GPU.
    #[arg(required_unless_present = "list")]
    names: Vec<String>,
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    shared: SharedOptions,
    /// Folder for the results; those of a GPU go into the folder of their suite in it.
    #[arg(long, default_value = "docs/benchmarks")]
    out: PathBuf,
    /// Runs only some of the named entries: paper=, entry= (such as figure7 or griffin/figure7) or side= (cpu, gpu),
    /// with values separated by commas.
    #[arg(long, value_name = "KEY=VALUES")]
    only: Vec<String>,
    /// Lists what can be reproduced.
    #[arg(long)]
    list: bool,
}

#[derive(clap::Args)]
struct ScaleArguments {
    /// The real collection, in any format that 'lanner index' detects.
    #[arg(long)]
    input: PathBuf,
    /// Number of documents to generate.
    #[arg(long)]
    documents: u64,
    /// Output file: JSON lines, compressed if the name ends in .zst.
    #[arg(long, required_unless_present = "index")]
    out: Option<PathBuf>,
    /// Output folder for an index of the documents (analyzer simple, nothing stored), built without writing text.
    #[arg(long, conflicts_with = "out")]
    index: Option<PathBuf>,
    /// What the postings of the index carry: tf, impact or tf,impact.
    #[arg(long, value_name = "LIST", default_value = "tf", requires = "index")]
    weights: Weights,
    /// Random seed; another seed gives other documents.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of threads.
    #[arg(long, default_value_t = cores())]
    threads: usize,
    /// Skips the comparison with the source, which needs an index of each collection.
    #[arg(long)]
    no_compare: bool,
}

/// Parses the command line and runs the command.
pub fn main() -> ExitCode {
    let start = Instant::now();
    let say = |what: &str| eprintln!("[{:6.1} s] {what}", start.elapsed().as_secs_f64());
    let result = match Arguments::parse().command {
        Command::Run(arguments) => run_suite(&arguments, &say),
        Command::Load(arguments) => load_command::run(&arguments, &say),
        Command::Reproduce(arguments) => reproduce(&arguments, &say),
        Command::Scale(arguments) => scale_collection(&arguments, &say),
        Command::Soak(arguments) => soak::run(&arguments, &say),
        Command::Report { out } => report::write(&out).map(|path| println!("{}", path.display())),
        Command::ChildBuild { task } => child::build_here(&task).map(|report| print_json(&report)),
        Command::ChildCold { task } => cold::run_here(&task).map(|row| print_json(&row)),
        Command::ChildOpening { task } => opening::run_here(&task).map(|row| print_json(&row)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print_json(data: &impl serde::Serialize) {
    println!("{}", serde_json::to_string(data).expect("it is plain data"));
}

fn show(result: &SuiteResult) {
    println!("{}\n{}", result.title, result.to_text());
}

impl SharedOptions {
    fn options(&self, out: PathBuf, only: Only, command: String) -> Result<RunOptions> {
        let folder = |given: &Option<PathBuf>, variable: &str| {
            given.clone().or_else(|| std::env::var_os(variable).map(PathBuf::from)).unwrap_or_default()
        };
        let (data, large) = (folder(&self.data, "LANNER_DATA"), folder(&self.large, "LANNER_LARGE"));
        let program = std::env::current_exe().map_err(BenchError::io(Path::new("lanner-bench")))?;
        Ok(RunOptions { data, large, out, cache: self.cache.clone(), only, device: self.device, program, command })
    }
}

impl RunArguments {
    /// The options that change the suite, as they are written on the command line, with a space before each.
    fn changes(&self) -> String {
        let documents = self.documents.map(|documents| format!(" --documents {documents}"));
        let device = (self.shared.device != DeviceName::Cuda).then(|| format!(" --device {}", self.shared.device));
        let senders = self.senders.map(|senders| format!(" --senders {senders}"));
        let label = self.label.as_ref().map(|label| format!(" --label {label}"));
        documents.into_iter().chain(device).chain(senders).chain(label).collect()
    }

    /// Applies `--documents`, `--senders` and `--label` to the suite.
    fn adapt(&self, suite: &mut Suite) -> Result<()> {
        if let Some(documents) = self.documents {
            let Some(scale) = &mut suite.collection.scale else {
                let what = format!("--documents needs a suite that scales its collection; {} does not", suite.name);
                return Err(BenchError::Usage(what));
            };
            scale.documents = documents;
        }
        if let Some(senders) = self.senders {
            let Some(load) = &mut suite.load else {
                let what = format!("--senders needs a suite with [load]; {} has none", suite.name);
                return Err(BenchError::Usage(what));
            };
            load.senders = senders.get();
        }
        if let Some(label) = &self.label {
            suite.name = format!("{}-{label}", suite.name);
            suite.title = format!("{} ({label})", suite.title);
        }
        Ok(())
    }
}

fn run_suite(arguments: &RunArguments, say: Say<'_>) -> Result<()> {
    if arguments.list {
        for (name, title) in Suite::list() {
            println!("{name:12} {title}");
        }
    }
    let Some(name) = &arguments.suite else {
        return Ok(());
    };
    let mut suite = Suite::load(name)?;
    let only = Only::parse(&arguments.only, arguments.queries)?;
    let ending = if *name == suite.name { "" } else { ".toml" };
    let command = format!("lanner-bench run {}{ending}{}{}", suite.name, only.to_arguments(), arguments.changes());
    arguments.adapt(&mut suite)?;
    let usual = || Path::new("docs/benchmarks").join(suite.results.as_deref().unwrap_or_default());
    let options = arguments.shared.options(arguments.out.clone().unwrap_or_else(usual), only, command)?;
    let result = run::run(&suite, &options, say)?;
    say("done");
    show(&result);
    Ok(())
}

fn reproduce(arguments: &ReproduceArguments, say: Say<'_>) -> Result<()> {
    if arguments.list {
        for entry in reproduce::entries() {
            println!("{:22} {:3}  {}", entry.name, entry.side(), entry.title);
        }
    }
    if arguments.names.is_empty() {
        return Ok(());
    }
    let (out, only) = (arguments.out.clone(), Only::parse(&arguments.only, None)?);
    let options = arguments.shared.options(out, only, String::new())?;
    Reproduction::new(&options, &arguments.choice, say)?.run(&arguments.names, &mut show)?;
    say("done");
    Ok(())
}

fn scale_collection(arguments: &ScaleArguments, say: Say<'_>) -> Result<()> {
    let Weights { frequencies, impacts } = arguments.weights;
    let (analyzer, threads) = (Analyzer::parse("simple")?, arguments.threads);
    let options = BuildOptions { analyzer, threads, frequencies, impacts, ..BuildOptions::default() };
    say("reading the source");
    let source = Source::read(collection::open(&arguments.input)?, &options.analyzer)?;
    let generator = Arc::new(Generator::new(source, arguments.documents, arguments.seed));

    let temporary = tempfile::tempdir().map_err(BenchError::io(&std::env::temp_dir()))?;
    let folder = arguments.index.clone().unwrap_or_else(|| temporary.path().join("scaled"));
    if let Some(out) = &arguments.out {
        say("writing documents");
        let written = scale::write_jsonl(&generator, out, threads)?;
        say(&format!("{} written", bytes(written)));
        if !arguments.no_compare {
            say("indexing them for the comparison");
            build(&folder, collection::open(out)?, &options, &Quiet)?;
        }
    } else {
        say("building the index");
        scale::build_index(&generator, &folder, &options)?;
    }
    if !arguments.no_compare {
        say("indexing the source for the comparison");
        let source_index = temporary.path().join("source");
        build(&source_index, collection::open(&arguments.input)?, &options, &Quiet)?;
        let profile = |folder: &Path| Profile::of(&Index::open(folder)?);
        for table in scale::compare(&profile(&source_index)?, &profile(&folder)?, generator.heaps_exponent()) {
            print!("{}", table.to_text());
        }
    }
    say("done");
    Ok(())
}
