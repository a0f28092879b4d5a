//! Losing the GPU while it answers plans with filters and by static ranks, on the simulator: every call fails in turn, in
//! every way, and memory is too small for a filter.

use lanner::answer::Place;
use lanner::internals::executors::{Cpu, Executor, SmallBatches};
use lanner::internals::query::answer::Scored;
use lanner::internals::query::planner::Planner;
use lanner::{Algorithm, Answer, DocId, DocumentSet, Engine, GpuOptions, Index, Mode, Plan, Query, ScoreModel};
use lanner_gpu::device::Device;
use lanner_gpu::faulty::{Fault, Faulty};
use lanner_gpu::simulator::Simulator;
use lanner_index::build::{BuildOptions, Quiet, build};
use lanner_index::corpus::{Corpus, CorpusOptions};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const DOCUMENTS: u32 = 700;

/// An index, plans over it, and the CPU's answers.
struct Questions {
    index: Arc<Index>,
    plans: Vec<Plan>,
    expected: Vec<Vec<Scored>>,
}

impl Questions {
    fn new(documents: u32, words: impl Fn(u32) -> String, queries: &[Query]) -> Questions {
        let folder = tempfile::tempdir().unwrap();
        let (at, ranks) = (folder.path().join("index"), folder.path().join("ranks"));
        std::fs::write(&ranks, (0..documents).map(|id| format!("{id}\t{}\n", id % 7)).collect::<String>()).unwrap();
        let named = (0..documents).map(|id| (id.to_string(), String::new(), words(id)));
        let corpus = Corpus::from_documents(named.collect::<Vec<_>>(), CorpusOptions::default()).unwrap();
        let options = BuildOptions { threads: 1, impacts: true, ranks: Some(ranks), ..BuildOptions::default() };
        build(&at, corpus, &options, &Quiet).unwrap();
        let index = Arc::new(Index::open(&at).unwrap());
        let plans: Vec<Plan> = queries.iter().map(|query| Planner::new(&index).plan(query).unwrap()).collect();
        let answers = Cpu::new(Arc::clone(&index), 1).run(&plans).unwrap();
        let expected: Vec<Vec<Scored>> = answers.into_iter().map(|answer| answer.hits).collect();
        assert!(expected.iter().all(|hits| !hits.is_empty()));
        Questions { index, plans, expected }
    }

    /// Plans with filters and by rank; the first ones have one filter, all together three.
    fn mixed(and: Algorithm, or: Algorithm) -> Questions {
        let set = |step: usize| Arc::new((0..DOCUMENTS).step_by(step).map(DocId).collect::<DocumentSet>());
        let [second, third, fifth] = [2, 3, 5].map(set);
        let rank = ScoreModel::RankBm25 { alpha: 0.4 };
        let query = |words, mode| Query::new(words).mode(mode).algorithm(if mode == Mode::Or { or } else { and });
        let words = |document: u32| {
            let often = ["falcon ", "pairs "].map(|word| word.repeat(document as usize % 5));
            let seldom = [(3, "water "), (50, "dawn "), (67, "heron ")];
            let seldom = seldom.map(|(step, word)| if document.is_multiple_of(step) { word } else { "" });
            often.concat() + &seldom.concat()
        };
        Questions::new(
            DOCUMENTS,
            words,
            &[
                query("falcon water", Mode::And).filter(Arc::clone(&second)),
                query("dawn heron water", Mode::Or).score(rank),
                query("falcon pairs", Mode::And).filter(Arc::clone(&third)).score(rank),
                query("dawn falcon", Mode::AndOr).filter(fifth),
                query("water heron", Mode::Or).filter(second).score(ScoreModel::Impact),
                query("pairs dawn", Mode::AndOr).filter(third).score(rank),
            ],
        )
    }

    /// An engine whose first device fails as told; later devices do not fail. And the lines that it reports.
    fn engine(&self, device: &Arc<Faulty>, usage: Use) -> (Engine, Arc<Mutex<Vec<String>>>) {
        let (opened, first) = (AtomicUsize::new(0), Arc::clone(device));
        let open = move || -> Result<Arc<dyn Device>, _> {
            Ok(match opened.fetch_add(1, Ordering::Relaxed) {
                0 => Arc::clone(&first) as Arc<dyn Device>,
                _ => Arc::new(Simulator::new(1)),
            })
        };
        let lines = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&lines);
        let options = GpuOptions::new(Box::new(open))
            .pause(Duration::ZERO)
            .report(Box::new(move |line| told.lock().unwrap().push(line.to_owned())));
        (Engine::new(Arc::clone(&self.index)).gpu(usage(options)), lines)
    }

    /// Asks the first plans together, checks the answers, and says which of them the device gave.
    fn ask(&self, engine: &Engine, count: usize) -> Vec<bool> {
        let answers = engine.run(&self.plans[..count]).unwrap();
        assert!(answers.iter().map(|answer| &answer.hits).eq(&self.expected[..count]));
        let is_by_device = |answer: &Answer<Scored>| answer.trace.steps.iter().any(|it| it.place == Place::Simulator);
        answers.iter().map(is_by_device).collect()
    }

    /// Asks for a few plans, then twice for all. Returns whether the device gave all answers, each time.
    fn ask_all(&self, engine: &Engine) -> [bool; 3] {
        [2, self.plans.len(), self.plans.len()].map(|count| self.ask(engine, count) == vec![true; count])
    }
}

/// How a GPU is used.
type Use = fn(GpuOptions) -> GpuOptions;

fn device(fault: Fault, at: u64) -> Arc<Faulty> {
    Arc::new(Faulty::new(Arc::new(Simulator::new(at)), fault, at))
}

/// Makes every call fail in turn. All answers are right, and once the device is open again it gives all of them.
fn lose_every_call(questions: &Questions, usage: Use) {
    let never = device(Fault::Once, u64::MAX);
    let (engine, _) = questions.engine(&never, usage);
    engine.connect().unwrap();
    assert_eq!(questions.ask_all(&engine), [true; 3]);
    for fault in [Fault::Once, Fault::Lost, Fault::Late] {
        for at in 0..never.calls() {
            let device = device(fault, at);
            let (engine, _) = questions.engine(&device, usage);
            // With lists that are loaded before the first plans come, the calls are the same each time.
            _ = engine.connect();
            let is_by_device = questions.ask_all(&engine);
            assert!(device.has_failed(), "{fault:?} at call {at}");
            let complete = is_by_device.iter().filter(|&&is_by_device| is_by_device).count();
            assert!(complete >= 2, "{fault:?} at call {at}: {is_by_device:?}");
            assert!(questions.ask(&engine, 2)[..] == [true; 2], "{fault:?} at call {at}");
        }
    }
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn any_call_may_fail_with_filters_and_ranks() {
    let questions = Questions::mixed(Algorithm::Auto, Algorithm::Auto);
    lose_every_call(&questions, |options| options.small_batches(SmallBatches::Graph));
    lose_every_call(&questions, |options| options);
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn any_call_may_fail_with_filters_and_ranks_and_lists_that_are_uploaded() {
    lose_every_call(&Questions::mixed(Algorithm::Auto, Algorithm::Auto), GpuOptions::upload_lists);
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn any_call_may_fail_with_filters_and_ranks_in_steps() {
    lose_every_call(&Questions::mixed(Algorithm::TermAtATime, Algorithm::Accumulators), |options| options);
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn memory_too_small_for_a_filter_leaves_its_plan_to_the_cpu_and_no_others() {
    let words = |document: u32| if document.is_multiple_of(40_000) { "few" } else { "" }.to_owned();
    let filter = Arc::new((0..300_000).map(DocId).collect::<DocumentSet>());
    let query = Query::new("few").mode(Mode::Or);
    let questions = Questions::new(600_000, words, &[query.clone(), query.clone().filter(filter), query.k(3)]);
    // For the lengths of all documents and three buffers of 64 KiB, but not for the 75,000 bytes of the filter, too.
    let usage: Use = |options| options.memory(600_000 + (240 << 10)).upload_lists();
    let (engine, lines) = questions.engine(&device(Fault::Once, u64::MAX), usage);
    for _ in 0..2 {
        assert_eq!(questions.ask(&engine, 3), [true, false, true]);
    }
    let lines = lines.lock().unwrap();
    assert!(lines.len() == 1 && lines[0].starts_with("the memory budget of the GPU has "), "{lines:?}");
}
