//! Several indexes that share an engine: its threads, its queue, its cache, and one device with one memory budget.

use lanner::internals::executors::{Cpu, Executor, Keep};
use lanner::internals::query::answer::Scored;
use lanner::{Answer, Engine, GpuOptions, Index, Mode, Policy, Query, SearchError};
use lanner_gpu::device::Device;
use lanner_gpu::error::GpuError;
use lanner_gpu::faulty::{Fault, Faulty};
use lanner_gpu::simulator::Simulator;
use lanner_index::build::{BuildOptions, Quiet, build};
use lanner_index::corpus::{Corpus, CorpusOptions};
use lanner_index::format::segment::Section;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const WORDS: [&str; 4] = ["falcon", "heron", "water", "dawn"];

/// An index in which word `i` is in every document whose number is a multiple of `steps[i]`.
fn index(documents: usize, steps: [usize; 4]) -> (TempDir, Arc<Index>) {
    let folder = tempfile::tempdir().unwrap();
    let text = |document: usize| {
        let words = WORDS.iter().zip(steps).filter(|(_, step)| document.is_multiple_of(*step));
        words.map(|(word, _)| format!("{word} ").repeat(1 + document % 3)).collect::<String>()
    };
    let documents: Vec<_> = (0..documents).map(|number| (number.to_string(), String::new(), text(number))).collect();
    let corpus = Corpus::from_documents(documents, CorpusOptions::default()).unwrap();
    build(folder.path(), corpus, &BuildOptions::default(), &Quiet).unwrap();
    let index = Arc::new(Index::open(folder.path()).unwrap());
    (folder, index)
}

/// Queries of all modes, with terms that both indexes have.
fn queries(count: usize) -> Vec<Query> {
    let query = |number: usize| {
        let mode = [Mode::Or, Mode::And, Mode::AndOr][number % 3];
        Query::new(format!("{} {}", WORDS[number % 4], WORDS[number / 4 % 4])).mode(mode).k(1 + number % 20)
    };
    (0..count).map(query).collect()
}

fn hits(answer: Answer) -> Vec<Scored> {
    answer.hits.into_iter().map(Scored::from).collect()
}

/// What the CPU answers.
fn expected(index: &Arc<Index>, queries: &[Query]) -> Vec<Vec<Scored>> {
    let engine = Engine::new(Arc::clone(index));
    let plans: Vec<_> = queries.iter().map(|query| engine.plan(query).unwrap()).collect();
    let answers = Cpu::new(Arc::clone(index), 1).run(&plans).unwrap();
    answers.into_iter().map(|answer| answer.hits).collect()
}

fn answered_by_gpu(engine: &Engine) -> u64 {
    engine.counters().unwrap().answered.load(Ordering::Relaxed)
}

/// Waits for something that another thread does soon.
fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn every_way_of_asking_answers_for_its_own_index() {
    let indexes = [index(500, [2, 3, 5, 7]), index(900, [7, 2, 3, 11]), index(60, [1, 2, 3, 4])];
    let queries = queries(96);
    for policy in Policy::ALL {
        let first = Engine::new(Arc::clone(&indexes[0].1)).threads(4).policy(policy);
        let first = first.gpu(GpuOptions::simulator().unwrap());
        let engines = [first.share(Arc::clone(&indexes[1].1)), first.share(Arc::clone(&indexes[2].1)), first];
        let engines = [&engines[2], &engines[0], &engines[1]];
        if policy != Policy::Cpu {
            engines.iter().for_each(|engine| engine.connect().unwrap());
        }
        std::thread::scope(|scope| {
            for (engine, (_, index)) in engines.iter().zip(&indexes) {
                let (queries, expected) = (&queries, expected(index, &queries));
                let checked = expected.clone();
                scope.spawn(move || {
                    let answers = engine.stream(queries.clone());
                    assert_eq!(answers.map(|answer| hits(answer.unwrap())).collect::<Vec<_>>(), checked);
                });
                scope.spawn(move || {
                    let pending: Vec<_> = queries.iter().map(|query| engine.submit(query.clone()).unwrap()).collect();
                    let answers = pending.into_iter().map(|pending| hits(pending.wait().unwrap()));
                    assert_eq!(answers.collect::<Vec<_>>(), expected);
                    let searched = queries.iter().map(|query| hits(engine.search(query).unwrap()));
                    assert_eq!(searched.collect::<Vec<_>>(), expected);
                });
            }
        });
        let by_gpu = if policy == Policy::Gpu { 3 * 3 * queries.len() as u64 } else { 0 };
        assert!(answered_by_gpu(engines[0]) >= by_gpu, "{policy}");
        assert!(engines[0].counters().unwrap().opened.load(Ordering::Relaxed) <= 1, "one device");
    }
}

#[test]
fn the_cache_tells_indexes_apart() {
    let ((_first, one), (_second, other)) = (index(500, [2, 3, 5, 7]), index(40, [7, 2, 3, 11]));
    let engine = Engine::new(Arc::clone(&one)).threads(2).cache(1 << 20);
    let shared = engine.share(Arc::clone(&other));
    let queries = queries(30);
    let expected = [&one, &other].map(|index| expected(index, &queries));
    assert_ne!(expected[0], expected[1]);
    for round in 0..3u64 {
        for (engine, expected) in [&engine, &shared].into_iter().zip(&expected) {
            let answers = queries.iter().map(|query| hits(engine.search(query).unwrap()));
            assert_eq!(answers.collect::<Vec<_>>(), *expected);
        }
        assert_eq!(engine.cache_counters().hits, 2 * 30 * round, "one cache counts for both");
        assert_eq!(shared.cache_counters(), engine.cache_counters());
    }
}

#[test]
fn the_queue_is_one_for_all_indexes() {
    let ((_first, one), (_second, other)) = (index(500, [2, 3, 5, 7]), index(40, [7, 2, 3, 11]));
    let engine = Engine::new(one).threads(2).queue(1);
    let shared = engine.share(other);
    let mut is_busy = false;
    for _ in 0..10_000 {
        let first = engine.submit(Query::new("falcon heron water"));
        is_busy |= first.is_ok() && matches!(shared.submit(Query::new("falcon")), Err(SearchError::Busy { limit: 1 }));
        drop(first);
    }
    assert!(is_busy, "the other index counts");
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn whichever_engine_is_dropped_the_other_goes_on() {
    let ((_first, one), (_second, other)) = (index(500, [2, 3, 5, 7]), index(40, [7, 2, 3, 11]));
    let queries = queries(60);
    for drops_first in [true, false] {
        let first = Engine::new(Arc::clone(&one)).threads(3).policy(Policy::Gpu);
        let first = first.gpu(GpuOptions::simulator().unwrap());
        let second = first.share(Arc::clone(&other));
        let pending =
            |engine: &Engine| queries.clone().into_iter().map(|query| engine.submit(query).unwrap()).collect();
        let (of_first, of_second): (Vec<_>, Vec<_>) = (pending(&first), pending(&second));
        let (dropped, left) = if drops_first { (first, second) } else { (second, first) };
        drop(dropped);
        for (index, pending) in [(&one, of_first), (&other, of_second)] {
            let answers = pending.into_iter().map(|pending| hits(pending.wait().unwrap()));
            assert_eq!(answers.collect::<Vec<_>>(), expected(index, &queries));
        }
        let index = if drops_first { &other } else { &one };
        let answers = queries.iter().map(|query| hits(left.search(query).unwrap()));
        assert_eq!(answers.collect::<Vec<_>>(), expected(index, &queries));
    }
}

/// Bytes of lists that the device reads in host memory for a few queries.
fn bytes_from_host(engine: &Engine) -> u64 {
    let work: Vec<_> = queries(12).iter().map(|query| engine.search(query).unwrap().work).collect();
    assert!(work.iter().all(|work| work.bytes_uploaded > 0), "the device answered");
    work.iter().map(|work| work.bytes_from_host).sum()
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn the_memory_of_an_index_that_is_dropped_is_free_for_another() {
    let ((_first, one), (_second, other)) = (index(300_000, [2, 3, 5, 7]), index(300_000, [7, 2, 3, 11]));
    let bytes = |index: &Index, section| index.segment().section(section).len() as u64;
    let lists = |index: &Index| bytes(index, Section::LongLists) + bytes(index, Section::ShortLists);
    let memory = lists(&one).max(lists(&other)) * 3 / 2 + 2 * 300_000 + (300 << 10);
    let options = GpuOptions::simulator().unwrap().memory(memory);
    let first = Engine::new(Arc::clone(&one)).policy(Policy::Gpu).gpu(options);
    first.connect().unwrap();
    assert_eq!(bytes_from_host(&first), 0);
    let second = first.share(Arc::clone(&other));
    second.connect().unwrap();
    // The lists that are visited most have come by then.
    let visits: Vec<u64> = (0..5).map(|_| bytes_from_host(&second)).collect();
    let before = visits[4];
    assert!(before > 100_000, "the device has no memory for the lists of both: {before} bytes from host memory");
    assert_eq!(bytes_from_host(&first), 0);
    drop(first);
    wait_until("its lists become resident", || bytes_from_host(&second) == 0);
}

/// Each new generation of an index is opened beside the one before.
#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn pieces_of_lists_make_space_for_the_lengths_of_another_index() {
    let generations: Vec<_> = (0..3).map(|_| index(300_000, [2, 3, 5, 7])).collect();
    // The lengths of two generations fit, and some of their lists.
    let options = GpuOptions::simulator().unwrap().memory(900_000).keep(Keep::Pieces);
    let mut engine = Engine::new(Arc::clone(&generations[0].1)).policy(Policy::Gpu).gpu(options);
    let queries = queries(24);
    let check = |engine: &Engine| {
        let answers = queries.iter().map(|query| hits(engine.search(query).unwrap()));
        assert_eq!(answers.collect::<Vec<_>>(), expected(engine.index(), &queries));
        engine.residency().unwrap().cache.memory_bytes
    };
    engine.connect().unwrap();
    let alone = check(&engine);
    assert!(alone > 300_000, "{alone}");
    for (_, next) in &generations[1..] {
        let newer = engine.share(Arc::clone(next));
        newer.connect().unwrap();
        let beside = check(&newer).min(check(&engine));
        assert!((10_000..alone).contains(&beside), "{beside}");
        engine = newer;
        wait_until("the cache gets the memory of the older one", || check(&engine) > alone * 9 / 10);
    }
    let counters = engine.counters().unwrap();
    assert_eq!(counters.fallen_back.load(Ordering::Relaxed), 0);
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn a_plan_gets_memory_that_batches_of_another_index_use() {
    let indexes = [index(40_000, [1, 3, 5, 7]), index(40_000, [1, 2, 3, 11])];
    let options = GpuOptions::simulator().unwrap().memory(1_500_000).keep(Keep::Pieces);
    let first = Engine::new(Arc::clone(&indexes[0].1)).policy(Policy::Gpu).gpu(options);
    let second = first.share(Arc::clone(&indexes[1].1));
    let engines = [&first, &second];
    engines.iter().for_each(|engine| engine.connect().unwrap());
    // The keys of one take two thirds of the memory.
    let query = Query::new("falcon").mode(Mode::Or).k(20_000);
    let pending: Vec<_> = (0..8).map(|number| engines[number % 2].submit(query.clone()).unwrap()).collect();
    for (number, pending) in pending.into_iter().enumerate() {
        let expected = expected(&indexes[number % 2].1, std::slice::from_ref(&query)).remove(0);
        assert_eq!(hits(pending.wait().unwrap()), expected);
    }
    let counters = first.counters().unwrap();
    assert_eq!((answered_by_gpu(&first), counters.fallen_back.load(Ordering::Relaxed)), (8, 0));
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn an_index_that_does_not_fit_costs_the_others_nothing() {
    let ((_first, small), (_second, large)) = (index(60, [1, 2, 3, 4]), index(200_000, [2, 3, 5, 7]));
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let report = Arc::clone(&lines);
    // Not even the lengths of the large index fit.
    let options = GpuOptions::simulator().unwrap().memory(150_000);
    let options = options.report(Box::new(move |line| report.lock().unwrap().push(line.to_owned())));
    let first = Engine::new(Arc::clone(&small)).policy(Policy::Gpu).gpu(options);
    first.connect().unwrap();
    let second = first.share(Arc::clone(&large));
    let queries = queries(40);
    for _ in 0..3 {
        for (engine, index) in [(&second, &large), (&first, &small)] {
            let answers = queries.iter().map(|query| hits(engine.search(query).unwrap()));
            assert_eq!(answers.collect::<Vec<_>>(), expected(index, &queries));
        }
    }
    let counters = first.counters().unwrap();
    let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    assert_eq!((count(&counters.answered), count(&counters.fallen_back)), (120, 120));
    assert_eq!((count(&counters.failures), count(&counters.opened)), (0, 1));
    let lines = lines.lock().unwrap().clone();
    assert!(matches!(&lines[..], [line] if line.contains("the CPU answers queries over an index")), "{lines:?}");
    assert!(matches!(second.connect(), Err(error) if error.is_out_of_memory()));
}

/// Every call of the device fails in turn while two indexes are asked.
#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn a_device_that_fails_loses_no_answer_of_any_index() {
    let ((_first, one), (_second, other)) = (index(500, [2, 3, 5, 7]), index(40, [7, 2, 3, 11]));
    let queries = queries(24);
    let expected = [&one, &other].map(|index| expected(index, &queries));
    for fault in [Fault::Once, Fault::Lost, Fault::Late] {
        let mut failed = 0;
        for at in 0..60 {
            let device: Arc<dyn Device> = Arc::new(Faulty::new(Arc::new(Simulator::new(5)), fault, at));
            let is_opened = Mutex::new(false);
            let open = move || match std::mem::replace(&mut *is_opened.lock().unwrap(), true) {
                false => Ok(Arc::clone(&device)),
                true => Ok(Arc::new(Simulator::new(7)) as Arc<dyn Device>),
            };
            let options = GpuOptions::new(Box::new(open)).pause(Duration::ZERO);
            let first = Engine::new(Arc::clone(&one)).threads(3).policy(Policy::Gpu).gpu(options);
            let second = first.share(Arc::clone(&other));
            let pending = |engine: &Engine| queries.clone().into_iter().map(|query| engine.submit(query)).collect();
            let pending: [Vec<_>; 2] = [pending(&first), pending(&second)];
            for (pending, expected) in pending.into_iter().zip(&expected) {
                let answers = pending.into_iter().map(|pending| hits(pending.unwrap().wait().unwrap()));
                assert_eq!(answers.collect::<Vec<_>>(), *expected, "{fault:?} at call {at}");
            }
            failed += first.counters().unwrap().failures.load(Ordering::Relaxed);
        }
        assert!(failed > 20, "{failed} failures of {fault:?}");
    }
}

#[test]
#[should_panic(expected = "options are set before an engine is shared")]
fn options_are_set_before_an_engine_is_shared() {
    let (_folder, index) = index(10, [1, 2, 3, 4]);
    let engine = Engine::new(Arc::clone(&index));
    let _shared = engine.share(index);
    _ = engine.threads(2);
}

#[test]
fn a_device_that_does_not_open_costs_no_index_its_answers() {
    let ((_first, one), (_second, other)) = (index(500, [2, 3, 5, 7]), index(40, [7, 2, 3, 11]));
    let failure = || GpuError::Failed { at: "opening a device", reason: "on command".to_owned() };
    let options = GpuOptions::new(Box::new(move || Err(failure()))).pause(Duration::ZERO);
    let first = Engine::new(Arc::clone(&one)).policy(Policy::Gpu).gpu(options);
    let second = first.share(Arc::clone(&other));
    let queries = queries(20);
    for (engine, index) in [(&first, &one), (&second, &other)] {
        let answers = queries.iter().map(|query| hits(engine.search(query).unwrap()));
        assert_eq!(answers.collect::<Vec<_>>(), expected(index, &queries));
        assert!(engine.connect().is_err());
    }
}
