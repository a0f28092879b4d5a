//! Device memory that is too small: for lists, for a batch, for one plan.

use super::{Call, Counts, KS, Keep, NEVER, Questions, REFUSED, Recorder, Run, SmallBatches, by_device};
use lanner::answer::Work;
use lanner::internals::executors::{CacheReport, Executor};
use lanner::{Algorithm, Mode, Query, ScoreModel};
use lanner_gpu::device::Device;
use lanner_gpu::faulty::Fault;
use lanner_index::codec::CodecName;
use std::sync::Arc;
use std::time::Duration;

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn memory_too_small_for_the_steps_of_a_plan_leaves_it_to_the_cpu_and_no_others() {
    let documents =
        (0..60_000).map(|document: usize| if document.is_multiple_of(500) { "few many" } else { "many" }.to_owned());
    let query = |words, mode, algorithm| Query::new(words).mode(mode).algorithm(algorithm);
    let queries = [
        query("few many", Mode::And, Algorithm::SkipSearch),
        // The accumulators of all documents.
        query("few many", Mode::Or, Algorithm::Accumulators),
        // The whole of the longer list.
        query("few many", Mode::And, Algorithm::MergePath),
        query("few", Mode::And, Algorithm::TermAtATime),
    ];
    let questions = Questions::new(documents.collect(), Some(CodecName::Bitpack), &queries);
    let run = questions.engine(|_| Ok(Recorder::new(Fault::Once, NEVER)));
    let run = run.with(|options| options.memory(640 << 10));
    for round in 1..3 {
        let answers = run.ask(questions.plans.len());
        let is_by_device = answers.iter().map(|answer| by_device(std::slice::from_ref(answer)) == 1);
        assert_eq!(is_by_device.collect::<Vec<_>>(), [true, false, false, true]);
        assert_eq!(run.counts(), Counts { answered: 2 * round, fallen_back: 2 * round, failures: 0, opened: 1 });
        assert_eq!(answers[2].trace.steps[0].name, "conjunction", "the CPU says what it runs");
        assert_refusal(&run);
    }
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn memory_too_small_for_lengths_leaves_everything_to_the_cpu() {
    let questions = Questions::mixed(KS);
    let run = questions.engine(|_| Ok(Recorder::new(Fault::Once, NEVER)));
    let run = run.with(|options| options.memory(8 << 10).pause(Duration::from_secs(3600)));
    for _ in 0..2 {
        run.ask(questions.plans.len());
    }
    let fallen_back = 2 * questions.plans.len();
    assert_eq!(run.counts(), Counts { answered: 0, fallen_back, failures: 1, opened: 0 });
    assert!(run.lines()[0].starts_with("the memory budget of the GPU has "), "{:?}", run.lines());
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn lists_that_do_not_fit_are_read_in_host_memory_or_travel_with_each_batch() {
    let questions = large_and_small();
    // Bytes that travel with the batch, and bytes that kernels read in host memory.
    let moved = |bytes: u64, registered: u64| {
        let run = questions.engine(|_| Ok(Recorder::new(Fault::Once, NEVER)));
        let run = run.with(|options| options.memory(bytes).registered(registered));
        run.engine().connect().unwrap();
        let answers = run.ask(questions.plans.len());
        let answered = questions.plans.len();
        assert_eq!(run.counts(), Counts { answered, fallen_back: 0, failures: 0, opened: 1 });
        let sum = |of: fn(&Work) -> u64| answers.iter().map(|answer| of(&answer.work)).sum::<u64>();
        (sum(|work| work.bytes_uploaded), sum(|work| work.bytes_from_host))
    };
    let (plenty, from_host) = moved(64 << 20, u64::MAX);
    assert!(plenty < 16 << 10 && from_host == 0, "{plenty} and {from_host} bytes");
    let (little, from_host) = moved(700 << 10, u64::MAX);
    assert!(little < 16 << 10 && from_host > LARGE_LIST_BYTES, "{little} and {from_host} bytes");
    let (little, from_host) = moved(700 << 10, 0);
    assert!(little > LARGE_LIST_BYTES && from_host == 0, "{little} and {from_host} bytes");
}

/// However its stages are launched, an AND+OR reports what was read for those that ran.
#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn a_stage_that_does_not_run_reads_nothing() {
    let query = |words, mode| Query::new(words).mode(mode).score(ScoreModel::Bm25);
    let queries = [Mode::And, Mode::Or, Mode::AndOr].map(|mode| query("large small", mode).k(150));
    let questions = Questions::new(large_texts(), Some(CodecName::Raw), &queries);
    for small_batches in [SmallBatches::SingleQueries, SmallBatches::Graph] {
        let run = questions.engine(|_| Ok(Recorder::new(Fault::Once, NEVER)));
        let run = run.with(|options| options.keep(Keep::Nothing).small_batches(small_batches));
        run.engine().connect().unwrap();
        let read = |plan: usize| {
            let answers = run.engine().run(&questions.plans[plan..=plan]).unwrap();
            assert_eq!((&answers[0].hits, by_device(&answers)), (&questions.expected[plan], 1));
            answers[0].work.bytes_from_host
        };
        let [and, or, both] = [0, 1, 2].map(read);
        assert!(and > LARGE_LIST_BYTES && or > LARGE_LIST_BYTES, "{and} and {or}");
        assert!(both.abs_diff(and) <= and / 8, "{both}: the AND has enough hits");
    }
}

/// Two batches fit in memory at once: otherwise all memory would be freed and allocated again for each of them.
#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn uploads_of_two_batches_fit_into_the_memory() {
    let words = ["large", "larger", "largest"];
    let queries = [ScoreModel::Bm25, ScoreModel::Impact]
        .map(|score| words.map(|words| Query::new(words).mode(Mode::Or).score(score)))
        .concat();
    let questions = Questions::new(large_texts(), Some(CodecName::Raw), &queries);
    let device = Recorder::new(Fault::Once, NEVER);
    let given = Arc::clone(&device);
    let run = questions.engine(move |_| Ok(Arc::clone(&given) as Arc<dyn Device>));
    let run = run.with(|options| options.memory(1200 << 10).upload_lists());
    let allocations = || device.calls().iter().filter(|call| matches!(call, Call::Allocate(_))).count();
    run.ask(questions.plans.len());
    let before = allocations();
    let answers = run.ask(questions.plans.len());
    assert!(answers.iter().map(|answer| answer.work.bytes_uploaded).sum::<u64>() > 6 * LARGE_LIST_BYTES);
    assert_eq!((allocations(), by_device(&answers)), (before, questions.plans.len()));
}

/// Questions over lists that are cached, and an engine with little memory beside those.
struct Cached<'a> {
    run: Run<'a>,
    /// The memory of the cache.
    bytes: u64,
}

impl Cached<'_> {
    fn new(questions: &Questions, memory: u64) -> Cached<'_> {
        let run = questions.engine(|_| Ok(Recorder::new(Fault::Once, NEVER)));
        let run = run.with(|options| options.memory(memory).keep(Keep::Pieces).small_batches(SmallBatches::Graph));
        run.engine().connect().unwrap();
        let cached = Cached { run, bytes: 0 };
        // The last plan fits everywhere; its lists become resident.
        (0..4).for_each(|_| assert!(cached.is_by_device(questions.plans.len() - 1)));
        let bytes = cached.report().memory_bytes;
        assert!(bytes > 2 * LARGE_LIST_BYTES && cached.report().resident_bytes > 0);
        Cached { bytes, ..cached }
    }

    /// Asks one plan; returns whether the device answers it.
    fn is_by_device(&self, plan: usize) -> bool {
        let Questions { plans, expected, .. } = self.run.questions;
        let answers = self.run.engine().run(&plans[plan..=plan]).unwrap();
        assert_eq!(answers[0].hits, expected[plan]);
        by_device(&answers) == 1
    }

    fn report(&self) -> CacheReport {
        self.run.engine().residency().unwrap().cache
    }

    /// A plan that fits only without the cache gets its memory, which the cache gets back later.
    fn check_lends_to(&self, plan: usize) {
        let last = self.run.questions.plans.len() - 1;
        assert!(self.is_by_device(plan) && self.is_by_device(last));
        let lent = self.report().memory_bytes;
        assert!(lent < self.bytes, "{lent}");
        assert!(self.is_by_device(plan) && self.is_by_device(last));
        assert_eq!(self.report().memory_bytes, lent, "its buffers are kept");
        (0..256).for_each(|_| assert!(self.is_by_device(last)));
        assert!(self.has_all());
        assert!(self.is_by_device(plan), "and again");
        (0..260).for_each(|_| assert!(self.is_by_device(last)));
        assert!(self.has_all());
    }

    /// Whether the cache has all of its memory, but for what is behind each extent.
    fn has_all(&self) -> bool {
        self.report().memory_bytes + (8 << 10) > self.bytes
    }

    /// A plan that fits nowhere costs the cache nothing.
    fn check_refuses(&self, plan: usize) {
        let before = self.report();
        (0..10).for_each(|_| assert!(!self.is_by_device(plan)));
        assert!(self.is_by_device(self.run.questions.plans.len() - 1));
        let after = self.report();
        assert_eq!((after.memory_bytes, after.evictions), (before.memory_bytes, before.evictions));
        assert!(after.resident_bytes >= before.resident_bytes);
    }
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn the_cache_gives_memory_to_a_plan_that_needs_it_and_gets_it_back() {
    let query = |words, mode| Query::new(words).mode(mode).score(ScoreModel::Bm25);
    let queries = [
        // The keys of both stages.
        query("large larger", Mode::AndOr).k(20_000),
        query("large", Mode::Or).k(20_000),
        query("large", Mode::Or),
    ];
    let questions = Questions::new(large_texts(), Some(CodecName::Raw), &queries);
    let cached = Cached::new(&questions, 1 << 20);
    cached.check_refuses(0);
    cached.check_lends_to(1);
    cached.check_refuses(0);
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn the_cache_gives_memory_to_a_plan_that_runs_step_by_step() {
    let query = |words, algorithm| Query::new(words).mode(Mode::Or).algorithm(algorithm);
    let queries = [query("small", Algorithm::Accumulators), query("large", Algorithm::Auto)];
    let questions = Questions::new(large_texts(), Some(CodecName::Raw), &queries);
    Cached::new(&questions, 600 << 10).check_lends_to(0);
}

/// The least that documents and frequencies of `large` take.
const LARGE_LIST_BYTES: u64 = 128 << 10;

/// Plans over lists that are larger than some budgets, and over a small list.
fn large_and_small() -> Questions {
    let query = |words, mode| Query::new(words).mode(mode).score(ScoreModel::Bm25);
    let queries = [
        query("small", Mode::Or),
        query("large", Mode::Or),
        query("small", Mode::And),
        query("large small", Mode::AndOr),
        query("small^2", Mode::AndOr),
    ];
    Questions::new(large_texts(), Some(CodecName::Raw), &queries)
}

fn large_texts() -> Vec<String> {
    let text = |document: usize| if document.is_multiple_of(100) { "small" } else { "" };
    (0..20_000).map(|document| format!("large larger largest {}", text(document))).collect()
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn memory_too_small_for_one_list_leaves_its_plans_to_the_cpu_and_no_others() {
    let questions = large_and_small();
    let with_registered = |bytes: u64| {
        let run = questions.engine(|_| Ok(Recorder::new(Fault::Once, NEVER)));
        run.with(|options| options.memory(300 << 10).registered(bytes))
    };
    let run = with_registered(u64::MAX);
    run.engine().connect().unwrap();
    assert_eq!(by_device(&run.ask(questions.plans.len())), questions.plans.len(), "it is read in host memory");
    let run = with_registered(0);
    for round in 1..3 {
        let answers = run.ask(questions.plans.len());
        let is_by_device = answers.iter().map(|answer| by_device(std::slice::from_ref(answer)) == 1);
        assert_eq!(is_by_device.collect::<Vec<_>>(), [true, false, true, false, true]);
        assert_eq!(run.counts(), Counts { answered: 3 * round, fallen_back: 2 * round, failures: 0, opened: 1 });
        assert_refusal(&run);
    }
}

/// Checks that one line was reported: some plans do not fit in device memory.
fn assert_refusal(run: &Run<'_>) {
    let lines = run.lines();
    assert!(lines.len() == 1 && lines[0].starts_with("the memory budget of the GPU has "), "{lines:?}");
    assert!(lines[0].ends_with(REFUSED), "{lines:?}");
}
