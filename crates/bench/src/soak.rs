//! `lanner-bench soak`: the engine for a long time under mixed random load, on a simulated GPU whose calls fail at
//! random. No answer may be wrong, no query lost, and memory must not grow.
//!
//! A round makes an engine with random options and a device that fails at a random call, and asks it for a few seconds
//! from several threads: searches, submitted queries, some of which are cancelled, streams, deadlines. Every answer is
//! compared with the CPU's.

use crate::error::{BenchError, Result};
use crate::experiments::Say;
use crate::scale::random::Random;
use lanner::eval::Topics;
use lanner::{Answer, Engine, GpuOptions, Hit, Index, Mode, Policy, Query, ScoreModel, SearchError};
use lanner_gpu::device::Device;
use lanner_gpu::faulty::{Fault, Faulty};
use lanner_gpu::simulator::Simulator;
use lanner_index::build::{BuildOptions, Quiet, build};
use lanner_index::corpus::{Corpus, CorpusOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a round lasts.
const ROUND: Duration = Duration::from_secs(3);
/// Threads that ask.
const ASKING: u64 = 3;
/// A device fails at a call below this, if it fails at all.
const LATEST_FAULT: u32 = 3000;
/// Memory may grow by this much between the first quarter of the rounds and the last.
const GROWTH: u64 = 32 << 20;

/// Options of the command.
#[derive(clap::Args)]
pub struct SoakArguments {
    /// How long, in minutes.
    #[arg(long, default_value_t = 30.0)]
    minutes: f64,
    /// Random seed; another seed gives other load.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder with the collections [default: $LANNER_DATA]
    #[arg(long)]
    data: Option<PathBuf>,
}

/// An index with queries and the CPU's answers to them.
struct Questions {
    index: Arc<Index>,
    queries: Vec<Query>,
    expected: Vec<Vec<Hit>>,
}

/// What was asked and what came of it.
#[derive(Default)]
struct Counts {
    answered: AtomicU64,
    partial: AtomicU64,
    late: AtomicU64,
    refused: AtomicU64,
    cancelled: AtomicU64,
}

/// Runs the command.
pub fn run(arguments: &SoakArguments, say: Say<'_>) -> Result<()> {
    let data = arguments.data.clone().or_else(|| std::env::var_os("LANNER_DATA").map(PathBuf::from));
    let folder = tempfile::tempdir().map_err(BenchError::io(&std::env::temp_dir()))?;
    let questions = Questions::new(&data.unwrap_or_default().join("judged/cranfield"), folder.path())?;
    let (start, counts, mut memory) = (Instant::now(), Counts::default(), Vec::new());
    let mut by_gpu = 0;
    while start.elapsed().as_secs_f64() < 60.0 * arguments.minutes {
        let round = memory.len() as u64;
        by_gpu += questions.round(&mut Random::new(arguments.seed, round), &counts)?;
        memory.push(resident_bytes());
        if round.is_multiple_of(20) {
            say(&format!("round {round}: {} queries answered, {by_gpu} by the device", load(&counts.answered)));
        }
    }
    let quarter = (memory.len() / 4).max(1);
    let median = |values: &[u64]| {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        sorted[sorted.len() / 2]
    };
    let (first, last) = (median(&memory[..quarter]), median(&memory[memory.len() - quarter..]));
    println!(
        "{} rounds in {:.1} min: {} queries answered ({by_gpu} by the device), {} of them partly, {} late, {} refused, \
         {} cancelled; no answer was wrong and none lost; memory {:.1} MB in the first quarter, {:.1} MB in the last",
        memory.len(),
        start.elapsed().as_secs_f64() / 60.0,
        load(&counts.answered),
        load(&counts.partial),
        load(&counts.late),
        load(&counts.refused),
        load(&counts.cancelled),
        first as f64 / 1e6,
        last as f64 / 1e6,
    );
    match last > first + GROWTH {
        true => Err(BenchError::Usage(format!("memory grew from {first} to {last} bytes"))),
        false => Ok(()),
    }
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// The resident memory of this process.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) * 1024
}

impl Questions {
    fn new(collection: &Path, folder: &Path) -> Result<Questions> {
        let corpus = Corpus::open(&collection.join("corpus.jsonl"), CorpusOptions::default())?;
        build(folder, corpus, &BuildOptions { impacts: true, ..BuildOptions::default() }, &Quiet)?;
        let index = Arc::new(Index::open(folder)?);
        let topics = Topics::open(&collection.join("queries.tsv"), None)?.topics;
        let mut queries = Vec::new();
        for (number, topic) in topics.iter().enumerate() {
            // Long queries take the simulator long: three words of each.
            let words: Vec<&str> = topic.text.split_whitespace().skip(number % 5).take(3).collect();
            for mode in [Mode::And, Mode::Or, Mode::AndOr] {
                let score = [ScoreModel::Bm25, ScoreModel::Impact][number % 2];
                queries.push(Query::new(words.join(" ")).mode(mode).score(score).k([1, 10, 100][number / 2 % 3]));
            }
        }
        let cpu = Engine::new(Arc::clone(&index));
        let answers = queries.iter().map(|query| Ok(cpu.search(query)?.hits)).collect::<Result<Vec<_>>>();
        Ok(Questions { index, queries, expected: answers? })
    }

    /// Asks an engine with random options for some seconds; returns how many queries its device answered.
    fn round(&self, random: &mut Random, counts: &Counts) -> Result<u64> {
        let policy = Policy::ALL[random.below(4) as usize];
        let fault = [Fault::Once, Fault::Lost, Fault::Late][random.below(3) as usize];
        let at = if random.below(4) == 0 { u64::MAX } else { u64::from(random.below(LATEST_FAULT)) };
        let device: Arc<dyn Device> = Arc::new(Faulty::new(Arc::new(Simulator::new(random.next())), fault, at));
        let gpu = GpuOptions::new(Box::new(move || Ok(Arc::clone(&device)))).pause(Duration::from_millis(100));
        let engine = Engine::new(Arc::clone(&self.index)).threads(1 + random.below(4) as usize);
        let engine = engine.policy(policy).queue(1 + random.below(300) as usize);
        let engine = if random.below(2) == 0 { engine.cache(1 << 20) } else { engine };
        let engine = engine.gpu(if random.below(3) == 0 { gpu.upload_lists() } else { gpu });
        let until = Instant::now() + ROUND;
        let seeds: Vec<u64> = (0..ASKING).map(|_| random.next()).collect();
        std::thread::scope(|scope| {
            let ask = |seed: u64| self.ask(&engine, Random::new(seed, 0), until, counts);
            let threads: Vec<_> = seeds.into_iter().map(|seed| scope.spawn(move || ask(seed))).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("a thread that asks does not panic"))
        })?;
        Ok(engine.counters().map_or(0, |counters| load(&counters.answered)))
    }

    fn ask(&self, engine: &Engine, mut random: Random, until: Instant, counts: &Counts) -> Result<()> {
        while Instant::now() < until {
            let number = random.below(self.queries.len() as u32) as usize;
            let query = self.queries[number].clone();
            match random.below(10) {
                0..4 => self.check(number, engine.search(&query), counts)?,
                4 => {
                    let query = query.deadline(Duration::from_micros(u64::from(random.below(300))));
                    let query = if random.below(2) == 0 { query.allow_partial() } else { query };
                    self.check(number, engine.search(&query), counts)?;
                }
                5 => {
                    let numbers: Vec<usize> = (0..40).map(|step| (number + step) % self.queries.len()).collect();
                    let queries: Vec<Query> = numbers.iter().map(|&number| self.queries[number].clone()).collect();
                    // Some streams are not read to their end.
                    let read = if random.below(4) == 0 { 5 } else { numbers.len() };
                    let answers: Vec<_> = engine.stream(queries).take(read).collect();
                    if answers.len() != read {
                        return Err(BenchError::Usage(format!("{} of {read} answers", answers.len())));
                    }
                    numbers
                        .into_iter()
                        .zip(answers)
                        .try_for_each(|(number, answer)| self.check(number, answer, counts))?;
                }
                6 => {
                    let cancelled: Vec<_> = (0..5).map(|_| engine.submit(query.clone())).collect();
                    cancelled.iter().filter(|pending| pending.is_ok()).for_each(|_| count(&counts.cancelled));
                }
                _ => {
                    let submitted: Vec<_> = (0..20).map(|_| engine.submit(query.clone())).collect();
                    for pending in submitted {
                        self.check(number, pending.and_then(|pending| pending.wait()), counts)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn check(&self, number: usize, answer: std::result::Result<Answer, SearchError>, counts: &Counts) -> Result<()> {
        match answer {
            Err(SearchError::Busy { .. }) => count(&counts.refused),
            Err(SearchError::Deadline { .. }) => count(&counts.late),
            Err(error) => return Err(error.into()),
            Ok(answer) if answer.coverage < 1.0 => count(&counts.partial),
            Ok(answer) => {
                count(&counts.answered);
                if answer.hits != self.expected[number] || !answer.exact {
                    return Err(BenchError::Usage(format!("a wrong answer to {:?}", self.queries[number])));
                }
            }
        }
        Ok(())
    }
}
