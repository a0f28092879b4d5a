//! The graphics processor: `session.rs` answers batches of plans on it. Whatever fails, the processor answers, and the
//! device is opened again later.

use super::{Cpu, Executor, ExecutorError};
use crate::device::batch::cost;
use crate::device::session::{Failure, Session, SmallBatches, Usage};
use crate::query::Algorithm;
use crate::query::answer::Answer;
use crate::query::plan::Plan;
use crate::query::score::ScoreModel;
use lanner_gpu::cuda::Cuda;
use lanner_gpu::device::Device;
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::Gpu;
use lanner_gpu::simulator::Simulator;
use lanner_index::format::IndexError;
use lanner_index::open::Index;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A device that failed is opened again after this, then after twice as long, up to `LONGEST_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Bytes of lists that are sent with a batch, unless told otherwise.
const SENT: usize = 512 << 20;
/// From which a simulator draws the order of threads, where nobody tries several.
const SEED: u64 = 1;

/// Opens a device, again after it was lost.
pub type Open = Box<dyn Fn() -> Result<Arc<dyn Device>, GpuError> + Send + Sync>;
/// Told of what went wrong, in one line.
pub type Report = Box<dyn Fn(&str) + Send + Sync>;

/// Answers plans on a device; those that it cannot answer, or fails to, on the processor.
pub struct GpuExecutor {
    index: Arc<Index>,
    cpu: Cpu,
    open: Open,
    memory: Option<u64>,
    usage: Usage,
    report: Report,
    state: Mutex<State>,
    counters: Counters,
}

/// What happened so far.
#[derive(Debug, Default)]
pub struct Counters {
    /// Plans that the device answered.
    pub answered: AtomicU64,
    /// Plans that the processor answered because the device does not know their kind.
    pub unsupported: AtomicU64,
    /// Plans that the processor answered because the device failed, or was given too little memory.
    pub fallen_back: AtomicU64,
    /// Times that the device failed.
    pub failures: AtomicU64,
    /// Times that the device was opened.
    pub opened: AtomicU64,
}

/// What the executor has of the device.
struct State {
    /// What lies on it; `None` after it failed, and before it is opened.
    session: Option<Session>,
    /// When it may be opened again, and how long to wait if that fails.
    again: Instant,
    pause: Duration,
    first_pause: Duration,
}

impl GpuExecutor {
    /// Answers plans for an index on the device that `open` opens, when the first plan comes.
    pub fn new(index: Arc<Index>, open: Open) -> GpuExecutor {
        let cpu = Cpu::new(Arc::clone(&index), 1);
        let (again, pause, first_pause) = (Instant::now(), FIRST_PAUSE, FIRST_PAUSE);
        let state = Mutex::new(State { session: None, again, pause, first_pause });
        let (report, counters): (Report, _) = (Box::new(|_| {}), Counters::default());
        let usage = Usage { sends_lists: false, small_batches: SmallBatches::default(), threads: 1, sent: SENT };
        GpuExecutor { index, cpu, open, memory: None, usage, report, state, counters }
    }

    /// Answers plans for an index on the first device of NVIDIA's driver.
    pub fn on_driver(index: Arc<Index>) -> GpuExecutor {
        GpuExecutor::new(index, Box::new(|| Ok(Arc::new(Cuda::open(0)?))))
    }

    /// Answers plans for an index on the simulator, which is for tests and for learning; `None` in a build without it.
    pub fn on_simulator(index: Arc<Index>) -> Option<GpuExecutor> {
        let open: Open = Box::new(|| Ok(Arc::new(Simulator::new(SEED))));
        cfg!(simulator).then(|| GpuExecutor::new(index, open))
    }

    /// Takes at most so many bytes of the device's memory; all that it has, unless told.
    pub fn memory(self, bytes: u64) -> GpuExecutor {
        GpuExecutor { memory: Some(bytes), ..self }
    }

    /// Sends the lists of each batch with it, as if none had room on the device.
    pub fn send_lists(self) -> GpuExecutor {
        GpuExecutor { usage: Usage { sends_lists: true, ..self.usage }, ..self }
    }

    /// Sends lists of up to so many bytes with a batch, unless one plan needs more, and pins twice as many of the host's
    /// memory for it; 512 MiB, unless told.
    pub fn send_at_most(self, bytes: usize) -> GpuExecutor {
        GpuExecutor { usage: Usage { sent: bytes, ..self.usage }, ..self }
    }

    /// Sends the commands of small batches in another way than the usual one, for measurements.
    pub fn small_batches(self, small_batches: SmallBatches) -> GpuExecutor {
        GpuExecutor { usage: Usage { small_batches, ..self.usage }, ..self }
    }

    /// Answers on so many threads of the processor what the device cannot answer, and copies lists that are sent.
    pub fn threads(self, threads: usize) -> GpuExecutor {
        let cpu = Cpu::new(Arc::clone(&self.index), threads);
        GpuExecutor { cpu, usage: Usage { threads, ..self.usage }, ..self }
    }

    /// Tells of failures, one line each.
    pub fn report(self, report: Report) -> GpuExecutor {
        GpuExecutor { report, ..self }
    }

    /// How long to leave a device alone that has failed; twice as long after each further failure.
    pub fn pause(self, pause: Duration) -> GpuExecutor {
        let state = Mutex::new(State { session: None, again: Instant::now(), pause, first_pause: pause });
        GpuExecutor { state, ..self }
    }

    /// What happened so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Opens the device now, and says why it cannot.
    pub fn connect(&self) -> Result<(), GpuError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.session.is_none() {
            state.session = Some(self.session()?);
        }
        Ok(())
    }

    /// Whether a device answers plans of this kind.
    fn supports(&self, plan: &Plan) -> bool {
        let codecs = self.index.segment().list_context().codecs;
        codecs.documents.has_gpu_decoder()
            && codecs.weights.has_gpu_decoder()
            && matches!(plan.score, ScoreModel::Bm25 | ScoreModel::Impact)
            && plan.filter.is_none()
            && plan.stages.iter().all(|stage| stage.algorithm != Algorithm::ScoreAtATime)
    }

    fn session(&self) -> Result<Session, GpuError> {
        let device = (self.open)()?;
        let memory = device.limits().memory;
        let gpu = Gpu::new(device, self.memory.unwrap_or(memory).min(memory));
        let session = Session::open(gpu, &self.index, self.usage)?;
        self.counters.opened.fetch_add(1, Ordering::Relaxed);
        Ok(session)
    }

    /// Answers what the device can; `None` stays for the processor. Whatever fails, there is an answer or a `None`.
    fn run_on_device(&self, plans: &[Plan], answers: &mut [Option<Answer>]) -> Result<(), IndexError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.session.is_none() {
            if Instant::now() < state.again {
                return Ok(());
            }
            match self.session() {
                Ok(session) => state.session = Some(session),
                Err(error) => {
                    self.note_failure(&error, &mut state);
                    return Ok(());
                }
            }
        }
        // Whatever happens, a panic too, a session comes back only with nothing under way.
        let Some(mut session) = state.session.take() else {
            return Ok(());
        };
        match session.answer(&self.index, plans, answers) {
            Ok(()) => {
                if let Some(why) = session.refusal() {
                    (self.report)(&format!("{why}; the CPU answers such queries, the GPU all others"));
                }
                (state.session, state.pause) = (Some(session), state.first_pause);
                Ok(())
            }
            Err(Failure::Index(error)) => {
                session.forget();
                state.session = Some(session);
                Err(error)
            }
            Err(Failure::Gpu(error)) => {
                self.note_failure(&error, &mut state);
                Ok(())
            }
        }
    }

    /// Gives the device up for a while.
    fn note_failure(&self, error: &GpuError, state: &mut State) {
        state.session = None;
        state.again = Instant::now() + state.pause;
        self.counters.failures.fetch_add(1, Ordering::Relaxed);
        let pause = state.pause;
        (self.report)(&format!("{error}; the CPU answers, and the GPU is tried again in {pause:?}"));
        state.pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

impl Executor for GpuExecutor {
    fn name(&self) -> &str {
        "gpu"
    }

    /// A coarse figure that orders plans, from an H200: a launch with its copies, and the work.
    fn estimate(&self, plan: &Plan) -> Option<Duration> {
        self.supports(plan).then(|| Duration::from_nanos(20_000 + cost(plan) / 100))
    }

    fn run(&self, plans: &[Plan]) -> Result<Vec<Answer>, ExecutorError> {
        let mut answers: Vec<Option<Answer>> = plans.iter().map(|_| None).collect();
        let supported: Vec<bool> = plans.iter().map(|plan| self.supports(plan)).collect();
        let count = |counter: &AtomicU64, number: usize| _ = counter.fetch_add(number as u64, Ordering::Relaxed);
        let is_all = supported.iter().all(|&is_supported| is_supported);
        if is_all {
            self.run_on_device(plans, &mut answers)?;
        } else {
            let (numbers, some): (Vec<usize>, Vec<Plan>) = (0..)
                .zip(plans)
                .filter(|(number, _)| supported[*number])
                .map(|(number, plan)| (number, plan.clone()))
                .unzip();
            let mut found: Vec<Option<Answer>> = some.iter().map(|_| None).collect();
            self.run_on_device(&some, &mut found)?;
            numbers.into_iter().zip(found).for_each(|(number, answer)| answers[number] = answer);
        }
        let left: Vec<usize> = (0..plans.len()).filter(|&number| answers[number].is_none()).collect();
        let unsupported = supported.iter().filter(|&&is_supported| !is_supported).count();
        count(&self.counters.answered, plans.len() - left.len());
        count(&self.counters.unsupported, unsupported);
        count(&self.counters.fallen_back, left.len() - unsupported);
        if !left.is_empty() {
            let plans: Vec<Plan> = left.iter().map(|&number| plans[number].clone()).collect();
            let found = self.cpu.run(&plans)?;
            left.into_iter().zip(found).for_each(|(number, answer)| answers[number] = Some(answer));
        }
        Ok(answers.into_iter().flatten().collect())
    }
}
