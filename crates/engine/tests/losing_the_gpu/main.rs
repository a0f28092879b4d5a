//! Losing the GPU costs speed, not answers: on the simulator, every device call fails in turn, in every way.

mod memory;

use lanner::answer::Place;
use lanner::internals::executors::{Counters, Cpu, Executor, Keep, SmallBatches};
use lanner::internals::query::answer::Scored;
use lanner::internals::query::planner::Planner;
use lanner::{Algorithm, Answer, Engine, GpuOptions, Index, Mode, Plan, Query, ScoreModel};
use lanner_gpu::device::{Address, Allocation, Command, Device, Properties, STREAMS, Side, Stream};
use lanner_gpu::error::GpuError;
use lanner_gpu::faulty::{Fault, Faulty};
use lanner_gpu::simulator::Simulator;
use lanner_index::build::{BuildOptions, Quiet, build};
use lanner_index::codec::{CodecName, Codecs};
use lanner_index::corpus::{Corpus, CorpusOptions};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const FAULTS: [Fault; 3] = [Fault::Once, Fault::Lost, Fault::Late];
/// The number of a call that is never made.
const NEVER: u64 = u64::MAX;
/// A budget so small that a batch of plans with many hits is split and answered in several parts.
const TIGHT_BYTES: u64 = 288 << 10;

const DOCUMENTS: usize = 700;
/// k whose hits fit in shared memory, and one whose hits do not.
const KS: [usize; 3] = [1, 10, DOCUMENTS];

/// A device call that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Allocate(Side),
    Register,
    Launch(Stream),
    Submit(Stream),
    Wait(Stream),
    Ask(Stream),
}

/// Records the calls of a device that fails on command.
#[derive(Debug)]
struct Recorder {
    device: Faulty,
    calls: Mutex<Vec<Call>>,
    /// The call that panics.
    panics_at: Option<usize>,
}

impl Recorder {
    fn new(fault: Fault, at: u64) -> Arc<Recorder> {
        let device = Faulty::new(Arc::new(Simulator::new(at)), fault, at);
        Arc::new(Recorder { device, calls: Mutex::default(), panics_at: None })
    }

    fn panicking(at: usize) -> Arc<Recorder> {
        let device = Faulty::new(Arc::new(Simulator::new(0)), Fault::Once, NEVER);
        Arc::new(Recorder { device, calls: Mutex::default(), panics_at: Some(at) })
    }

    fn note(&self, call: Call) {
        let mut calls = self.calls.lock().unwrap();
        calls.push(call);
        let number = calls.len() - 1;
        drop(calls);
        assert_ne!(self.panics_at, Some(number), "a panic on command");
    }

    fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }
}

impl Device for Recorder {
    fn properties(&self) -> &Properties {
        self.device.properties()
    }

    fn allocate(&self, side: Side, bytes: usize) -> Result<Allocation, GpuError> {
        self.note(Call::Allocate(side));
        self.device.allocate(side, bytes)
    }

    fn free(&self, allocation: Allocation) {
        self.device.free(allocation);
    }

    fn register(&self, host: NonNull<u8>, bytes: usize) -> Result<Address, GpuError> {
        self.note(Call::Register);
        self.device.register(host, bytes)
    }

    fn unregister(&self, host: NonNull<u8>) {
        self.device.unregister(host);
    }

    /// Records each command as a call of its own.
    fn submit(&self, stream: Stream, commands: &[Command<'_>]) -> Result<(), GpuError> {
        commands.iter().try_for_each(|command| {
            self.note(match command {
                Command::Launch { .. } => Call::Launch(stream),
                _ => Call::Submit(stream),
            });
            self.device.submit(stream, std::slice::from_ref(command))
        })
    }

    fn wait(&self, stream: Stream) -> Result<Vec<Duration>, GpuError> {
        self.note(Call::Wait(stream));
        self.device.wait(stream)
    }

    fn is_idle(&self, stream: Stream) -> Result<bool, GpuError> {
        self.note(Call::Ask(stream));
        self.device.is_idle(stream)
    }
}

/// An index, plans over it, and the CPU's answers.
struct Questions {
    _folder: TempDir,
    index: Arc<Index>,
    plans: Vec<Plan>,
    expected: Vec<Vec<Scored>>,
    /// How many plans the first batch has; the second has all of them.
    first: usize,
}

impl Questions {
    fn new(documents: Vec<String>, codecs: Option<CodecName>, queries: &[Query]) -> Questions {
        let folder = tempfile::tempdir().unwrap();
        let named = (0..).zip(documents).map(|(number, text): (u32, _)| (number.to_string(), String::new(), text));
        let corpus = Corpus::from_documents(named.collect::<Vec<_>>(), CorpusOptions::default()).unwrap();
        let codec = |codec| Codecs { documents: codec, weights: codec };
        let options = BuildOptions {
            threads: 1,
            impacts: true,
            impact_ordered: true,
            dense: codecs.is_none(),
            codecs: codecs.map_or_else(Codecs::default, codec),
            ..BuildOptions::default()
        };
        build(folder.path(), corpus, &options, &Quiet).unwrap();
        let index = Arc::new(Index::open(folder.path()).unwrap());
        let plans: Vec<Plan> = queries.iter().map(|query| Planner::new(&index).plan(query).unwrap()).collect();
        let answers = Cpu::new(Arc::clone(&index), 1).run(&plans).unwrap();
        let expected: Vec<Vec<Scored>> = answers.into_iter().map(|answer| answer.hits).collect();
        assert!(expected.iter().filter(|hits| !hits.is_empty()).count() > queries.len() / 2);
        // The first batch is smaller, so that buffers grow in the second.
        let first = plans.len().div_ceil(3);
        Questions { _folder: folder, index, plans, expected, first }
    }

    /// Short, long and dense lists, and plans of every kind that a device answers, with each of these k.
    fn mixed(ks: [usize; 3]) -> Questions {
        let mut queries = Vec::new();
        for (place, words) in ["falcon pairs water", "dawn heron", "water^2 dawn hunt"].into_iter().enumerate() {
            for (number, mode) in [Mode::And, Mode::Or, Mode::AndOr].into_iter().enumerate() {
                let query = Query::new(words).mode(mode).k(ks[(place + number) % 3]);
                queries.extend([ScoreModel::Bm25, ScoreModel::Impact].map(|score| query.clone().score(score)));
            }
        }
        Questions::new(texts(), None, &queries)
    }

    /// Two plans with different score models, so that each is answered as a single query.
    fn alone() -> Questions {
        let query = Query::new("falcon pairs dawn");
        let queries = [ScoreModel::Bm25, ScoreModel::Impact].map(|score| query.clone().score(score));
        Questions::new(texts(), None, &queries)
    }

    /// A few plans, with one launch for each stage.
    fn few() -> Questions {
        let query = |words, mode| Query::new(words).mode(mode);
        let queries = [
            query("falcon pairs water", Mode::Or),
            query("dawn heron", Mode::And),
            // The AND of the first has too few hits, the AND of the second has enough.
            query("dawn heron", Mode::AndOr),
            query("falcon pairs", Mode::AndOr),
            query("water^2 dawn hunt", Mode::Or),
        ];
        Questions::new(texts(), None, &queries)
    }

    /// A term-at-a-time AND that merges, one that searches, and one followed by an OR with accumulators whose top k is
    /// selected on the device; and one plan that is answered in a batch.
    fn in_steps() -> Questions {
        let query = |words, mode, algorithm| Query::new(words).mode(mode).algorithm(algorithm);
        let queries = [
            query("often rare", Mode::And, Algorithm::TermAtATime).score(ScoreModel::Impact),
            query("often dawn", Mode::And, Algorithm::SkipSearch),
            query("dawn falcon", Mode::AndOr, Algorithm::ParallelMergeFind).k(100),
            query("often dawn", Mode::Or, Algorithm::Auto),
        ];
        let some = texts();
        let texts = (0..8 * DOCUMENTS).map(|document| {
            let seldom = [(2, "often "), (9, "rare ")];
            let seldom = seldom.map(|(step, word)| if document.is_multiple_of(step) { word } else { "" });
            format!("{} {}", some[document % DOCUMENTS], seldom.concat())
        });
        Questions::new(texts.collect(), Some(CodecName::EliasFano), &queries)
    }

    /// An engine that opens the devices that `devices` returns for 0, 1, 2, ...
    fn engine(&self, devices: impl Fn(usize) -> Result<Arc<dyn Device>, GpuError> + Send + Sync + 'static) -> Run<'_> {
        let (lines, opened) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
        let (told, times) = (Arc::clone(&lines), Arc::clone(&opened));
        let open = move || {
            let mut times = times.lock().unwrap();
            times.push(Instant::now());
            devices(times.len() - 1)
        };
        let options = GpuOptions::new(Box::new(open))
            .pause(Duration::ZERO)
            .report(Box::new(move |line| told.lock().unwrap().push(line.to_owned())));
        Run { questions: self, options: Mutex::new(Some(options)), engine: OnceLock::new(), lines, opened }
    }
}

/// Documents with words that all of them, many or few have.
fn texts() -> Vec<String> {
    let text = |document: usize| {
        let often = ["falcon ", "pairs "].map(|word| word.repeat(document % 5));
        let seldom = [(3, "water "), (50, "dawn "), (67, "heron ")];
        let seldom = seldom.map(|(step, word)| if document.is_multiple_of(step) { word } else { "" });
        format!("hunt {} {}", often.concat(), seldom.concat())
    };
    (0..DOCUMENTS).map(text).collect()
}

/// An engine with a record of what it reported and opened.
struct Run<'a> {
    questions: &'a Questions,
    /// Until the engine starts.
    options: Mutex<Option<GpuOptions>>,
    /// Started with the first plans.
    engine: OnceLock<Engine>,
    /// The lines that were reported.
    lines: Arc<Mutex<Vec<String>>>,
    /// When each device was opened.
    opened: Arc<Mutex<Vec<Instant>>>,
}

/// The values of the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    answered: usize,
    fallen_back: usize,
    failures: usize,
    opened: usize,
}

impl Run<'_> {
    fn with(self, change: impl FnOnce(GpuOptions) -> GpuOptions) -> Self {
        let options = self.options.into_inner().unwrap().map(change);
        Run { options: Mutex::new(options), ..self }
    }

    fn engine(&self) -> &Engine {
        self.engine.get_or_init(|| {
            let options = self.options.lock().unwrap().take().expect("an engine starts once");
            Engine::new(Arc::clone(&self.questions.index)).gpu(options)
        })
    }

    /// Runs the first `count` plans as one batch, and checks the answers and the counters.
    fn ask(&self, count: usize) -> Vec<Answer<Scored>> {
        let before = self.counts();
        let answers = self.engine().run(&self.questions.plans[..count]).unwrap();
        let hits: Vec<&Vec<Scored>> = answers.iter().map(|answer| &answer.hits).collect();
        assert_eq!(hits, self.questions.expected[..count].iter().collect::<Vec<_>>());
        let after = self.counts();
        assert_eq!(after.answered - before.answered, by_device(&answers));
        assert_eq!(after.fallen_back - before.fallen_back, count - by_device(&answers));
        let count_lines = || {
            let lines = self.lines();
            let count = |end: &str| lines.iter().filter(|line| line.ends_with(end)).count();
            assert!(count(SMALLER) <= self.counts().opened, "one line for all memory that lists did not get");
            (count(REFUSED), lines.len() - count(REFUSED) - count(SMALLER))
        };
        // A failure while lists are loaded may be counted already, and reported in a moment.
        let start = Instant::now();
        while count_lines().1 != self.counts().failures && start.elapsed() < Duration::from_secs(10) {
            std::thread::yield_now();
        }
        let (refusals, failures) = count_lines();
        assert_eq!(self.counts().failures, failures, "one line for each failure");
        assert!(refusals <= self.counts().opened, "one line for all plans that do not fit in device memory");
        answers
    }

    fn counts(&self) -> Counts {
        let Counters { answered, unsupported, fallen_back, failures, opened, .. } = self.engine().counters().unwrap();
        let [answered, unsupported, fallen_back, failures, opened] =
            [answered, unsupported, fallen_back, failures, opened].map(|count| count.load(Ordering::Relaxed) as usize);
        assert_eq!(unsupported, 0);
        Counts { answered, fallen_back, failures, opened }
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    fn times_opened(&self) -> usize {
        self.opened.lock().unwrap().len()
    }
}

/// The end of the line that reports plans that do not fit in device memory.
const REFUSED: &str = "; the CPU answers such queries, the GPU all others";

/// The end of the line that reports that the device had less memory for lists than its budget.
const SMALLER: &str = "; the GPU keeps less of the lists in its memory";

/// How many answers came from a device.
fn by_device(answers: &[Answer<Scored>]) -> usize {
    let is_there = |answer: &&Answer<Scored>| answer.trace.steps.iter().any(|step| step.place == Place::Simulator);
    answers.iter().filter(is_there).count()
}

/// The calls that opening a device, a batch, loading what is left of the lists, and another batch make.
struct Recording {
    calls: Vec<Call>,
    /// Where opening ends.
    opening_end: usize,
    /// Where the first batch has been answered.
    first_end: usize,
    /// How many allocations for lists opening makes, last.
    of_lists: usize,
}

/// How a GPU is used.
type Use = fn(GpuOptions) -> GpuOptions;

/// All plans of a batch in one launch, however few there are.
const TOGETHER: Use = |options| options.small_batches(SmallBatches::Graph);

impl Recording {
    fn new(questions: &Questions, usage: Use) -> Recording {
        let recorded = || {
            let device = Recorder::new(Fault::Once, NEVER);
            let given: Arc<dyn Device> = device.clone();
            (device, questions.engine(move |_| Ok(Arc::clone(&given))).with(usage))
        };
        let (opened, run) = recorded();
        run.engine().connect().unwrap();
        let (device, run) = recorded();
        run.ask(questions.first);
        let first_end = device.calls().len();
        run.engine().connect().unwrap();
        run.ask(questions.plans.len());
        // After the answers, pieces of lists may have been copied.
        run.engine().connect().unwrap();
        let calls = device.calls();
        // Without plans, lists are loaded next; with plans, buffers are allocated.
        let opening_end = opened.calls().iter().zip(&calls).take_while(|(one, other)| one == other).count();
        assert_eq!(device.device.calls(), calls.len() as u64);
        let answered = questions.first + questions.plans.len();
        assert_eq!(run.counts(), Counts { answered, fallen_back: 0, failures: 0, opened: 1 });
        let of_lists = match run.engine().residency().unwrap() {
            // Long and short ones.
            residency if residency.is_whole => 2,
            residency => usize::from(residency.cache.memory_bytes > 0),
        };
        Recording { calls, opening_end, first_end, of_lists }
    }

    /// Whether the worker recovers by itself: after a failed allocation it frees memory and repeats the batch, and lists
    /// that cannot be registered are uploaded.
    fn is_mended(&self, fault: Fault, at: usize) -> bool {
        let is_allocation = |at: usize| matches!(self.calls[at], Call::Allocate(_));
        let can_be_mended = is_allocation(at) || self.calls[at] == Call::Register;
        // Without memory for all lists, pieces of them are cached; without memory for those, the cache is smaller.
        let is_of_lists = (at..self.opening_end).filter(|&at| is_allocation(at)).count() <= self.of_lists;
        fault == Fault::Once && can_be_mended && (at >= self.opening_end || is_of_lists)
    }

    /// Whether the device is known to have failed before it is open: a late fault, with the next wait.
    fn is_found_while_opening(&self, fault: Fault, at: usize) -> bool {
        let opening = &self.calls[at.min(self.opening_end)..self.opening_end];
        match fault {
            Fault::Once | Fault::Lost => !opening.is_empty(),
            Fault::Late => opening.iter().any(|call| matches!(call, Call::Wait(_))),
        }
    }

    /// Whether a call loads lists, beside batches.
    fn is_loading(&self, at: usize) -> bool {
        let of_lists = |stream: Stream| stream.0 == STREAMS - 1;
        at >= self.opening_end
            && match self.calls[at] {
                Call::Register => true,
                // The rows of the copies that come next.
                Call::Allocate(_) => matches!(self.calls.get(at + 1), Some(Call::Launch(stream)) if of_lists(*stream)),
                Call::Launch(stream) | Call::Submit(stream) | Call::Wait(stream) | Call::Ask(stream) => {
                    of_lists(stream)
                }
            }
    }

    /// At how many calls both streams were busy.
    fn overlaps(&self) -> usize {
        let mut under_way = [false; STREAMS];
        let is_overlap = |call: &&Call| {
            match **call {
                Call::Launch(stream) => under_way[stream.0] = true,
                Call::Wait(stream) | Call::Ask(stream) => under_way[stream.0] = false,
                Call::Allocate(_) | Call::Register | Call::Submit(_) => {}
            }
            under_way[..2].iter().all(|&is_under_way| is_under_way)
        };
        self.calls.iter().filter(is_overlap).count()
    }

    fn launches(&self) -> usize {
        self.calls.iter().filter(|call| matches!(call, Call::Launch(_))).count()
    }
}

/// Makes every call fail in turn, in every way. Returns how many batches were answered partly by the GPU, partly by the
/// CPU.
fn walk(questions: &Questions, usage: Use) -> (Recording, usize) {
    let recording = Recording::new(questions, usage);
    assert_eq!(Recording::new(questions, usage).calls, recording.calls, "the same calls each time");
    let mut shared = 0;
    for fault in FAULTS {
        for at in 0..recording.calls.len() {
            shared += fail_at(questions, usage, &recording, fault, at);
        }
        let (device, run) = faulty_run(questions, usage, fault, recording.calls.len());
        run.ask(questions.first);
        run.engine().connect().unwrap();
        run.ask(questions.plans.len());
        assert!(!device.device.has_failed(), "there is no call behind the last");
    }
    (recording, shared)
}

/// An engine whose first device fails at one call; later devices do not fail.
fn faulty_run(questions: &Questions, usage: Use, fault: Fault, at: usize) -> (Arc<Recorder>, Run<'_>) {
    let device = Recorder::new(fault, at as u64);
    let given: Arc<dyn Device> = device.clone();
    let devices = move |number| -> Result<Arc<dyn Device>, GpuError> {
        Ok(if number == 0 { Arc::clone(&given) } else { Recorder::new(Fault::Once, NEVER) })
    };
    (device, questions.engine(devices).with(usage))
}

/// Makes one call fail, and runs further batches.
fn fail_at(questions: &Questions, usage: Use, recording: &Recording, fault: Fault, at: usize) -> usize {
    let what = format!("{fault:?} at call {at}, {:?}", recording.calls[at]);
    let (first, all) = (questions.first, questions.plans.len());
    let (device, run) = faulty_run(questions, usage, fault, at);
    let in_first = by_device(&run.ask(first));
    // A device that failed by now is opened again.
    _ = run.engine().connect();
    let is_early = run.counts().failures > 0;
    let by_device = [in_first, by_device(&run.ask(all))];
    // Connecting fails if copies that were in flight do; then the device is opened again.
    _ = run.engine().connect().or_else(|_| run.engine().connect());
    assert!(device.device.has_failed(), "{what}");
    assert_eq!(device.calls()[..=at], recording.calls[..=at], "{what}");
    let is_mended = recording.is_mended(fault, at);
    let failures = usize::from(!is_mended);
    let is_shared = |given: usize, count: usize| given > 0 && given < count;
    let is_lost = [by_device[0] < first, by_device[1] < all];
    match (at, is_lost) {
        _ if is_mended => assert_eq!(is_lost, [false; 2], "{what}: {by_device:?}"),
        _ if at < recording.opening_end => assert!(by_device[0] == 0 && !is_lost[1], "{what}: {by_device:?}"),
        // Batches in flight are lost with the device; there may be none.
        _ if recording.is_loading(at) => assert!(!is_lost[usize::from(is_early)], "{what}: {by_device:?}"),
        _ if at < recording.first_end => assert_eq!(is_lost, [true, false], "{what}: {by_device:?}"),
        _ => assert_eq!(is_lost, [false, true], "{what}: {by_device:?}"),
    }
    let is_opened_again = failures > 0 && !recording.is_found_while_opening(fault, at);
    let opened = 1 + usize::from(is_opened_again);
    let answered = by_device.iter().sum();
    let fallen_back = first + all - answered;
    assert_eq!(run.counts(), Counts { answered, fallen_back, failures, opened }, "{what}");
    assert_eq!(self::by_device(&run.ask(first)), first, "{what}");
    assert_eq!(run.counts().failures, failures, "{what}");
    assert_eq!(run.times_opened(), 1 + failures, "{what}");
    usize::from(is_shared(by_device[0], first)) + usize::from(is_shared(by_device[1], all))
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn any_call_may_fail_with_lists_on_the_device() {
    let (recording, _) = walk(&Questions::mixed(KS), TOGETHER);
    // The batches of both score models were in flight at once, on one stream each.
    assert!(recording.overlaps() > 0);
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn any_call_may_fail_with_the_time_of_each_kernel_noted() {
    let questions = Questions::mixed(KS);
    let usage: Use = |options| options.small_batches(SmallBatches::TimedCommands);
    let (marked, together) = (walk(&questions, usage).0, Recording::new(&questions, TOGETHER));
    assert!(marked.calls.len() > together.calls.len());
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn any_call_may_fail_with_lists_that_are_uploaded() {
    let (recording, _) = walk(&Questions::mixed(KS), GpuOptions::upload_lists);
    assert!(recording.overlaps() > 0);
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn any_call_may_fail_with_lists_in_host_memory() {
    let (recording, _) = walk(&Questions::mixed(KS), |options| TOGETHER(options.keep(Keep::Nothing)));
    assert!(recording.calls.contains(&Call::Register));
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn any_call_may_fail_while_pieces_of_lists_are_copied_and_evicted() {
    // Memory for a part of the pieces.
    let usage: Use = |options| TOGETHER(options.cached(2 << 10));
    let questions = Questions::mixed(KS);
    let (recording, _) = walk(&questions, usage);
    let copies = Call::Launch(Stream(STREAMS - 1));
    assert!(recording.calls.contains(&copies), "{:?}", recording.calls);
    let run = questions.engine(|_| Ok(Recorder::new(Fault::Once, NEVER))).with(usage);
    // Then the lists of some plans become hotter than the others.
    for (count, rounds) in [(questions.plans.len(), 20), (2, 300)] {
        (0..rounds).for_each(|_| drop(run.ask(count)));
    }
    let cache = run.engine().residency().unwrap().cache;
    assert!(cache.admitted > 10 && cache.evictions > 0, "{cache:?}");
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn any_call_may_fail_while_a_batch_goes_in_several_parts() {
    let (recording, shared) = walk(&Questions::mixed([DOCUMENTS; 3]), |options| TOGETHER(options.memory(TIGHT_BYTES)));
    // Two launches for each part: more than two batches of two models need.
    assert!(recording.launches() > 8, "{} launches", recording.launches());
    // Parts answered before a failure keep their answers.
    assert!(shared > 0);
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn any_call_may_fail_for_single_queries() {
    walk(&Questions::alone(), |options| options);
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn any_call_may_fail_while_few_plans_go_apart() {
    let questions = Questions::few();
    let (recording, shared) = walk(&questions, |options| options);
    // One launch for each plan of both batches, and one for the OR of an AND+OR; two are in flight at once.
    assert_eq!((questions.first, recording.launches()), (2, 2 + 5 + 1));
    assert!(recording.overlaps() > 0);
    // Plans answered before a failure keep their answers.
    assert!(shared > 0);
    // In one batch they take one launch for ANDs and one for ORs.
    assert_eq!(Recording::new(&questions, TOGETHER).launches(), 2 + 2);
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn any_call_may_fail_between_the_steps_of_an_and_and_an_or() {
    let (recording, shared) = walk(&Questions::in_steps(), GpuOptions::upload_lists);
    // One of them selects on the device: it has more keys than the CPU selects from.
    assert!(recording.launches() > 38, "{} launches", recording.launches());
    // Plans answered before a failure keep their answers.
    assert!(shared > 0);
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn threads_that_ask_while_the_device_is_lost_all_get_their_answers() {
    let questions = Questions::mixed(KS);
    let calls = Recording::new(&questions, |options| options).calls.len();
    for fault in FAULTS {
        for at in (0..calls).step_by(calls / 5) {
            let (device, run) = faulty_run(&questions, |options| options, fault, at);
            let asked = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        // Jobs of several threads go together, so that fewer calls are made than were recorded.
                        for round in 0..30 {
                            if round >= 3 && device.device.has_failed() {
                                break;
                            }
                            let answers = run.engine().run(&questions.plans).unwrap();
                            assert!(answers.iter().map(|answer| &answer.hits).eq(&questions.expected));
                            asked.fetch_add(answers.len(), Ordering::Relaxed);
                        }
                    });
                }
            });
            assert!(device.device.has_failed());
            let Counts { answered, fallen_back, failures, .. } = run.counts();
            assert_eq!(answered + fallen_back, asked.into_inner());
            assert_eq!(failures, run.lines().len());
            assert!(failures <= 1, "{failures}");
        }
    }
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn without_a_driver_the_cpu_answers_and_nobody_asks_for_it_again_at_once() {
    let questions = Questions::mixed(KS);
    let run = questions.engine(|_| Err(no_driver())).with(|options| options.pause(Duration::from_secs(3600)));
    for _ in 0..3 {
        run.ask(questions.plans.len());
    }
    let fallen_back = 3 * questions.plans.len();
    assert_eq!(run.counts(), Counts { answered: 0, fallen_back, failures: 1, opened: 0 });
    assert_eq!(run.times_opened(), 1);
    let line = "no GPU driver: libcuda.so is not there; install NVIDIA's driver 580 or newer, or use the \
                CPU; the CPU answers, and later queries may try the GPU again after 3600s";
    assert_eq!(run.lines(), [line]);
}

fn no_driver() -> GpuError {
    GpuError::NoDriver { reason: "libcuda.so is not there".to_owned(), needed: "580" }
}

/// Runs single plans until this number of lines was reported.
fn ask_until(run: &Run<'_>, lines: usize) {
    while run.lines().len() < lines {
        run.ask(1);
    }
}

/// The pauses that the lines name.
fn pauses(lines: &[String]) -> Vec<&str> {
    lines.iter().map(|line| line.rsplit(' ').next().unwrap()).collect()
}

/// A panic on the thread of the device is a failure of the device: the CPU answers, and the device is opened again.
#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn a_panic_in_the_middle_of_a_batch_costs_no_answers() {
    let questions = Questions::mixed(KS);
    let recording = Recording::new(&questions, TOGETHER);
    for at in recording.opening_end..recording.calls.len() {
        let devices = move |number| -> Result<Arc<dyn Device>, GpuError> {
            Ok(if number == 0 { Recorder::panicking(at) } else { Recorder::new(Fault::Once, NEVER) })
        };
        let run = questions.engine(devices).with(TOGETHER);
        for count in [questions.first, questions.plans.len()] {
            let answers = run.engine().run(&questions.plans[..count]).unwrap();
            _ = run.engine().connect();
            assert!(answers.iter().map(|answer| &answer.hits).eq(&questions.expected[..count]), "call {at}");
        }
        for count in [questions.first, questions.plans.len()] {
            assert_eq!(by_device(&run.ask(count)), count, "call {at}");
        }
        assert_eq!((run.counts().failures, run.times_opened()), (1, 2), "call {at}");
        assert!(run.lines()[0].contains("a panic on command"), "{}", run.lines()[0]);
    }
}

/// Neither a device that panics while it is opened, nor a report that panics, ends the thread of the device.
#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn a_panic_while_opening_or_reporting_costs_no_answers() {
    let questions = Questions::mixed(KS);
    let opening_end = Recording::new(&questions, TOGETHER).opening_end;
    for at in 0..opening_end {
        let devices = move |number| -> Result<Arc<dyn Device>, GpuError> {
            Ok(if number < 2 { Recorder::panicking(at) } else { Recorder::new(Fault::Once, NEVER) })
        };
        let run = questions.engine(devices).with(|options| TOGETHER(options.report(Box::new(|line| panic!("{line}")))));
        assert!(run.engine().connect().is_err(), "call {at}");
        for _ in 0..3 {
            let answers = run.engine().run(&questions.plans).unwrap();
            assert!(answers.iter().map(|answer| &answer.hits).eq(&questions.expected), "call {at}");
        }
        assert_eq!((run.counts().failures, run.times_opened()), (2, 3), "call {at}");
    }
}

/// As in a process whose kernel made an illegal access: the driver does not open a device there again.
#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn a_device_that_is_lost_for_good_is_asked_for_after_pauses_that_double() {
    let questions = Questions::mixed(KS);
    let calls = Recording::new(&questions, |options| options).calls.len() as u64;
    let devices = move |number| -> Result<Arc<dyn Device>, GpuError> {
        match number {
            0 => Ok(Recorder::new(Fault::Lost, calls / 2)),
            _ => Err(GpuError::Lost { reason: "an illegal access before".to_owned() }),
        }
    };
    let pause = Duration::from_millis(2);
    let run = questions.engine(devices).with(|options| options.pause(pause));
    run.ask(questions.first);
    run.ask(questions.plans.len());
    ask_until(&run, 6);
    let lines = run.lines();
    assert!(lines[1].contains("an illegal access before"), "{}", lines[1]);
    assert_eq!(pauses(&lines), ["2ms", "4ms", "8ms", "16ms", "32ms", "64ms"]);
    let times = run.opened.lock().unwrap().clone();
    assert_eq!((times.len(), run.counts().opened), (6, 1));
    for (number, pair) in (0..).zip(times.windows(2)) {
        assert!(pair[1] - pair[0] >= pause * 2u32.pow(number), "asked for before the pause had passed");
    }
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn pauses_are_short_again_after_a_batch_that_went_well() {
    let questions = Questions::mixed(KS);
    // Only the third attempt opens a device, which is lost in its second batch.
    let calls = Recording::new(&questions, |options| options).first_end as u64;
    let devices = move |number| -> Result<Arc<dyn Device>, GpuError> {
        match number {
            2 => Ok(Recorder::new(Fault::Lost, calls)),
            _ => Err(no_driver()),
        }
    };
    let run = questions.engine(devices).with(|options| options.pause(Duration::from_millis(1)));
    ask_until(&run, 2);
    while run.counts().opened == 0 {
        run.ask(questions.first);
    }
    ask_until(&run, 4);
    assert_eq!(pauses(&run.lines()), ["1ms", "2ms", "1ms", "2ms"]);
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn a_plan_that_no_device_answers_is_counted_apart() {
    let query = Query::new("falcon water");
    let by_segments = query.clone().algorithm(Algorithm::ScoreAtATime).score(ScoreModel::Impact);
    let questions = Questions::new(texts(), None, &[query.clone(), by_segments, query.k(6)]);
    let run = questions.engine(|_| Ok(Recorder::new(Fault::Once, NEVER)));
    let answers = run.engine().run(&questions.plans).unwrap();
    assert!(answers.iter().map(|answer| &answer.hits).eq(&questions.expected));
    let counters = run.engine().counters().unwrap();
    assert_eq!(counters.unsupported.load(Ordering::Relaxed), 1);
    assert_eq!(counters.answered.load(Ordering::Relaxed), 2);
}
