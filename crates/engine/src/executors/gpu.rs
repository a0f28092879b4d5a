//! The GPU: a session answers batches of plans on it, and the papers' algorithms run step by step. Whatever fails, the CPU
//! answers, and the device is opened again later.

use super::{Cpu, Executor};
use crate::device::SmallBatches;
use crate::device::queue::{needs_work, runs_in_batches};
use crate::device::session::{Failure, Session, Usage};
use crate::papers::steps::{self, StepScratch};
use crate::query::Algorithm;
use crate::query::answer::{Answer, Scored};
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
/// The default of [`GpuExecutor::upload_limit`].
const UPLOAD_LIMIT: usize = 512 << 20;
/// The seed from which the simulator draws the interleaving of threads.
const SEED: u64 = 1;

/// Opens a device: when the first plan comes, and again after a failure.
pub type Open = Box<dyn Fn() -> Result<Arc<dyn Device>, GpuError> + Send + Sync>;
/// Receives one line about each failure.
pub type Report = Box<dyn Fn(&str) + Send + Sync>;

/// Answers plans on a device, and on the CPU those that the device does not support or fails to answer.
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

/// What an executor has done so far.
#[derive(Debug, Default)]
pub struct Counters {
    /// Plans that the device answered.
    pub answered: AtomicU64,
    /// Plans that the CPU answered because the device does not support them.
    pub unsupported: AtomicU64,
    /// Plans that the CPU answered because the device failed or had too little memory.
    pub fallen_back: AtomicU64,
    /// How often the device failed.
    pub failures: AtomicU64,
    /// How often the device was opened.
    pub opened: AtomicU64,
}

/// The device as the executor sees it.
struct State {
    /// `None` before the device is opened, and after it failed.
    open: Option<OpenDevice>,
    /// When it may be opened again, and how long to wait if that fails.
    again: Instant,
    pause: Duration,
    first_pause: Duration,
}

/// An open device.
struct OpenDevice {
    session: Session,
    /// The buffers of plans that run step by step.
    scratch: StepScratch,
}

impl GpuExecutor {
    /// Answers plans for an index on the device that `open` opens when the first plan comes.
    pub fn new(index: Arc<Index>, open: Open) -> GpuExecutor {
        let cpu = Cpu::new(Arc::clone(&index), 1);
        let (again, pause, first_pause) = (Instant::now(), FIRST_PAUSE, FIRST_PAUSE);
        let state = Mutex::new(State { open: None, again, pause, first_pause });
        let (report, counters): (Report, _) = (Box::new(|_| {}), Counters::default());
        let small_batches = SmallBatches::default();
        let usage = Usage { uploads_lists: false, small_batches, threads: 1, upload_limit: UPLOAD_LIMIT };
        GpuExecutor { index, cpu, open, memory: None, usage, report, state, counters }
    }

    /// Answers plans for an index on the first GPU of NVIDIA's driver.
    pub fn on_driver(index: Arc<Index>) -> GpuExecutor {
        GpuExecutor::new(index, Box::new(|| Ok(Arc::new(Cuda::open(0)?))))
    }

    /// Answers plans for an index on the simulator, which is for tests and learning; `None` in a build without it.
    pub fn on_simulator(index: Arc<Index>) -> Option<GpuExecutor> {
        let open: Open = Box::new(|| Ok(Arc::new(Simulator::new(SEED))));
        cfg!(simulator).then(|| GpuExecutor::new(index, open))
    }

    /// Limits the device memory that is used, in bytes; the default is all of it.
    pub fn memory(self, bytes: u64) -> GpuExecutor {
        GpuExecutor { memory: Some(bytes), ..self }
    }

    /// Uploads the lists of each batch with it, as if none fitted in device memory.
    pub fn upload_lists(self) -> GpuExecutor {
        GpuExecutor { usage: Usage { uploads_lists: true, ..self.usage }, ..self }
    }

    /// Limits the bytes of lists that a batch uploads, unless a single plan needs more. Twice as many bytes of host memory
    /// are pinned. The default is 512 MiB.
    pub fn upload_limit(self, bytes: usize) -> GpuExecutor {
        GpuExecutor { usage: Usage { upload_limit: bytes, ..self.usage }, ..self }
    }

    /// Chooses how the commands of small batches are submitted; for measurements.
    pub fn small_batches(self, small_batches: SmallBatches) -> GpuExecutor {
        GpuExecutor { usage: Usage { small_batches, ..self.usage }, ..self }
    }

    /// Uses this many threads of the CPU for plans that the device does not answer, and for copying lists to upload.
    pub fn threads(self, threads: usize) -> GpuExecutor {
        let cpu = Cpu::new(Arc::clone(&self.index), threads);
        GpuExecutor { cpu, usage: Usage { threads, ..self.usage }, ..self }
    }

    /// Reports failures, one line each.
    pub fn report(self, report: Report) -> GpuExecutor {
        GpuExecutor { report, ..self }
    }

    /// Sets how long to wait before a failed device is opened again; the wait doubles with each further failure.
    pub fn pause(self, pause: Duration) -> GpuExecutor {
        let state = Mutex::new(State { open: None, again: Instant::now(), pause, first_pause: pause });
        GpuExecutor { state, ..self }
    }

    /// What the executor has done so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Opens the device now instead of with the first plan.
    pub fn connect(&self) -> Result<(), GpuError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.open.is_none() {
            state.open = Some(self.open_device()?);
        }
        Ok(())
    }

    /// Whether the device answers plans of this kind.
    fn supports(&self, plan: &Plan) -> bool {
        let codecs = self.index.segment().list_context().codecs;
        codecs.documents.has_gpu_decoder()
            && codecs.weights.has_gpu_decoder()
            && matches!(plan.score, ScoreModel::Bm25 | ScoreModel::Impact)
            && plan.filter.is_none()
            && plan.stages.iter().all(|stage| stage.algorithm != Algorithm::ScoreAtATime)
    }

    fn open_device(&self) -> Result<OpenDevice, GpuError> {
        let device = (self.open)()?;
        let memory = device.properties().memory;
        let gpu = Gpu::new(device, self.memory.unwrap_or(memory).min(memory));
        let session = Session::open(gpu, &self.index, self.usage)?;
        self.counters.opened.fetch_add(1, Ordering::Relaxed);
        Ok(OpenDevice { session, scratch: StepScratch::default() })
    }

    /// Answers the plans that the device can answer; the others stay `None`. A failure of the device is reported, and
    /// is not an error.
    fn run_on_device(&self, plans: &[Plan], answers: &mut [Option<Answer<Scored>>]) -> Result<(), IndexError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Taken out of the state: after a panic the device, with a batch in flight, is not used again.
        let mut device = match state.open.take() {
            Some(device) => device,
            None if Instant::now() < state.again => return Ok(()),
            None => match self.open_device() {
                Ok(device) => device,
                Err(error) => {
                    self.note_failure(&error, &mut state);
                    return Ok(());
                }
            },
        };
        match device.answer(&self.index, plans, answers) {
            Ok(()) => {
                if let Some(why) = device.session.take_refusal() {
                    (self.report)(&format!("{why}; the CPU answers such queries, the GPU all others"));
                }
                (state.open, state.pause) = (Some(device), state.first_pause);
                Ok(())
            }
            Err(Failure::Index(error)) => {
                device.session.forget();
                state.open = Some(device);
                Err(error)
            }
            Err(Failure::Gpu(error)) => {
                self.note_failure(&error, &mut state);
                Ok(())
            }
        }
    }

    /// Reports a failure and does not use the device for a while.
    fn note_failure(&self, error: &GpuError, state: &mut State) {
        state.again = Instant::now() + state.pause;
        self.counters.failures.fetch_add(1, Ordering::Relaxed);
        (self.report)(&format!(
            "{error}; the CPU answers, and later queries may try the GPU again after {:?}",
            state.pause
        ));
        state.pause = (state.pause * 2).min(LONGEST_PAUSE);
    }
}

impl OpenDevice {
    /// Answers plans in batches, then those that run step by step. Plans that do not fit in device memory stay `None`.
    fn answer(&mut self, index: &Index, plans: &[Plan], answers: &mut [Option<Answer<Scored>>]) -> Result<(), Failure> {
        let OpenDevice { session, scratch } = self;
        session.answer(index, plans, answers, &mut || *scratch = StepScratch::default())?;
        for (plan, answer) in plans.iter().zip(answers) {
            if needs_work(plan) && !runs_in_batches(plan) {
                *answer = self.answer_in_steps(index, plan)?;
            }
        }
        Ok(())
    }

    /// Answers a plan step by step. If memory runs out, frees all buffers and tries once more; `None` if that fails
    /// too.
    fn answer_in_steps(&mut self, index: &Index, plan: &Plan) -> Result<Option<Answer<Scored>>, Failure> {
        for is_last in [false, true] {
            match steps::answer(&self.session.context(index), &mut self.scratch, plan) {
                Err(failure) if failure.is_out_of_memory() => {
                    self.session.release()?;
                    self.scratch = StepScratch::default();
                    if is_last {
                        self.session.refuse(failure);
                    }
                }
                answered => return answered.map(Some),
            }
        }
        Ok(None)
    }
}

impl Executor for GpuExecutor {
    fn run(&self, plans: &[Plan]) -> Result<Vec<Answer<Scored>>, IndexError> {
        let mut answers: Vec<Option<Answer<Scored>>> = plans.iter().map(|_| None).collect();
        let (supported, unsupported): (Vec<usize>, Vec<usize>) =
            (0..plans.len()).partition(|&number| self.supports(&plans[number]));
        if unsupported.is_empty() {
            self.run_on_device(plans, &mut answers)?;
        } else {
            let some: Vec<Plan> = supported.iter().map(|&number| plans[number].clone()).collect();
            let mut found: Vec<Option<Answer<Scored>>> = some.iter().map(|_| None).collect();
            self.run_on_device(&some, &mut found)?;
            supported.into_iter().zip(found).for_each(|(number, answer)| answers[number] = answer);
        }
        let left: Vec<usize> = (0..plans.len()).filter(|&number| answers[number].is_none()).collect();
        let count = |counter: &AtomicU64, number: usize| _ = counter.fetch_add(number as u64, Ordering::Relaxed);
        count(&self.counters.answered, plans.len() - left.len());
        count(&self.counters.unsupported, unsupported.len());
        count(&self.counters.fallen_back, left.len() - unsupported.len());
        if !left.is_empty() {
            let plans: Vec<Plan> = left.iter().map(|&number| plans[number].clone()).collect();
            let found = self.cpu.run(&plans)?;
            left.into_iter().zip(found).for_each(|(number, answer)| answers[number] = Some(answer));
        }
        Ok(answers.into_iter().map(|answer| answer.expect("the CPU answers what the device does not")).collect())
    }
}
