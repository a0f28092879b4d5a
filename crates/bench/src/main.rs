//! The program `lanner-bench`: runs suites, scales collections, gathers results.

use clap::{Parser, Subcommand};
use lanner_bench::child::{self, ChildArguments};
use lanner_bench::error::BenchError;
use lanner_bench::experiments::gpu::DeviceName;
use lanner_bench::only::Only;
use lanner_bench::report;
use lanner_bench::reproduce::Choice;
use lanner_bench::result::SuiteResult;
use lanner_bench::run::{self, RunOptions};
use lanner_bench::scale::{self, Generator, Profile, Source};
use lanner_bench::suite::Suite;
use lanner_index::build::{BuildOptions, Quiet, Weights, build};
use lanner_index::corpus::{Corpus, CorpusOptions};
use lanner_index::open::Index;
use lanner_index::text::Analyzer;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

/// Measures Lanner beside its peers; every result says where it comes from.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs a suite: checks the answers, then measures, and writes JSON and plots.
    Run(RunArguments),
    /// Prints a paper's table or figure beside ours, and writes JSON and plots.
    Reproduce(ReproduceArguments),
    /// Makes a large collection of a real one.
    Scale(ScaleArguments),
    /// Gathers all results of a folder into report.md.
    Report {
        /// The folder of the results.
        #[arg(long, default_value = "docs/benchmarks")]
        out: PathBuf,
    },
    /// Builds one index and reports; suites start this as a process of its own.
    #[command(hide = true)]
    ChildBuild(ChildArguments),
}

#[derive(clap::Args)]
struct RunArguments {
    /// The suite: a name from --list, or a TOML file.
    #[arg(required_unless_present = "list")]
    suite: Option<String>,
    /// Where the files of suites are; $LANNER_DATA if absent.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Where results go [default: docs/benchmarks, or the suite's folder there]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Where indexes and installed peers are kept from run to run.
    #[arg(long, default_value = "target/peers")]
    cache: PathBuf,
    /// Runs a part of a race: collection=, engine=, log=, mode= or k= with values separated by commas; of the suite gpu:
    /// part= (throughput, latency, cpu, batches, small, sent, decode), score=, mode= or k=.
    #[arg(long, value_name = "KEY=VALUES")]
    only: Vec<String>,
    /// Takes at most so many queries of each log in a race or on a GPU.
    #[arg(long)]
    queries: Option<usize>,
    /// Scales the collection to so many documents instead of the suite's number.
    #[arg(long)]
    documents: Option<u64>,
    /// What a suite about a GPU runs on; the numbers of the simulator mean nothing, and the report refuses them.
    #[arg(long, value_enum, default_value_t = DeviceName::Cuda)]
    device: DeviceName,
    /// Ends the names of the results, so that they stand beside those of another collection or machine.
    #[arg(long)]
    label: Option<String>,
    /// Lists the suites.
    #[arg(long)]
    list: bool,
}

#[derive(clap::Args)]
struct ReproduceArguments {
    /// What to reproduce: names from --list, a paper for all of it, such as saat, or gpu for all that needs one.
    #[arg(required_unless_present = "list")]
    names: Vec<String>,
    #[command(flatten)]
    choice: Choice,
    /// Where the files of suites are; $LANNER_DATA if absent.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Where results go; those of a GPU into the folder of their suite there.
    #[arg(long, default_value = "docs/benchmarks")]
    out: PathBuf,
    /// Where indexes are kept from run to run.
    #[arg(long, default_value = "target/peers")]
    cache: PathBuf,
    /// Takes only some of what is named: paper=, entry= (such as figure7 or griffin/figure7) or side= (cpu, gpu) with values separated by
    /// commas.
    #[arg(long, value_name = "KEY=VALUES")]
    only: Vec<String>,
    /// What the figures about a GPU run on; the numbers of the simulator mean nothing, and the report refuses them.
    #[arg(long, value_enum, default_value_t = DeviceName::Cuda)]
    device: DeviceName,
    /// Lists what can be reproduced.
    #[arg(long)]
    list: bool,
}

#[derive(clap::Args)]
struct ScaleArguments {
    /// The real collection, in any format that 'lanner index' finds out by itself.
    #[arg(long)]
    input: PathBuf,
    /// How many documents to make.
    #[arg(long)]
    documents: u64,
    /// A file for them: JSON lines, compressed if its name ends in .zst.
    #[arg(long, required_unless_present = "index")]
    out: Option<PathBuf>,
    /// A folder for an index of them (analyzer simple, nothing stored), built without writing text.
    #[arg(long, conflicts_with = "out")]
    index: Option<PathBuf>,
    /// What the postings of the index carry: tf, impact or tf,impact.
    #[arg(long, value_name = "LIST", default_value = "tf", requires = "index")]
    weights: Weights,
    /// Another seed gives other documents.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads; as many as there are processors if absent.
    #[arg(long)]
    threads: Option<usize>,
    /// Skips the comparison with the source, which needs an index of each.
    #[arg(long)]
    no_compare: bool,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Run(arguments) => run_suite(&arguments),
        Command::Reproduce(arguments) => reproduce(&arguments),
        Command::Scale(arguments) => scale_collection(&arguments),
        Command::Report { out } => report::write(&out).map(|path| println!("{}", path.display())),
        Command::ChildBuild(arguments) => child::build_here(&arguments)
            .map(|report| println!("{}", serde_json::to_string(&report).expect("a report is plain data"))),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

impl RunArguments {
    /// What the command says besides parts of the suite, with a space before each option.
    fn further(&self) -> String {
        let documents = self.documents.map(|documents| format!(" --documents {documents}"));
        let device = (self.device != DeviceName::Cuda).then(|| format!(" --device {}", self.device));
        let label = self.label.as_ref().map(|label| format!(" --label {label}"));
        documents.into_iter().chain(device).chain(label).collect()
    }

    /// Makes the suite what the arguments say.
    fn adapt(&self, suite: &mut Suite) -> Result<(), BenchError> {
        if let Some(documents) = self.documents {
            let Some(scale) = &mut suite.collection.scale else {
                let what = format!("--documents scales a collection, and suite {} does not", suite.name);
                return Err(BenchError::Usage(what));
            };
            scale.documents = documents;
        }
        if let Some(label) = &self.label {
            suite.name = format!("{}-{label}", suite.name);
            suite.title = format!("{} ({label})", suite.title);
        }
        Ok(())
    }
}

fn run_suite(arguments: &RunArguments) -> Result<(), BenchError> {
    if arguments.list {
        for (name, title) in Suite::list() {
            println!("{name:12} {title}");
        }
    }
    let Some(name) = &arguments.suite else {
        return Ok(());
    };
    let mut suite = Suite::load(name)?;
    let program = std::env::current_exe().map_err(BenchError::io(Path::new("lanner-bench")))?;
    let only = Only::parse(&arguments.only, arguments.queries)?;
    let ending = if *name == suite.name { "" } else { ".toml" };
    let further = arguments.further();
    let command = format!("lanner-bench run {}{ending}{}{further}", suite.name, only.to_arguments());
    arguments.adapt(&mut suite)?;
    let usual = || Path::new("docs/benchmarks").join(suite.results.as_deref().unwrap_or_default());
    let data = arguments.data.clone().or_else(|| std::env::var_os("LANNER_DATA").map(PathBuf::from));
    let (data, cache, device) = (data.unwrap_or_default(), arguments.cache.clone(), arguments.device);
    let out = arguments.out.clone().unwrap_or_else(usual);
    let options = RunOptions { data, out, cache, only, device, program, command };
    let start = Instant::now();
    let say = |what: &str| eprintln!("[{:6.1} s] {what}", start.elapsed().as_secs_f64());
    let result = run::run(&suite, &options, &say)?;
    say("done");
    println!("{}\n{}", result.title, result.to_text());
    Ok(())
}

fn reproduce(arguments: &ReproduceArguments) -> Result<(), BenchError> {
    if arguments.list {
        for entry in lanner_bench::reproduce::entries() {
            println!("{:22} {:3}  {}", entry.name, entry.side.name(), entry.title);
        }
    }
    if arguments.names.is_empty() {
        return Ok(());
    }
    let program = std::env::current_exe().map_err(BenchError::io(Path::new("lanner-bench")))?;
    let data = arguments.data.clone().or_else(|| std::env::var_os("LANNER_DATA").map(PathBuf::from));
    let (data, out, cache) = (data.unwrap_or_default(), arguments.out.clone(), arguments.cache.clone());
    let command = "lanner-bench reproduce".to_owned();
    let (only, device) = (Only::parse(&arguments.only, None)?, arguments.device);
    let options = RunOptions { data, out, cache, only, device, program, command };
    let start = Instant::now();
    let say = |what: &str| eprintln!("[{:6.1} s] {what}", start.elapsed().as_secs_f64());
    let mut show = |result: &SuiteResult| println!("{}\n{}", result.title, result.to_text());
    lanner_bench::reproduce::reproduce(&arguments.names, &options, &arguments.choice, &say, &mut show)?;
    say("done");
    Ok(())
}

fn scale_collection(arguments: &ScaleArguments) -> Result<(), BenchError> {
    let threads = arguments.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let start = Instant::now();
    let say = |what: &str| eprintln!("[{:6.1} s] {what}", start.elapsed().as_secs_f64());
    let Weights { frequencies, impacts } = arguments.weights;
    let analyzer = Analyzer::parse("simple")?;
    let options = BuildOptions { analyzer, threads, frequencies, impacts, ..BuildOptions::default() };
    let corpus_options = || CorpusOptions { store: Vec::new(), ..CorpusOptions::default() };
    say("reading the source");
    let source = Source::read(Corpus::open(&arguments.input, corpus_options())?, &options.analyzer)?;
    let generator = Arc::new(Generator::new(source, arguments.documents, arguments.seed));

    let temporary = tempfile::tempdir().map_err(BenchError::io(&std::env::temp_dir()))?;
    let index = match (&arguments.out, &arguments.index) {
        (Some(out), _) => {
            say("writing documents");
            let written = scale::write_jsonl(&generator, out, threads)?;
            say(&format!("{} written", lanner_bench::table::bytes(written)));
            let folder = temporary.path().join("scaled");
            if !arguments.no_compare {
                say("indexing them for the comparison");
                build(&folder, Corpus::open(out, corpus_options())?, &options, &Quiet)?;
            }
            folder
        }
        (None, folder) => {
            let folder = folder.clone().unwrap_or_default();
            say("building the index");
            scale::build_index(&generator, &folder, &options)?;
            folder
        }
    };
    if !arguments.no_compare {
        say("indexing the source for the comparison");
        let source_index = temporary.path().join("source");
        build(&source_index, Corpus::open(&arguments.input, corpus_options())?, &options, &Quiet)?;
        let profiles = (Profile::of(&Index::open(&source_index)?)?, Profile::of(&Index::open(&index)?)?);
        for table in scale::compare(&profiles.0, &profiles.1, generator.heaps_exponent()) {
            print!("{}", table.to_text());
        }
    }
    say("done");
    Ok(())
}
