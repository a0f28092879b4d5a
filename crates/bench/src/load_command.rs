//! `lanner-bench load`: a load on an index, from the command line.

use crate::error::{BenchError, Result};
use crate::experiments::Say;
use crate::experiments::gpu::DeviceName;
use crate::load::{ClosedLoop, OpenLoop, Phase, QuerySet, Questions, RunLength, StreamLoad, Way, poisson, replay};
use crate::machine::cores;
use crate::query_log;
use crate::result::Measurement;
use crate::table::Table;
use lanner::internals::calibrate::Folder;
use lanner::{Engine, GpuOptions, Index, Mode, Policy, ScoreModel};
use std::path::PathBuf;
use std::sync::Arc;

/// Puts a load on an index: an open loop with --rate or --replay, a closed loop with --clients, else a stream.
#[derive(clap::Args)]
pub struct LoadArguments {
    /// The index folder.
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// The query log, asked over and over.
    #[arg(long, value_name = "FILE", required_unless_present = "replay")]
    queries: Option<PathBuf>,
    /// Open loop: queries arrive at random moments, at these rates per second one after the other.
    #[arg(long, value_name = "N,N", value_delimiter = ',', conflicts_with_all = ["clients", "replay"])]
    rate: Vec<f64>,
    /// Closed loop: this many threads, each of which asks again once it is answered.
    #[arg(long, value_name = "N", conflicts_with = "replay")]
    clients: Option<usize>,
    /// Open loop: queries and their times, in lines of seconds, a tab and the query.
    #[arg(long, value_name = "FILE", conflicts_with = "queries")]
    replay: Option<PathBuf>,
    /// Replays this many times as fast.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, requires = "replay")]
    speed: f64,
    /// How long queries arrive or are asked.
    #[arg(long, value_name = "N", default_value_t = 5.0)]
    seconds: f64,
    /// How terms combine: and, or, and-or.
    #[arg(long, default_value_t = Mode::Or)]
    mode: Mode,
    /// The number of hits.
    #[arg(short, default_value_t = 10)]
    k: usize,
    /// Who answers: cpu, gpu, best, auto. The policy cpu opens no device.
    #[arg(long, default_value_t = Policy::Auto)]
    policy: Policy,
    /// The device.
    #[arg(long, value_enum, default_value_t = DeviceName::Cuda)]
    device: DeviceName,
    /// Threads of the engine, with one that asks [default: one for each core that has no other sender]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Threads that send the queries of an open loop.
    #[arg(long, value_name = "N", default_value_t = 2)]
    senders: usize,
    /// The most queries that the engine accepts at a time [default: the engine's]
    #[arg(long, value_name = "N")]
    queue: Option<usize>,
    /// Draws other arrivals.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs the command, and prints a table.
pub fn run(arguments: &LoadArguments, say: Say<'_>) -> Result<()> {
    arguments.check()?;
    let index = Arc::new(Index::open(&arguments.index)?);
    let (arrivals, texts) = match (&arguments.replay, &arguments.queries) {
        (Some(path), _) => replay(path, arguments.speed).map(|(arrivals, texts)| (Some(arrivals), texts))?,
        (None, Some(path)) => (None, query_log::read(path)?),
        (None, None) => unreachable!("one of them is required"),
    };
    if texts.is_empty() {
        return Err(BenchError::Usage("the log has no queries".to_owned()));
    }
    say("answering the queries on the CPU");
    let score = if index.segment().header().has_frequencies { ScoreModel::Bm25 } else { ScoreModel::Impact };
    let questions = Questions { mode: arguments.mode, k: arguments.k, score };
    let set = QuerySet::new(&index, &texts, questions, cores())?;
    let engine = arguments.engine(index)?;
    say("measuring");
    let mut rows = Vec::new();
    if let Some(arrivals) = arrivals {
        rows.push(arguments.open(&engine, &set, &arrivals)?);
    } else if let Some(clients) = arguments.clients {
        let closed = ClosedLoop { engine: &engine, set: &set, length: arguments.length() };
        rows.push(closed.clients(clients)?.add_to(Measurement::default()));
    } else if arguments.rate.is_empty() {
        let answered = StreamLoad { engine: &engine, set: &set, length: arguments.length() }.texts_to_ids()?;
        let row = Measurement::default().with("queries", answered.queries as f64).with("seconds", answered.seconds);
        rows.push(row.with("answered_a_second", answered.rate()));
    }
    for &rate in &arguments.rate {
        let arrivals = poisson(&[Phase { rate, seconds: arguments.seconds }], 1, arguments.seed);
        rows.push(arguments.open(&engine, &set, &arrivals)?.with("offered_a_second", rate));
    }
    print!("{}", table(&rows).to_text());
    Ok(())
}

impl LoadArguments {
    fn check(&self) -> Result<()> {
        let is_positive = |number: f64| number.is_finite() && number > 0.0;
        let numbers = self.rate.iter().chain([&self.seconds, &self.speed]);
        let counts = [self.senders, self.clients.unwrap_or(1), self.threads.unwrap_or(1), self.k];
        if numbers.copied().all(is_positive) && !counts.contains(&0) {
            return Ok(());
        }
        Err(BenchError::Usage("rates, times and numbers of anything must be above 0".to_owned()))
    }

    fn engine(&self, index: Arc<Index>) -> Result<Engine> {
        let has_senders = !self.rate.is_empty() || self.replay.is_some();
        // A sender is the thread that asks, which counts among the engine's.
        let usual = (cores() + 1).saturating_sub(if has_senders { self.senders } else { 1 });
        let engine = |index| Engine::new(index).threads(self.threads.unwrap_or(usual)).policy(self.policy);
        let limited = |engine: Engine| match self.queue {
            Some(queue) => engine.queue(queue),
            None => engine,
        };
        if self.policy == Policy::Cpu {
            return Ok(limited(engine(index)));
        }
        let device = self.device.open()?;
        let costs = Folder::of_user()?.load(&index, &device.properties().name)?.unwrap_or_default();
        let options = GpuOptions::new(Box::new(move || Ok(Arc::clone(&device))));
        let options = options.report(Box::new(|line| eprintln!("{line}")));
        let engine = limited(engine(index).costs(costs)).gpu(options);
        engine.connect()?;
        Ok(engine)
    }

    fn length(&self) -> RunLength {
        RunLength { seconds: self.seconds, longest_s: self.seconds, queries: 0 }
    }

    fn open(&self, engine: &Engine, set: &QuerySet, arrivals: &[u64]) -> Result<Measurement> {
        let open = OpenLoop { engine, queries: &set.queries, senders: self.senders, way: Way::Submit };
        let load = open.run(arrivals)?;
        load.check(set)?;
        Ok(load.add_to(Measurement::default()))
    }
}

/// One row for each figure, one column for each run.
fn table(rows: &[Measurement]) -> Table {
    let counts = [
        ("queries", "queries"),
        ("answered", "answered"),
        ("refused", "refused"),
        ("too late", "too_late"),
        ("answered by the CPU", "by_cpu"),
        ("answered by the GPU", "by_gpu"),
    ];
    let figures = [
        ("queries per second", "offered_a_second"),
        ("answered per second", "answered_a_second"),
        ("mean, us", "mean_us"),
        ("p50", "p50_us"),
        ("p95", "p95_us"),
        ("p99", "p99_us"),
        ("p99.9", "p999_us"),
        ("longest", "longest_us"),
        ("sent late, p99, us", "late_p99_us"),
        ("busy cores", "busy_cores"),
    ];
    let columns: Vec<String> =
        ["what".to_owned()].into_iter().chain((1..=rows.len()).map(|run| format!("run {run}"))).collect();
    let mut table = Table::new("Load", 1, &columns);
    let is_known = |name: &str| rows.iter().any(|row| row.values.contains_key(name));
    for (what, name) in counts.into_iter().filter(|(_, name)| is_known(name)) {
        table.row([what.to_owned()].into_iter().chain(rows.iter().map(|row| row.count(name))));
    }
    for (what, name) in figures.into_iter().filter(|(_, name)| is_known(name)) {
        table.numbers(what, rows.iter().map(|row| row.value(name)));
    }
    table
}
