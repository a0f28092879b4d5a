//! The engine over a simulated GPU: nobody waits for a batch that is not theirs, and everything accepted is answered.

use lanner::answer::Place;
use lanner::internals::executors::{Cpu, Executor};
use lanner::internals::query::answer::Scored;
use lanner::internals::query::planner::Planner;
use lanner::{Answer, Engine, GpuOptions, Index, Mode, Plan, Policy, Query, ScoreModel, Searcher};
use lanner_gpu::device::{Address, Allocation, Command, Device, Properties, Side, Stream};
use lanner_gpu::error::GpuError;
use lanner_gpu::simulator::Simulator;
use lanner_index::build::{BuildOptions, Quiet, build};
use lanner_index::corpus::{Corpus, CorpusOptions};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Duration;
use tempfile::TempDir;

const WORDS: [&str; 4] = ["falcon", "heron", "water", "dawn"];

/// A simulator whose first stream is busy for as long as it is held.
#[derive(Debug)]
struct Held {
    device: Simulator,
    is_held: AtomicBool,
    /// Commands that the first stream was given while it was held.
    held_commands: AtomicU64,
    /// The threads that submitted commands.
    submitters: Mutex<Vec<ThreadId>>,
}

impl Held {
    fn new() -> Arc<Held> {
        let (is_held, held_commands) = (AtomicBool::new(false), AtomicU64::new(0));
        Arc::new(Held { device: Simulator::new(3), is_held, held_commands, submitters: Mutex::default() })
    }

    fn is_held(&self, stream: Stream) -> bool {
        stream == Stream(0) && self.is_held.load(Ordering::Acquire)
    }

    fn hold(&self, is_held: bool) {
        self.is_held.store(is_held, Ordering::Release);
    }
}

struct Release<'a>(&'a Held);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.0.hold(false);
    }
}

impl Device for Held {
    fn properties(&self) -> &Properties {
        self.device.properties()
    }

    fn allocate(&self, side: Side, bytes: usize) -> Result<Allocation, GpuError> {
        self.device.allocate(side, bytes)
    }

    fn free(&self, allocation: Allocation) {
        self.device.free(allocation);
    }

    fn register(&self, host: NonNull<u8>, bytes: usize) -> Result<Address, GpuError> {
        self.device.register(host, bytes)
    }

    fn unregister(&self, host: NonNull<u8>) {
        self.device.unregister(host);
    }

    fn submit(&self, stream: Stream, commands: &[Command<'_>]) -> Result<(), GpuError> {
        self.submitters.lock().unwrap().push(std::thread::current().id());
        if self.is_held(stream) {
            self.held_commands.fetch_add(commands.len() as u64, Ordering::Release);
        }
        self.device.submit(stream, commands)
    }

    fn wait(&self, stream: Stream) -> Result<Vec<Duration>, GpuError> {
        while self.is_held(stream) {
            std::thread::yield_now();
        }
        self.device.wait(stream)
    }

    fn is_idle(&self, stream: Stream) -> Result<bool, GpuError> {
        if self.is_held(stream) { Ok(false) } else { self.device.is_idle(stream) }
    }
}

/// An engine on a device.
fn engine_on(device: &Arc<Held>, index: Arc<Index>) -> Engine {
    let opened = Arc::clone(device);
    let options = GpuOptions::new(Box::new(move || Ok(Arc::clone(&opened) as Arc<dyn Device>)));
    let engine = Engine::new(index).gpu(options);
    engine.connect().unwrap();
    engine
}

fn index() -> (TempDir, Arc<Index>) {
    let folder = tempfile::tempdir().unwrap();
    let text = |document: usize| {
        let words = WORDS.iter().zip([2, 3, 5, 7]).filter(|(_, step)| document.is_multiple_of(*step));
        words.map(|(word, _)| *word).collect::<Vec<_>>().join(" ")
    };
    let documents: Vec<_> = (0..500).map(|document| (document.to_string(), String::new(), text(document))).collect();
    let corpus = Corpus::from_documents(documents, CorpusOptions::default()).unwrap();
    build(folder.path(), corpus, &BuildOptions { impacts: true, ..BuildOptions::default() }, &Quiet).unwrap();
    let index = Arc::new(Index::open(folder.path()).unwrap());
    (folder, index)
}

/// Plans of all modes and both columns.
fn plans(index: &Index, count: usize) -> Vec<Plan> {
    let plan = |number: usize| {
        let text = format!("{} {}", WORDS[number % 4], WORDS[number / 4 % 4]);
        let score = [ScoreModel::Bm25, ScoreModel::Impact][number % 2];
        let mode = [Mode::Or, Mode::And, Mode::AndOr][number % 3];
        Planner::new(index).plan(&Query::new(text).mode(mode).score(score).k(1 + number % 20)).unwrap()
    };
    (0..count).map(plan).collect()
}

fn hits(answers: Vec<Answer<Scored>>) -> Vec<Vec<Scored>> {
    answers.into_iter().map(|answer| answer.hits).collect()
}

fn is_by_device(answer: &Answer<Scored>) -> bool {
    answer.trace.steps.iter().all(|step| step.place == Place::Simulator)
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn a_query_does_not_wait_for_the_batch_before_it() {
    let (_folder, index) = index();
    let all: Vec<Plan> = plans(&index, 400).into_iter().filter(|plan| plan.score == ScoreModel::Bm25).collect();
    let expected = hits(Cpu::new(Arc::clone(&index), 1).run(&all).unwrap());
    let device = Held::new();
    let engine = engine_on(&device, index);
    device.hold(true);
    std::thread::scope(|scope| {
        // Also if an assertion fails, so that the other thread ends.
        let _release = Release(&device);
        let batch = scope.spawn(|| engine.run(&all).unwrap());
        while device.held_commands.load(Ordering::Acquire) == 0 {
            std::thread::yield_now();
        }
        // The batch is on the first stream, and stays there.
        for number in 0..3 {
            let answers = engine.run(&all[number..=number]).unwrap();
            assert!(is_by_device(&answers[0]));
            assert_eq!(answers[0].hits, expected[number]);
        }
        assert!(!batch.is_finished());
        device.hold(false);
        let answers = batch.join().unwrap();
        assert!(answers.iter().all(is_by_device));
        assert_eq!(hits(answers), expected);
    });
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn a_caller_drives_an_idle_device_itself() {
    let (_folder, index) = index();
    let (device, all) = (Held::new(), plans(&index, 600));
    let engine = engine_on(&device, index);
    let is_mine = |count: usize| {
        device.submitters.lock().unwrap().clear();
        assert!(engine.run(&all[..count]).unwrap().iter().all(is_by_device));
        device.submitters.lock().unwrap().iter().all(|thread| *thread == std::thread::current().id())
    };
    // Its thread has nothing to load then.
    engine.connect().unwrap();
    for count in [1, 100, 600] {
        // The thread may still be about to sleep, for which it needs a core.
        let is_mine_after_a_while = |_| {
            std::thread::sleep(Duration::from_millis(1));
            is_mine(count)
        };
        assert!((0..1000).any(is_mine_after_a_while), "{count}");
    }
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn threads_that_ask_at_once_each_get_their_own_answers() {
    let (_folder, index) = index();
    let all = plans(&index, 240);
    let expected = hits(Cpu::new(Arc::clone(&index), 1).run(&all).unwrap());
    let engine = Engine::new(index).gpu(GpuOptions::simulator().unwrap());
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let (engine, all, expected) = (&engine, &all, &expected);
            scope.spawn(move || {
                for round in 0..6 {
                    // Single queries, small batches and large ones.
                    let first = (thread * 7 + round * 11) % 80;
                    let range = first..first + [1, 5, 160][(thread + round) % 3];
                    let answers = engine.run(&all[range.clone()]).unwrap();
                    assert!(answers.iter().all(is_by_device));
                    assert_eq!(hits(answers), expected[range]);
                }
            });
        }
    });
    let counters = engine.counters().unwrap();
    assert_eq!(counters.fallen_back.load(Ordering::Relaxed) + counters.failures.load(Ordering::Relaxed), 0);
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn a_query_that_cannot_be_planned_fails_its_batch_and_no_later_one() {
    let (_folder, index) = index();
    let searcher = |threads| {
        let searcher = Searcher::new(Arc::clone(&index)).gpu(GpuOptions::simulator().unwrap());
        searcher.policy(Policy::Gpu).threads(threads)
    };
    let good: Vec<Query> = (0..70).map(|number| Query::new(WORDS[number % 4]).k(5)).collect();
    let mut bad = good.clone();
    bad[66] = Query::new("falcon^0");
    for threads in [1, 4] {
        let searcher = searcher(threads);
        let error = searcher.search_batch(&bad).unwrap_err().to_string();
        assert!(error.starts_with("query 67: "), "{error}");
        assert_eq!(searcher.search_batch(&good).unwrap().len(), good.len());
    }
}

/// Filters are for the CPU, here in several groups of queries that threads plan together.
#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn what_the_gpu_does_not_support_is_answered_in_its_place() {
    let (_folder, index) = index();
    let cpu = Searcher::new(Arc::clone(&index));
    let gpu = |threads| {
        let searcher = Searcher::new(Arc::clone(&index)).gpu(GpuOptions::simulator().unwrap());
        searcher.policy(Policy::Gpu).threads(threads)
    };
    let even = cpu.filter((0..500).step_by(2).map(|id| id.to_string())).unwrap();
    let query = |number: usize| {
        let query = Query::new(WORDS[number % 4]).k(1 + number % 9);
        if number % 5 < 2 { query.filter(even.clone()) } else { query }
    };
    let queries: Vec<Query> = (0..90).map(query).collect();
    for threads in [1, 3] {
        let answers = gpu(threads).search_batch(&queries).unwrap();
        for (query, answer) in queries.iter().zip(answers) {
            assert_eq!(answer.hits, cpu.search(query).unwrap().hits);
        }
    }
}
