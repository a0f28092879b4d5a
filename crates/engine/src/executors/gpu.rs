//! The graphics processor: a batch of plans in one upload, a launch for its ANDs and one for its ORs, one download.
//!
//! Batches alternate between two streams, so that the host makes the rows of one while the device answers another.
//! Whatever fails, the processor answers, and the device is opened again later.

use super::batch::{Batch, cost};
use super::resident::{PADDING, Resident};
use super::{Cpu, Executor, ExecutorError};
use crate::answer::{Answer, Place, Step, Work};
use crate::kernels::{self, AloneRows, BatchArguments, DenseRow, PartRow, QueryRow, SparseRow, THREADS};
use crate::plan::Plan;
use crate::query::Algorithm;
use crate::score::ScoreModel;
use crate::topk::hit;
use lanner_gpu::cuda::Cuda;
use lanner_gpu::device::{Address, Command, Device, Shape, Stream};
use lanner_gpu::error::GpuError;
use lanner_gpu::kernel::{Argument, TypedKernel};
use lanner_gpu::memory::{Gpu, Memory, Pinned};
use lanner_gpu::simulator::Simulator;
use lanner_index::codec::CodecName;
use lanner_index::format::IndexError;
use lanner_index::open::Index;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Plans that are answered together, at most.
const BATCH: usize = 1024;
/// Bytes that buffers of batches may take before lists do.
const RESERVE: u64 = 64 << 20;
/// A device that failed is opened again after this, then after twice as long, up to `LONGEST_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Buffers grow in steps, so that few batches make them grow.
const STEP: usize = 64 << 10;

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
    sends_lists: bool,
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

/// An open device with what lies on it.
struct Session {
    gpu: Gpu,
    resident: Resident,
    place: Place,
    lanes: [Lane; 2],
}

/// Buffers of the batch of one stream. They grow with what comes and stay.
struct Lane {
    stream: Stream,
    /// Rows, and lists that are sent: on the host, and on the device.
    rows: Buffers,
    /// What kernels count with, zeros before a launch, then what parts leave.
    scratch: Option<Memory>,
    /// What a query alone counts with.
    zeros: Option<Memory>,
    /// Counts and keys of the answers.
    answers: Buffers,
    /// The plans that the stream is answering.
    running: Option<Running>,
}

#[derive(Default)]
struct Buffers {
    host: Option<Pinned>,
    device: Option<Memory>,
}

/// A batch on its way.
struct Running {
    numbers: Vec<usize>,
    batch: Batch,
    ks: Vec<usize>,
    uploaded: u64,
    /// What was launched.
    steps: Vec<&'static str>,
    start: Instant,
}

impl GpuExecutor {
    /// Answers plans for an index on the device that `open` opens, when the first plan comes.
    pub fn new(index: Arc<Index>, open: Open) -> GpuExecutor {
        let cpu = Cpu::new(Arc::clone(&index), 1);
        let (again, pause, first_pause) = (Instant::now(), FIRST_PAUSE, FIRST_PAUSE);
        let state = Mutex::new(State { session: None, again, pause, first_pause });
        let (report, counters): (Report, _) = (Box::new(|_| {}), Counters::default());
        GpuExecutor { index, cpu, open, memory: None, sends_lists: false, report, state, counters }
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
        GpuExecutor { sends_lists: true, ..self }
    }

    /// Answers on so many threads of the processor what the device cannot answer.
    pub fn threads(self, threads: usize) -> GpuExecutor {
        GpuExecutor { cpu: Cpu::new(Arc::clone(&self.index), threads), ..self }
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
        let is_read = |codec: CodecName| codec != CodecName::Qmx;
        is_read(codecs.documents)
            && is_read(codecs.weights)
            && matches!(plan.score, ScoreModel::Bm25 | ScoreModel::Impact)
            && plan.filter.is_none()
            && plan.stages.iter().all(|stage| stage.algorithm != Algorithm::ScoreAtATime)
    }

    fn session(&self) -> Result<Session, GpuError> {
        let device = (self.open)()?;
        let limits = device.limits().clone();
        let place = if limits.is_simulated { Place::Simulator } else { Place::Gpu };
        let gpu = Gpu::new(device, self.memory.unwrap_or(limits.memory).min(limits.memory));
        let reserve = if self.sends_lists { u64::MAX } else { RESERVE.min(gpu.left() / 4) };
        let resident = Resident::upload(&gpu, &self.index, reserve)?;
        self.counters.opened.fetch_add(1, Ordering::Relaxed);
        Ok(Session { gpu, resident, place, lanes: [0, 1].map(|number| Lane::new(Stream(number))) })
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
        let Some(session) = &mut state.session else {
            return Ok(());
        };
        match session.answer(&self.index, plans, answers) {
            Ok(()) => {
                state.pause = state.first_pause;
                Ok(())
            }
            Err(Failure::Index(error)) => {
                session.forget();
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

/// Why a batch was not answered.
enum Failure {
    Index(IndexError),
    Gpu(GpuError),
}

impl From<IndexError> for Failure {
    fn from(error: IndexError) -> Failure {
        Failure::Index(error)
    }
}

impl From<GpuError> for Failure {
    fn from(error: GpuError) -> Failure {
        Failure::Gpu(error)
    }
}

impl Session {
    /// Answers plans, a batch after the other. Plans that do not fit into the budget stay without an answer.
    fn answer(&mut self, index: &Index, plans: &[Plan], answers: &mut [Option<Answer>]) -> Result<(), Failure> {
        let mut waiting = Vec::new();
        for stream in [lanner_index::open::Stream::Impact, lanner_index::open::Stream::Frequency] {
            let numbers: Vec<usize> = (0..plans.len())
                .filter(|&number| plans[number].score.stream() == stream && needs_work(&plans[number]))
                .collect();
            waiting.extend(numbers.chunks(BATCH).rev().map(<[usize]>::to_vec));
        }
        for (plan, answer) in plans.iter().zip(answers.iter_mut()).filter(|(plan, _)| !needs_work(plan)) {
            debug_assert!(plan.k == 0 || plan.range.is_empty() || plan.stages.is_empty());
            *answer = Some(Answer { exact: true, ..Answer::default() });
        }
        let mut turn = 0;
        while let Some(numbers) = waiting.pop() {
            self.collect(turn, answers)?;
            match self.start(turn, index, plans, &numbers) {
                Ok(()) => turn = 1 - turn,
                Err(Failure::Gpu(GpuError::OverBudget { .. } | GpuError::OutOfMemory { .. })) => {
                    // Perhaps the other batch has what this one lacks; else there must be less of it.
                    self.collect(1 - turn, answers)?;
                    self.release();
                    match self.start(turn, index, plans, &numbers) {
                        Ok(()) => turn = 1 - turn,
                        Err(Failure::Gpu(GpuError::OverBudget { .. } | GpuError::OutOfMemory { .. })) => {
                            let (some, others) = numbers.split_at(numbers.len() / 2);
                            if !some.is_empty() {
                                waiting.extend([others.to_vec(), some.to_vec()]);
                            }
                        }
                        Err(failure) => return Err(failure),
                    }
                }
                Err(failure) => return Err(failure),
            }
        }
        self.collect(turn, answers)?;
        Ok(self.collect(1 - turn, answers)?)
    }

    /// Gives the buffers of both streams back, which have nothing to do.
    fn release(&mut self) {
        self.lanes = [0, 1].map(|number| Lane::new(Stream(number)));
    }

    /// Forgets batches under way.
    fn forget(&mut self) {
        for lane in &mut self.lanes {
            lane.running = None;
            // Buffers must stay until the stream has left them, whatever it says.
            _ = self.gpu.wait(lane.stream);
        }
    }

    /// Sends a batch; its stream has nothing to do where that fails.
    fn start(&mut self, turn: usize, index: &Index, plans: &[Plan], numbers: &[usize]) -> Result<(), Failure> {
        let started = self.submit(turn, index, plans, numbers);
        if started.is_err() {
            self.gpu.wait(self.lanes[turn].stream)?;
        }
        started
    }

    /// Puts the commands of a batch into a stream.
    fn submit(&mut self, turn: usize, index: &Index, plans: &[Plan], numbers: &[usize]) -> Result<(), Failure> {
        let chosen: Vec<&Plan> = numbers.iter().map(|&number| &plans[number]).collect();
        let processors = self.gpu.limits().multiprocessors;
        let mut batch = Batch::new(index, &self.resident, &chosen, processors)?;
        let layout = Layout::new(&batch);
        let codecs = index.segment().list_context().codecs;
        let mut arguments = BatchArguments {
            length_codes: self.resident.length_codes(),
            norms: self.resident.norms(),
            documents_codec: codecs.documents as u32,
            weights_codec: codecs.weights as u32,
            shared_keys: batch.shared_keys,
            ..BatchArguments::default()
        };
        let lane = &mut self.lanes[turn];
        let alone = batch.alone();
        match alone {
            Some(rows) => lane.prepare_alone(&self.gpu, &layout, rows, &mut arguments)?,
            None => lane.prepare(&self.gpu, &layout, &mut batch, &mut arguments)?,
        }
        let is_bitpack = [codecs.documents, codecs.weights].iter().all(|&codec| codec == CodecName::Bitpack);
        let launches = launches(&batch, is_bitpack, chosen[0].score.stream(), arguments, &layout);
        let stream = lane.stream;
        for launch in &launches {
            let shape = Shape { grid: launch.grid, block: THREADS, shared: launch.shared };
            self.gpu.launch(stream, launch.kernel, shape, &launch.arguments)?;
            if alone.is_none() {
                self.gpu.submit(stream, Command::Mark)?;
            }
        }
        if alone.is_none() {
            let (from, to) = (lane.answers.address(), lane.answers.host_address());
            self.gpu.submit(stream, Command::Copy { from, to, bytes: layout.answers_bytes })?;
        }
        let steps = launches.iter().map(|launch| launch.name).collect();
        let ks = chosen.iter().map(|plan| plan.k).collect();
        let uploaded = if alone.is_some() { size_of::<BatchArguments>() } else { layout.rows_bytes } as u64;
        lane.running = Some(Running { numbers: numbers.to_vec(), batch, ks, uploaded, steps, start: Instant::now() });
        Ok(())
    }

    /// Waits for the batch of a stream, if there is one, and reads its answers.
    fn collect(&mut self, turn: usize, answers: &mut [Option<Answer>]) -> Result<(), GpuError> {
        let lane = &mut self.lanes[turn];
        let Some(running) = lane.running.take() else {
            return Ok(());
        };
        let durations = self.gpu.wait(lane.stream)?;
        // A query alone is not slowed down by marks: the host's clock has to do.
        let durations = if durations.is_empty() { vec![running.start.elapsed()] } else { durations };
        let steps = running.steps.iter().zip(durations);
        let steps: Vec<Step> = steps.map(|(&name, duration)| Step { name, place: self.place, duration }).collect();
        let bytes = lane.answers.bytes();
        let layout = Layout::new(&running.batch);
        for (place, &number) in running.numbers.iter().enumerate() {
            let stages = running.batch.stages[place].clone();
            let count_of = |query: usize| u32_at(bytes, 4 * query) as usize;
            let is_full =
                |&query: &usize| count_of(query) >= running.ks[place].min(running.batch.queries[query].k as usize);
            let query = stages.clone().find(is_full).unwrap_or(stages.end - 1);
            let first = layout.answers_keys + 8 * running.batch.queries[query].answer as usize;
            let keys = bytes[first..first + 8 * count_of(query)].as_chunks::<8>().0;
            let hits = keys.iter().map(|key| hit(u64::from_le_bytes(*key))).collect();
            let bytes_uploaded = running.uploaded / running.numbers.len() as u64;
            let work = Work { bytes_uploaded, ..Work::default() };
            let mut answer = Answer { hits, exact: true, work, ..Answer::default() };
            answer.trace.steps.clone_from(&steps);
            answers[number] = Some(answer);
        }
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.forget();
    }
}

/// Whether a plan can have hits at all.
fn needs_work(plan: &Plan) -> bool {
    plan.k > 0 && !plan.range.is_empty() && !plan.stages.is_empty()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_le_bytes(*word))
}

impl Lane {
    fn new(stream: Stream) -> Lane {
        let (rows, answers) = (Buffers::default(), Buffers::default());
        Lane { stream, rows, scratch: None, zeros: None, answers, running: None }
    }

    /// Uploads the rows of a batch, and says in the arguments where everything lies.
    fn prepare(
        &mut self,
        gpu: &Gpu,
        layout: &Layout,
        batch: &mut Batch,
        arguments: &mut BatchArguments,
    ) -> Result<(), GpuError> {
        let (rows, stream) = (&mut self.rows, self.stream);
        rows.grow(gpu, layout.rows_bytes)?;
        self.answers.grow(gpu, layout.answers_bytes)?;
        grow(gpu, &mut self.scratch, layout.scratch_bytes)?;
        let scratch = self.scratch.as_ref().map_or(Address::NULL, Memory::address);
        batch.place_sent(rows.address().plus(layout.sent));
        layout.write(batch, rows.bytes());
        layout.place(rows.address(), scratch, self.answers.address(), arguments);
        gpu.submit(
            stream,
            Command::Copy { from: rows.host_address(), to: rows.address(), bytes: layout.rows_bytes },
        )?;
        gpu.submit(stream, Command::Clear { at: scratch, bytes: layout.counts })?;
        gpu.submit(stream, Command::Mark)
    }

    /// The same for a query alone: its rows travel with the launch, and the kernel writes its answer to the host. It
    /// leaves the zeros that it counts with as it found them.
    fn prepare_alone(
        &mut self,
        gpu: &Gpu,
        layout: &Layout,
        rows: AloneRows,
        arguments: &mut BatchArguments,
    ) -> Result<(), GpuError> {
        self.answers.grow_host(gpu, layout.answers_bytes)?;
        grow(gpu, &mut self.scratch, layout.scratch_bytes)?;
        if self.zeros.is_none() {
            let zeros = gpu.allocate(STEP)?;
            gpu.submit(self.stream, Command::Clear { at: zeros.address(), bytes: STEP })?;
            self.zeros = Some(zeros);
        }
        let address = |memory: &Option<Memory>| memory.as_ref().map_or(Address::NULL, Memory::address);
        let (scratch, zeros) = (address(&self.scratch), address(&self.zeros));
        layout.place(Address::NULL, scratch, self.answers.host_address(), arguments);
        *arguments = BatchArguments { floors: zeros, done: zeros.plus(8), is_alone: 1, alone: rows, ..*arguments };
        Ok(())
    }
}

impl Buffers {
    /// Makes both sides hold so many bytes.
    fn grow(&mut self, gpu: &Gpu, bytes: usize) -> Result<(), GpuError> {
        grow(gpu, &mut self.device, bytes)?;
        self.grow_host(gpu, bytes)
    }

    /// Makes the host's side hold so many bytes.
    fn grow_host(&mut self, gpu: &Gpu, bytes: usize) -> Result<(), GpuError> {
        if self.host.as_ref().is_none_or(|host| host.len() < bytes) {
            self.host = None;
            self.host = Some(gpu.pin(bytes.next_multiple_of(STEP))?);
        }
        Ok(())
    }

    fn address(&self) -> Address {
        self.device.as_ref().map_or(Address::NULL, Memory::address)
    }

    fn host_address(&self) -> Address {
        self.host.as_ref().map_or(Address::NULL, Pinned::address)
    }

    fn bytes(&mut self) -> &mut [u8] {
        self.host.as_deref_mut().unwrap_or(&mut [])
    }
}

/// Makes memory hold so many bytes; what it held is lost.
fn grow(gpu: &Gpu, memory: &mut Option<Memory>, bytes: usize) -> Result<(), GpuError> {
    if memory.as_ref().is_none_or(|memory| memory.bytes() < bytes) {
        *memory = None;
        *memory = Some(gpu.allocate(bytes.next_multiple_of(STEP))?);
    }
    Ok(())
}

/// Where everything lies in the buffers of a batch, in bytes.
struct Layout {
    sparse: usize,
    dense: usize,
    and_parts: usize,
    or_parts: usize,
    sent: usize,
    rows_bytes: usize,
    done: usize,
    counts: usize,
    arena: usize,
    scratch_bytes: usize,
    answers_keys: usize,
    answers_bytes: usize,
}

impl Layout {
    fn new(batch: &Batch) -> Layout {
        let queries = batch.queries.len();
        let parts = batch.and_parts.len() + batch.or_parts.len();
        let sparse = queries * size_of::<QueryRow>();
        let dense = sparse + batch.sparse.len() * size_of::<SparseRow>();
        let and_parts = dense + batch.dense.len() * size_of::<DenseRow>();
        let or_parts = and_parts + batch.and_parts.len() * size_of::<PartRow>();
        let sent = (or_parts + batch.or_parts.len() * size_of::<PartRow>()).next_multiple_of(256);
        let padding = if batch.sent.is_empty() { 0 } else { PADDING };
        let (done, counts) = (8 * queries, 12 * queries);
        let arena = (counts + 4 * parts).next_multiple_of(256);
        let answers_keys = (4 * queries).next_multiple_of(8);
        Layout {
            sparse,
            dense,
            and_parts,
            or_parts,
            sent,
            rows_bytes: sent + batch.sent.len() + padding,
            done,
            counts,
            arena,
            scratch_bytes: arena + 8 * batch.arena_keys as usize,
            answers_keys,
            answers_bytes: answers_keys + 8 * batch.answer_keys,
        }
    }

    fn write(&self, batch: &Batch, bytes: &mut [u8]) {
        fn put<R: Argument>(bytes: &mut [u8], at: usize, rows: &[R]) {
            let places = bytes[at..].chunks_exact_mut(size_of::<R>());
            places.zip(rows).for_each(|(place, row)| place.copy_from_slice(row.bytes()));
        }
        put(bytes, 0, &batch.queries);
        put(bytes, self.sparse, &batch.sparse);
        put(bytes, self.dense, &batch.dense);
        put(bytes, self.and_parts, &batch.and_parts);
        put(bytes, self.or_parts, &batch.or_parts);
        bytes[self.sent..][..batch.sent.len()].copy_from_slice(&batch.sent);
        bytes[self.sent + batch.sent.len()..self.rows_bytes].fill(0);
    }

    /// Says in the arguments where everything lies.
    fn place(&self, rows: Address, scratch: Address, answers: Address, arguments: &mut BatchArguments) {
        *arguments = BatchArguments {
            queries: rows,
            sparse: rows.plus(self.sparse),
            dense: rows.plus(self.dense),
            parts: rows,
            floors: scratch,
            done: scratch.plus(self.done),
            counts: scratch.plus(self.counts),
            arena: scratch.plus(self.arena),
            answers: answers.plus(self.answers_keys),
            answer_counts: answers,
            ..*arguments
        };
    }
}

/// A launch over the parts of one operation.
struct Launch {
    name: &'static str,
    kernel: &'static TypedKernel<BatchArguments>,
    grid: u32,
    shared: usize,
    arguments: BatchArguments,
}

/// The launches that a batch needs: its ANDs first, since an OR may depend on one.
fn launches(
    batch: &Batch,
    is_bitpack: bool,
    stream: lanner_index::open::Stream,
    arguments: BatchArguments,
    layout: &Layout,
) -> Vec<Launch> {
    use lanner_index::open::Stream::{Frequency, Impact};
    let (conjunction, scatter) = match (is_bitpack, stream) {
        (true, Frequency) => (&kernels::CONJUNCTION_BITPACK_FREQUENCY, &kernels::SCATTER_BITPACK_FREQUENCY),
        (true, Impact) => (&kernels::CONJUNCTION_BITPACK_IMPACT, &kernels::SCATTER_BITPACK_IMPACT),
        (false, Frequency) => (&kernels::CONJUNCTION_ANY_FREQUENCY, &kernels::SCATTER_ANY_FREQUENCY),
        (false, Impact) => (&kernels::CONJUNCTION_ANY_IMPACT, &kernels::SCATTER_ANY_IMPACT),
    };
    let (ands, ors) = (batch.and_parts.len(), batch.or_parts.len());
    let keys = 8 * batch.shared_keys as usize;
    let lists = kernels::SCATTER_SHARED_A_LIST * batch.most_sparse;
    // The rows of both lie in one buffer; each launch sees its own from the first on.
    let rows = arguments.parts;
    let all = [
        Launch {
            name: "conjunction",
            kernel: conjunction,
            grid: ands as u32,
            shared: kernels::CONJUNCTION_SHARED + keys,
            arguments: BatchArguments { parts: rows.plus(layout.and_parts), ..arguments },
        },
        Launch {
            name: "scatter",
            kernel: scatter,
            grid: ors as u32,
            shared: kernels::SCATTER_SHARED + keys + lists,
            arguments: BatchArguments {
                parts: rows.plus(layout.or_parts),
                counts: arguments.counts.plus(4 * ands),
                ..arguments
            },
        },
    ];
    all.into_iter().filter(|launch| launch.grid > 0).collect()
}
