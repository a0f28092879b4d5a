//! An engine under load: every policy gives the CPU's answers, whatever the ways of asking and whichever call of the
//! device fails; nothing that was accepted is lost.

use lanner::answer::Pending;
use lanner::internals::executors::Counters;
use lanner::{Answer, Engine, GpuOptions, Hit, Index, Mode, Policy, Query, ScoreModel, SearchError};
use lanner_gpu::device::Device;
use lanner_gpu::faulty::{Fault, Faulty};
use lanner_gpu::simulator::Simulator;
use lanner_index::build::{BuildOptions, Quiet, build};
use lanner_index::corpus::{Corpus, CorpusOptions};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const WORDS: [&str; 5] = ["falcon", "heron", "water", "dawn", "reed"];
const POLICIES: [Policy; 4] = Policy::ALL;

/// An index, queries of all modes and models, and the hits that one thread of the CPU finds.
struct Questions {
    _folder: TempDir,
    index: Arc<Index>,
    queries: Vec<Query>,
    expected: Vec<Vec<Hit>>,
}

fn questions() -> &'static Questions {
    static QUESTIONS: OnceLock<Questions> = OnceLock::new();
    QUESTIONS.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let text = |document: usize| {
            let words = WORDS.iter().zip([2, 3, 5, 7, 40]).filter(|(_, step)| document.is_multiple_of(*step));
            words.map(|(word, _)| *word).collect::<Vec<_>>().join(" ")
        };
        let documents: Vec<_> = (0..900).map(|number| (number.to_string(), String::new(), text(number))).collect();
        let corpus = Corpus::from_documents(documents, CorpusOptions::default()).unwrap();
        build(folder.path(), corpus, &BuildOptions { impacts: true, ..BuildOptions::default() }, &Quiet).unwrap();
        let index = Arc::new(Index::open(folder.path()).unwrap());
        let query = |number: usize| {
            let text = format!("{} {}^2", WORDS[number % 5], WORDS[number / 5 % 5]);
            let mode = [Mode::Or, Mode::And, Mode::AndOr][number % 3];
            let score = [ScoreModel::Bm25, ScoreModel::Impact][number % 2];
            Query::new(text).mode(mode).score(score).k([1, 10, 100][number / 3 % 3])
        };
        let queries: Vec<Query> = (0..150).map(query).collect();
        let cpu = Engine::new(Arc::clone(&index));
        let expected = queries.iter().map(|query| cpu.search(query).unwrap().hits).collect();
        Questions { _folder: folder, index, queries, expected }
    })
}

impl Questions {
    fn engine(&self, policy: Policy, threads: usize, device: Arc<dyn Device>) -> Engine {
        self.engine_with_pause(policy, threads, device, Duration::from_millis(1))
    }

    /// An engine that does not open a device again within `pause` after a failure.
    fn engine_with_pause(&self, policy: Policy, threads: usize, device: Arc<dyn Device>, pause: Duration) -> Engine {
        let options = GpuOptions::new(Box::new(move || Ok(Arc::clone(&device)))).pause(pause);
        Engine::new(Arc::clone(&self.index)).threads(threads).policy(policy).gpu(options)
    }

    fn numbers(&self, count: usize, seed: usize) -> Vec<usize> {
        (0..count).map(|number| (number * 7 + seed * 13) % self.queries.len()).collect()
    }

    fn check(&self, number: usize, answer: Result<Answer, SearchError>, what: &str) {
        let answer = answer.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(answer.hits, self.expected[number], "{what}: {:?}", self.queries[number]);
        assert!(answer.exact && answer.coverage == 1.0, "{what}");
        assert!(answer.trace.arrived.is_some(), "{what}");
        let mut timeline = answer.trace.timeline().map(|(start, _)| start);
        assert!(timeline.next().is_some() && timeline.is_sorted(), "{what}: {:?}", answer.trace);
    }

    /// Asks in all three ways at once.
    fn ask(&self, engine: &Engine, count: usize, what: &str) {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in self.numbers(count, 1) {
                    self.check(number, engine.search(&self.queries[number]), what);
                }
            });
            scope.spawn(|| {
                let numbers = self.numbers(count, 2);
                let pending: Vec<Pending> =
                    numbers.iter().map(|&number| engine.submit(self.queries[number].clone()).unwrap()).collect();
                for (number, pending) in numbers.into_iter().zip(pending) {
                    self.check(number, pending.wait(), what);
                }
            });
            let numbers = self.numbers(2 * count, 3);
            let queries: Vec<Query> = numbers.iter().map(|&number| self.queries[number].clone()).collect();
            let answers: Vec<_> = engine.stream(queries).collect();
            assert_eq!(answers.len(), numbers.len());
            for (number, answer) in numbers.into_iter().zip(answers) {
                self.check(number, answer, what);
            }
        });
    }
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn every_policy_gives_the_answers_of_the_cpu_under_concurrent_load() {
    let questions = questions();
    for policy in POLICIES {
        for threads in [1, 3] {
            let engine = questions.engine(policy, threads, Arc::new(Simulator::new(5)));
            if policy != Policy::Cpu {
                engine.connect().unwrap();
            }
            questions.ask(&engine, 100, &format!("{policy}, {threads} threads"));
            let by_gpu = engine.counters().unwrap().answered.load(Ordering::Relaxed);
            assert_eq!(by_gpu + engine.answered_by_cpu(), 400, "{policy}");
            match policy {
                Policy::Cpu => assert_eq!(by_gpu, 0),
                Policy::Gpu => assert_eq!(by_gpu, 400),
                // What they choose depends on what they have learnt.
                Policy::Best | Policy::Auto => {}
            }
        }
    }
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn whichever_call_of_the_device_fails_no_answer_is_lost() {
    let questions = questions();
    for fault in [Fault::Once, Fault::Lost, Fault::Late] {
        for at in (0..400).step_by(23) {
            let device = Arc::new(Faulty::new(Arc::new(Simulator::new(at)), fault, at));
            let engine = questions.engine(Policy::Gpu, 2, device);
            questions.ask(&engine, 12, &format!("{fault:?} at call {at}"));
        }
    }
}

#[test]
fn the_policy_cpu_never_opens_a_device() {
    let questions = questions();
    let opened = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&opened);
    let options = GpuOptions::new(Box::new(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(Simulator::new(1)))
    }));
    let engine = Engine::new(Arc::clone(&questions.index)).policy(Policy::Cpu).threads(2).gpu(options);
    questions.ask(&engine, 50, "cpu");
    drop(engine);
    assert_eq!(opened.load(Ordering::Relaxed), 0);
}

/// Queries of some milliseconds: the same documents many times.
fn slow_query() -> Query {
    Query::new(WORDS.join(" ")).k(100).algorithm(lanner::Algorithm::Exhaustive)
}

#[test]
fn a_full_queue_refuses_with_a_typed_error_and_an_answer_or_a_dropped_future_frees_a_place() {
    let questions = questions();
    let engine = Engine::new(Arc::clone(&questions.index)).queue(3);
    // Until one is refused: the engine answers while they are submitted.
    let mut pending = Vec::new();
    let error = loop {
        match engine.submit(slow_query()) {
            Ok(accepted) => pending.push(accepted),
            Err(error) => break error,
        }
        assert!(pending.len() < 100_000, "no query is refused");
    };
    assert!(matches!(error, SearchError::Busy { limit: 3 }), "{error}");
    assert!(error.to_string().contains("accepts no more"), "{error}");
    // One that waits gets a place.
    let expected = engine.search(&slow_query()).unwrap().hits;
    assert_eq!(engine.submit_waiting(slow_query()).wait().unwrap().hits, expected);
    for accepted in pending {
        assert_eq!(accepted.wait().unwrap().hits, expected);
    }
    // Dropped futures leave their places at once.
    let dropped: Vec<Pending> = (0..3).filter_map(|_| engine.submit(slow_query()).ok()).collect();
    drop(dropped);
    let after = (0..3).map(|_| engine.submit(slow_query())).collect::<Result<Vec<_>, _>>();
    assert!(after.is_ok_and(|after| after.into_iter().all(|pending| pending.wait().is_ok())));
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn an_engine_that_is_dropped_answers_what_it_has_accepted() {
    let questions = questions();
    for policy in [Policy::Cpu, Policy::Gpu] {
        let engine = questions.engine(policy, 3, Arc::new(Simulator::new(2)));
        let submit = |number: &usize| engine.submit(questions.queries[*number].clone()).unwrap();
        let numbers = questions.numbers(120, 4);
        let pending: Vec<Pending> = numbers.iter().map(submit).collect();
        drop(engine);
        for (number, mut pending) in numbers.into_iter().zip(pending) {
            let Poll::Ready(answer) = Pin::new(&mut pending).poll(&mut Context::from_waker(Waker::noop())) else {
                panic!("an accepted query has no answer");
            };
            questions.check(number, answer, "dropped");
        }
    }
}

#[test]
fn after_its_deadline_a_query_is_an_error_or_a_partial_answer() {
    let questions = questions();
    let engine = Engine::new(Arc::clone(&questions.index));
    let late = Query::new("falcon heron").deadline(Duration::ZERO);
    let error = engine.search(&late).unwrap_err();
    assert!(matches!(error, SearchError::Deadline { deadline: Duration::ZERO }), "{error}");
    let error = engine.submit(late.clone()).unwrap().wait().unwrap_err();
    assert!(error.to_string().starts_with("no answer within 0 ms; allow a longer time"), "{error}");
    let streamed: Vec<_> = engine.stream([late.clone(), Query::new("falcon")]).collect();
    assert!(matches!(streamed[0], Err(SearchError::Deadline { .. })) && streamed[1].is_ok());
    let partial = engine.search(&late.allow_partial()).unwrap();
    assert_eq!((partial.hits.len(), partial.coverage, partial.exact), (0, 0.0, false));
    // With time enough, and with more than a clock can count, answers are whole.
    for deadline in [Duration::from_secs(60), Duration::MAX] {
        for (number, query) in questions.queries.iter().enumerate() {
            let answer = engine.search(&query.clone().deadline(deadline));
            questions.check(number, answer, "deadline");
        }
    }
}

#[test]
fn a_stream_keeps_the_order_of_its_queries_and_errors_have_their_places() {
    let questions = questions();
    for threads in [1, 4] {
        let engine = Engine::new(Arc::clone(&questions.index)).threads(threads);
        let numbers = questions.numbers(1000, 5);
        let query = |&number: &usize| match number % 10 {
            3 => Query::new("falcon^0"),
            _ => questions.queries[number].clone(),
        };
        let queries: Vec<Query> = numbers.iter().map(query).collect();
        let answers: Vec<_> = engine.stream(queries).collect();
        assert_eq!(answers.len(), numbers.len());
        for (number, answer) in numbers.into_iter().zip(answers) {
            match number % 10 {
                3 => assert!(matches!(answer, Err(SearchError::Plan(_)))),
                _ => questions.check(number, answer, "stream"),
            }
        }
    }
}

#[test]
fn a_stream_takes_no_more_queries_than_it_can_bear_and_ends_when_it_is_dropped() {
    let questions = questions();
    let engine = Engine::new(Arc::clone(&questions.index)).threads(3);
    let taken = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&taken);
    let endless = std::iter::repeat_with(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        Query::new("falcon").k(1)
    });
    let mut stream = engine.stream(endless);
    assert!(stream.next().is_some_and(|answer| answer.is_ok()));
    // Helpers run ahead, up to a bound.
    let start = Instant::now();
    let mut before = 0;
    while start.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(300));
        let now = taken.load(Ordering::Relaxed);
        if now == before {
            break;
        }
        before = now;
    }
    assert!((17..200_000).contains(&before), "{before} queries were taken for one answer");
    drop(stream);
    assert_eq!(engine.search_batch(&vec![Query::new("heron"); 50]).unwrap().len(), 50, "the engine goes on");
}

#[test]
fn a_panic_of_a_caller_s_function_reaches_the_reader_of_the_stream() {
    let questions = questions();
    for threads in [1, 3] {
        let engine = Engine::new(Arc::clone(&questions.index)).threads(threads);
        let queries = vec![Query::new("falcon"); 500];
        let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            engine.stream_map(queries, |_, _| panic!("a panic on command")).count()
        }));
        assert!(panics.is_err());
        assert!(engine.search(&Query::new("falcon")).is_ok());
        assert_eq!(engine.search_batch(&vec![Query::new("heron"); 50]).unwrap().len(), 50);
    }
}

#[test]
fn equal_queries_are_answered_from_the_cache_and_others_are_not() {
    let questions = questions();
    let engine = Engine::new(Arc::clone(&questions.index)).threads(2).cache(1 << 20);
    for round in 0..3 {
        for number in 0..questions.queries.len() {
            let answer = match round {
                2 => engine.submit(questions.queries[number].clone()).unwrap().wait(),
                _ => engine.search(&questions.queries[number]),
            };
            questions.check(number, answer, "cache");
        }
    }
    let (counters, count) = (engine.cache_counters(), questions.queries.len() as u64);
    // Some of the queries are equal to each other.
    assert!(counters.hits >= 2 * count && counters.hits + counters.misses == 3 * count, "{counters:?}");
    let cached = engine.search(&questions.queries[0]).unwrap();
    assert_eq!(cached.trace.steps.iter().map(|step| step.name).collect::<Vec<_>>(), ["cache"]);
}

/// The CPU of an engine with a device counts its answers.
#[test]
fn streams_find_and_keep_answers_in_the_cache() {
    let questions = questions();
    let distinct = questions.queries.iter().map(|query| format!("{query:?}")).collect::<std::collections::HashSet<_>>();
    let (all, distinct) = (questions.queries.len() as u64, distinct.len() as u64);
    for threads in [1, 4] {
        let engine = questions.engine(Policy::Cpu, threads, Arc::new(Simulator::new(1))).cache(8 << 20);
        let check = |answers: Vec<Result<Answer, SearchError>>| {
            assert_eq!(answers.len(), questions.queries.len());
            answers.into_iter().enumerate().for_each(|(number, answer)| questions.check(number, answer, "stream"));
        };
        check(engine.stream(questions.queries.clone()).collect());
        let (first, answered) = (engine.cache_counters(), engine.answered_by_cpu());
        assert_eq!((first.hits + first.misses, first.misses, first.joined), (all, answered, 0));
        match threads {
            1 => assert_eq!(answered, distinct, "a query is found that the same group has answered"),
            _ => assert!(answered >= distinct),
        }
        // Every way to ask finds what the stream kept, without planning.
        check(engine.stream(questions.queries.clone()).collect());
        check(engine.search_batch(&questions.queries).unwrap().into_iter().map(Ok).collect());
        check(questions.queries.iter().map(|query| engine.search(query)).collect());
        check(questions.queries.iter().map(|query| engine.submit(query.clone()).unwrap().wait()).collect());
        let counters = engine.cache_counters();
        assert_eq!((counters.hits, counters.misses), (first.hits + 4 * all, first.misses));
        assert_eq!(engine.answered_by_cpu(), answered);
        let cached = engine.stream([questions.queries[0].clone()]).next().unwrap().unwrap();
        assert_eq!(cached.trace.steps.iter().map(|step| step.name).collect::<Vec<_>>(), ["cache"]);
    }
}

#[test]
fn streams_neither_keep_errors_nor_look_for_plans_and_queries_with_a_deadline() {
    let questions = questions();
    let engine = Engine::new(Arc::clone(&questions.index)).cache(1 << 20);
    for round in 1..3 {
        assert!(engine.stream([Query::new("falcon^0")]).all(|answer| answer.is_err()));
        assert_eq!((engine.cache_counters().hits, engine.cache_counters().misses), (0, round));
    }
    let before = engine.cache_counters();
    let plan = engine.plan(&Query::new("falcon")).unwrap();
    assert!(
        engine.stream_plans([0, 1], move |_| plan.clone(), |_, answer| answer.is_ok()).all(|is_answered| is_answered)
    );
    let query = Query::new("falcon").deadline(Duration::from_secs(60));
    assert!(engine.stream([query.clone(), query]).all(|answer| answer.is_ok()));
    assert_eq!(engine.cache_counters(), before);
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn with_a_cache_every_query_is_answered_found_or_joined_under_every_policy() {
    let questions = questions();
    for policy in POLICIES {
        for threads in [1, 3] {
            let engine = questions.engine(policy, threads, Arc::new(Simulator::new(5))).cache(8 << 20);
            if policy != Policy::Cpu {
                engine.connect().unwrap();
            }
            questions.ask(&engine, 100, &format!("{policy}, {threads} threads, with a cache"));
            let by_gpu = engine.counters().unwrap().answered.load(Ordering::Relaxed);
            let counters = engine.cache_counters();
            assert_eq!(counters.hits + counters.misses, 400, "{policy}");
            assert_eq!(by_gpu + engine.answered_by_cpu(), counters.misses - counters.joined, "{policy}");
        }
    }
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn whichever_call_of_the_device_fails_no_follower_is_lost() {
    let questions = questions();
    for fault in [Fault::Once, Fault::Lost, Fault::Late] {
        for at in (0..120).step_by(13) {
            let device = Arc::new(Faulty::new(Arc::new(Simulator::new(at)), fault, at));
            let engine = questions.engine(Policy::Gpu, 2, device).cache(8 << 20);
            let submit = |number: usize| engine.submit(questions.queries[number / 8].clone()).unwrap();
            let pending: Vec<Pending> = (0..64).map(submit).collect();
            // Some are cancelled, and some of those lead.
            let (kept, cancelled): (Vec<_>, Vec<_>) = pending.into_iter().enumerate().partition(|(at, _)| at % 8 > 1);
            drop(cancelled);
            drop(engine);
            for (number, pending) in kept {
                questions.check(number / 8, pending.wait(), &format!("{fault:?} at call {at}"));
            }
        }
    }
}

#[test]
fn a_stream_lives_on_after_its_engine_is_dropped() {
    let questions = questions();
    let engine = Engine::new(Arc::clone(&questions.index)).threads(3);
    let numbers = questions.numbers(3000, 6);
    let queries: Vec<Query> = numbers.iter().map(|&number| questions.queries[number].clone()).collect();
    let mut stream = engine.stream(queries);
    questions.check(numbers[0], stream.next().unwrap(), "before");
    drop(engine);
    let answers: Vec<_> = stream.collect();
    assert_eq!(answers.len(), numbers.len() - 1);
    for (number, answer) in numbers.into_iter().skip(1).zip(answers) {
        questions.check(number, answer, "after");
    }
}

#[test]
fn a_source_that_waits_for_its_queries_keeps_no_others_waiting() {
    let questions = questions();
    let engine = Engine::new(Arc::clone(&questions.index)).threads(4);
    let (sender, receiver) = std::sync::mpsc::channel();
    let stream = engine.stream(receiver);
    // Long enough for the threads to come to the source.
    std::thread::sleep(Duration::from_millis(20));
    for number in questions.numbers(40, 7) {
        let pending = engine.submit(questions.queries[number].clone()).unwrap();
        questions.check(number, pending.wait(), "beside a stream that waits");
    }
    let numbers = questions.numbers(50, 8);
    numbers.iter().for_each(|&number| sender.send(questions.queries[number].clone()).unwrap());
    drop(sender);
    let answers: Vec<_> = stream.collect();
    assert_eq!(answers.len(), numbers.len());
    numbers.into_iter().zip(answers).for_each(|(number, answer)| questions.check(number, answer, "stream"));
}

#[test]
fn a_stream_ends_after_a_panic() {
    let questions = questions();
    let engine = Engine::new(Arc::clone(&questions.index)).threads(3);
    let mut stream = engine.stream_map(vec![Query::new("falcon"); 500], |_, _| -> u32 { panic!("a panic on command") });
    let next = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| stream.next()));
    assert!(next.is_err());
    assert_eq!(stream.next(), None);
}

/// A device that fails is closed, and `auto` uses the CPU until it is asked to open it again.
#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn a_device_that_failed_can_be_warmed_up_again() {
    let questions = questions();
    let device: Arc<dyn Device> = Arc::new(Faulty::new(Arc::new(Simulator::new(9)), Fault::Once, 70));
    // Longer than a thread takes from its choice of the GPU until it submits: a job that arrives after the pause opens
    // the device too.
    let engine = questions.engine_with_pause(Policy::Auto, 2, device, Duration::from_secs(2));
    let count = |counter: fn(&Counters) -> &AtomicU64| counter(engine.counters().unwrap()).load(Ordering::Relaxed);
    engine.connect().unwrap();
    // Streams use the GPU while it is open.
    let rounds = (0..100).take_while(|_| count(|counters| &counters.failures) == 0);
    rounds.for_each(|_| questions.ask(&engine, 20, "auto"));
    assert_eq!((count(|counters| &counters.failures), count(|counters| &counters.opened)), (1, 1));
    let answered = count(|counters| &counters.answered);
    questions.ask(&engine, 20, "auto, without the device");
    assert_eq!(count(|counters| &counters.answered), answered);
    let start = Instant::now();
    while count(|counters| &counters.opened) < 2 && start.elapsed() < Duration::from_secs(20) {
        engine.warm_up();
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(count(|counters| &counters.opened), 2);
    questions.ask(&engine, 60, "auto, again");
    assert!(count(|counters| &counters.answered) > answered);
}
