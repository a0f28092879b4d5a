//! A device with an index on it: a batch of plans in one upload, a launch for its ANDs and one for its ORs, one download.
//! Lists that have no room on the device go before it, slab by slab (`parcel.rs`).
//!
//! Batches alternate between two streams, so that the host makes the rows of one while the device answers another. A plan
//! that comes alone is not uploaded: its rows travel with the launch, and its answer is written to the host. A small batch
//! is started at once, as a graph. Plans that ask for an algorithm of the papers are answered step by step instead
//! (`steps.rs`).

use super::batch::{Batch, is_bitpack};
use super::layout::{Launch, Layout, launches};
use super::resident::Resident;
use super::upload::{self, Parcel};
use crate::algorithms::topk::hit;
use crate::device::kernels::{AloneRows, BatchArguments, NONE, WorkRow};
use crate::papers::steps::{self, Ground, Rooms};
use crate::query::answer::{Answer, Place, Step, Work};
use crate::query::plan::Plan;
use lanner_gpu::device::{Address, Command, Shape, Stream};
use lanner_gpu::error::GpuError;
use lanner_gpu::kernel::Argument;
use lanner_gpu::memory::{Gpu, Memory, Pinned};
use lanner_index::codec::BLOCK;
use lanner_index::format::IndexError;
use lanner_index::open::{Column, Index};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Plans that are answered together, at most.
const BATCH: usize = 1024;
/// A batch of so many plans or fewer is small: what it costs to start it counts.
const SMALL_BATCH: usize = 64;
/// So many launches or fewer are done sooner one by one, each as if it came alone.
const FEW: usize = 12;
/// Bytes that buffers of batches may take before lists do.
const RESERVE: u64 = 64 << 20;
/// Buffers grow in steps, so that few batches make them grow.
const STEP: usize = 64 << 10;

/// How the commands of a small batch reach the device; those of a large one always as [`SmallBatches::Marked`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SmallBatches {
    /// [`SmallBatches::Apart`] if there are few plans, else [`SmallBatches::Together`].
    #[default]
    Auto,
    /// Each plan as if it came alone, two at a time, if their lists lie on the device.
    Apart,
    /// All together, which a driver makes a graph of.
    Together,
    /// One after the other.
    Singly,
    /// One after the other, and the device notes the time of each kernel.
    Marked,
}

/// How a device is used.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Whether lists are sent with each batch, even if they have room on the device.
    pub sends_lists: bool,
    pub small_batches: SmallBatches,
    /// Threads that copy lists that are sent.
    pub threads: usize,
    /// Bytes of lists that are sent with a batch, at most, unless one plan has more: so much of the host is pinned for
    /// each stream.
    pub sent: usize,
}

/// An open device with what lies on it.
pub struct Session {
    gpu: Gpu,
    resident: Resident,
    usage: Usage,
    place: Place,
    lanes: [Lane; 2],
    /// What plans that are answered step by step use.
    rooms: Rooms,
    refusals: Refusals,
}

/// Plans that had no room on the device.
#[derive(Default)]
struct Refusals {
    /// Why, the last time; until somebody asks.
    why: Option<GpuError>,
    /// Whether somebody has asked.
    is_told: bool,
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

/// Memory of both sides.
#[derive(Default)]
pub struct Buffers {
    host: Option<Pinned>,
    device: Option<Memory>,
}

/// What is to be answered at once: plans, or one stage of a plan that comes alone.
#[derive(Clone)]
struct Waiting {
    numbers: Vec<usize>,
    /// The stages of the plans that are asked for.
    stages: Range<usize>,
    /// Of a plan alone: what the stages before have done, in vain.
    before: Answer,
}

/// A batch on its way.
struct Running {
    waiting: Waiting,
    /// Whether the plan, which comes alone, has further stages.
    has_more: bool,
    batch: Batch,
    ks: Vec<usize>,
    uploaded: u64,
    /// Whether this is a query alone, which says itself when its answer is there.
    is_alone: bool,
    /// What was launched.
    steps: Vec<&'static str>,
    start: Instant,
}

impl Running {
    /// What ran, and for how long. Few queries are not slowed down by marks: the host's clock has to do for all of it.
    fn steps_of(&self, durations: Vec<Duration>) -> impl Iterator<Item = (&'static str, Duration)> {
        let (names, durations) = match (&durations[..], &self.steps[..]) {
            ([], &[name]) => (vec![name], vec![self.start.elapsed()]),
            ([], _) => (vec!["batch"], vec![self.start.elapsed()]),
            _ => (self.steps.clone(), durations),
        };
        names.into_iter().zip(durations)
    }

    /// What was done for the stages of a plan.
    fn work_of(&self, stages: Range<usize>, layout: &Layout, answers: &[u8]) -> Work {
        let mut work = Work { bytes_uploaded: self.uploaded / self.waiting.numbers.len() as u64, ..Work::default() };
        for stage in stages {
            let row = layout.answers_work + stage * size_of::<WorkRow>();
            let [blocks_decoded, documents_scored] = [row, row + 4].map(|at| u64::from(u32_at(answers, at)));
            work += Work {
                postings_decoded: (BLOCK as u64 * blocks_decoded).saturating_sub(u64_at(answers, row + 8)),
                blocks_decoded,
                blocks_skipped: self.batch.blocks[stage].saturating_sub(blocks_decoded),
                documents_scored,
                bytes_uploaded: 0,
            };
        }
        work
    }
}

/// Why a batch was not answered.
pub enum Failure {
    /// The index cannot be read.
    Index(IndexError),
    /// The device failed.
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
    /// Puts on the device what stays there: the lists too, if they fit and are not to be sent with each batch.
    pub fn open(gpu: Gpu, index: &Index, usage: Usage) -> Result<Session, GpuError> {
        let place = if gpu.limits().is_simulated { Place::Simulator } else { Place::Gpu };
        let reserve = if usage.sends_lists { u64::MAX } else { RESERVE.min(gpu.left() / 4) };
        let resident = Resident::upload(&gpu, index, reserve)?;
        let lanes = [0, 1].map(|number| Lane::new(Stream(number)));
        // Two batches are to have room at once, with all that they need besides.
        let usage = Usage { sent: usage.sent.min((gpu.left() / 4) as usize), ..usage };
        Ok(Session { gpu, resident, usage, place, lanes, rooms: Rooms::default(), refusals: Refusals::default() })
    }

    /// Answers plans, a batch after the other. Plans that do not fit into the budget stay without an answer.
    pub fn answer(&mut self, index: &Index, plans: &[Plan], answers: &mut [Option<Answer>]) -> Result<(), Failure> {
        let mut waiting = Vec::new();
        for column in [Column::Impact, Column::Frequency] {
            let numbers: Vec<usize> = (0..plans.len())
                .filter(|&number| plans[number].score.column() == column && goes_in_batches(&plans[number]))
                .collect();
            let (size, stages) = if self.go_apart(plans, &numbers) { (1, 0..1) } else { (BATCH, 0..usize::MAX) };
            let batches = numbers.chunks(size).flat_map(|numbers| self.divide(plans, numbers));
            waiting.extend(batches.map(|numbers| {
                let (stages, before) = (stages.clone(), Answer::default());
                Waiting { numbers: numbers.to_vec(), stages, before }
            }));
        }
        // The last is taken first.
        waiting.reverse();
        for (plan, answer) in plans.iter().zip(answers.iter_mut()).filter(|(plan, _)| !needs_work(plan)) {
            debug_assert!(plan.k == 0 || plan.range.is_empty() || plan.stages.is_empty());
            *answer = Some(Answer { exact: true, ..Answer::default() });
        }
        let mut turn = 0;
        loop {
            // The stream that was started first is done first; what is left of its plan comes next.
            waiting.extend(self.collect(turn, answers)?);
            let Some(next) = waiting.pop() else {
                waiting.extend(self.collect(1 - turn, answers)?);
                if waiting.is_empty() {
                    break;
                }
                continue;
            };
            match self.start(turn, index, plans, &next) {
                Ok(()) => turn = 1 - turn,
                Err(Failure::Gpu(GpuError::OverBudget { .. } | GpuError::OutOfMemory { .. })) => {
                    // Perhaps the other batch has what this one lacks; else there must be less of it.
                    waiting.extend(self.collect(1 - turn, answers)?);
                    self.release()?;
                    match self.start(turn, index, plans, &next) {
                        Ok(()) => turn = 1 - turn,
                        Err(Failure::Gpu(why @ (GpuError::OverBudget { .. } | GpuError::OutOfMemory { .. }))) => {
                            let (some, others) = next.numbers.split_at(next.numbers.len() / 2);
                            if some.is_empty() {
                                self.refusals.why = Some(why);
                            } else {
                                let part = |numbers: &[usize]| Waiting { numbers: numbers.to_vec(), ..next.clone() };
                                waiting.extend([part(others), part(some)]);
                            }
                        }
                        Err(failure) => return Err(failure),
                    }
                }
                Err(failure) => return Err(failure),
            }
        }
        self.answer_in_steps(index, plans, answers)
    }

    /// Why a plan stayed without an answer, if one did; once for all plans to come.
    pub fn refusal(&mut self) -> Option<GpuError> {
        let why = self.refusals.why.take().filter(|_| !self.refusals.is_told);
        self.refusals.is_told |= why.is_some();
        why
    }

    /// Whether plans are answered one by one, a stage at a time.
    fn go_apart(&self, plans: &[Plan], numbers: &[usize]) -> bool {
        let most = match self.usage.small_batches {
            SmallBatches::Auto => FEW,
            SmallBatches::Apart => usize::MAX,
            _ => 1,
        };
        let launches: usize = numbers.iter().map(|&number| plans[number].stages.len()).sum();
        numbers.len() <= SMALL_BATCH && launches <= most && self.resident.has_lists()
    }

    /// Divides plans so that none of the batches sends too much.
    fn divide<'a>(&self, plans: &[Plan], numbers: &'a [usize]) -> Vec<&'a [usize]> {
        if self.resident.has_lists() {
            return vec![numbers];
        }
        upload::divide(numbers, self.usage.sent, |number| plans[number].lists.iter().map(|list| list.span))
    }

    /// Answers the plans that ask for it step by step, a plan after the other.
    fn answer_in_steps(
        &mut self,
        index: &Index,
        plans: &[Plan],
        answers: &mut [Option<Answer>],
    ) -> Result<(), Failure> {
        let asks = |(plan, _): &(&Plan, _)| needs_work(plan) && !goes_in_batches(plan);
        for (plan, answer) in plans.iter().zip(answers).filter(asks) {
            // A second time with nothing else in the device's memory.
            for is_again in [false, true] {
                let ground = Ground { gpu: &self.gpu, resident: &self.resident, index, place: self.place };
                match steps::answer(&ground, &mut self.rooms, plan) {
                    Ok(found) => *answer = Some(found),
                    Err(Failure::Gpu(why @ (GpuError::OverBudget { .. } | GpuError::OutOfMemory { .. }))) => {
                        self.release()?;
                        if !is_again {
                            continue;
                        }
                        self.refusals.why = Some(why);
                    }
                    Err(failure) => return Err(failure),
                }
                break;
            }
        }
        Ok(())
    }

    /// Gives all buffers back. No plan is under way, but the kernel of one that was alone may still be leaving.
    fn release(&mut self) -> Result<(), GpuError> {
        self.lanes.iter().try_for_each(|lane| self.gpu.wait(lane.stream).map(|_| ()))?;
        self.lanes = [0, 1].map(|number| Lane::new(Stream(number)));
        self.rooms = Rooms::default();
        Ok(())
    }

    /// Forgets batches under way.
    pub fn forget(&mut self) {
        for lane in &mut self.lanes {
            lane.running = None;
            // Buffers must stay until the stream has left them, whatever it says.
            _ = self.gpu.wait(lane.stream);
        }
    }

    /// Sends a batch; its stream has nothing to do where that fails.
    fn start(&mut self, turn: usize, index: &Index, plans: &[Plan], waiting: &Waiting) -> Result<(), Failure> {
        let started = self.submit(turn, index, plans, waiting);
        if started.is_err() {
            self.gpu.wait(self.lanes[turn].stream)?;
        }
        started
    }

    /// Puts the commands of a batch into a stream.
    fn submit(&mut self, turn: usize, index: &Index, plans: &[Plan], waiting: &Waiting) -> Result<(), Failure> {
        let chosen: Vec<&Plan> = waiting.numbers.iter().map(|&number| &plans[number]).collect();
        let processors = self.gpu.limits().multiprocessors;
        let mut batch = Batch::new(index, &self.resident, &chosen, waiting.stages.clone(), processors)?;
        let layout = Layout::new(&batch);
        let codecs = index.segment().list_context().codecs;
        let mut arguments = BatchArguments {
            length_codes: self.resident.length_codes(),
            norms: self.resident.norms(),
            documents_codec: codecs.documents as u32,
            weights_codec: codecs.weights as u32,
            blocks_per_document: 1.0 / index.documents().max(1) as f32,
            ..BatchArguments::default()
        };
        let lane = &mut self.lanes[turn];
        let (alone, start) = (batch.alone(), Instant::now());
        match alone {
            Some(rows) => lane.prepare_alone(&self.gpu, &layout, rows, &mut arguments)?,
            None => {
                lane.prepare(&self.gpu, &layout, &mut batch, &mut arguments)?;
                lane.send(&self.gpu, index, &batch.parcel, &layout, self.usage)?;
            }
        }
        let (is_bitpack, column) = (is_bitpack(index), chosen[0].score.column());
        let launches = launches(&batch, is_bitpack, column, alone.is_some(), arguments, &layout);
        let way = if chosen.len() > SMALL_BATCH { SmallBatches::Marked } else { self.usage.small_batches };
        let commands = match alone {
            Some(_) => launches.iter().map(command).collect(),
            None => lane.commands(&layout, &launches, way == SmallBatches::Marked),
        };
        match way {
            SmallBatches::Singly | SmallBatches::Marked => {
                commands.iter().try_for_each(|command| self.gpu.submit(lane.stream, *command))?;
            }
            _ => self.gpu.submit_all(lane.stream, &commands)?,
        }
        let steps = launches.iter().map(|launch| launch.name).collect();
        let ks = chosen.iter().map(|plan| plan.k).collect();
        let uploaded =
            if alone.is_some() { size_of::<BatchArguments>() } else { layout.rows_bytes + batch.parcel.bytes() } as u64;
        let has_more = waiting.stages.end < chosen[0].stages.len();
        let (waiting, is_alone) = (waiting.clone(), alone.is_some());
        lane.running = Some(Running { waiting, has_more, batch, ks, uploaded, is_alone, steps, start });
        Ok(())
    }

    /// Waits for the batch of a stream, if there is one, and reads its answers. Returns what is still to be asked for: the
    /// next stage of a plan that came alone, if this one has too few hits.
    fn collect(&mut self, turn: usize, answers: &mut [Option<Answer>]) -> Result<Option<Waiting>, GpuError> {
        let lane = &mut self.lanes[turn];
        let Some(running) = lane.running.take() else {
            return Ok(None);
        };
        let durations = if running.is_alone {
            lane.answers.wait_for_count(&self.gpu, lane.stream)?;
            Vec::new()
        } else {
            self.gpu.wait(lane.stream)?
        };
        let steps = running.steps_of(durations);
        let steps: Vec<Step> = steps.map(|(name, duration)| Step { name, place: self.place, duration }).collect();
        let bytes = lane.answers.bytes();
        let layout = Layout::new(&running.batch);
        for (place, &number) in running.waiting.numbers.iter().enumerate() {
            let stages = running.batch.stages[place].clone();
            let count_of = |query: usize| u32_at(bytes, 4 * query) as usize;
            let is_full =
                |&query: &usize| count_of(query) >= running.ks[place].min(running.batch.queries[query].k as usize);
            let full = stages.clone().find(is_full);
            let query = full.unwrap_or(stages.end - 1);
            if count_of(query) > running.batch.queries[query].k as usize {
                let reason = format!("{} hits where {} were asked for", count_of(query), running.ks[place]);
                return Err(GpuError::Failed { at: "an answer", reason });
            }
            let first = layout.answers_keys + 8 * running.batch.queries[query].answer as usize;
            let keys = bytes[first..first + 8 * count_of(query)].as_chunks::<8>().0;
            let hits = keys.iter().map(|key| hit(u64::from_le_bytes(*key))).collect();
            let Waiting { numbers, stages: Range { end, .. }, before } = &running.waiting;
            let mut answer = Answer { hits, exact: true, ..before.clone() };
            answer.work += running.work_of(stages.start..query + 1, &layout, bytes);
            answer.trace.steps.extend_from_slice(&steps);
            if full.is_none() && running.has_more {
                let before = Answer { hits: Vec::new(), ..answer };
                return Ok(Some(Waiting { numbers: numbers.clone(), stages: *end..end + 1, before }));
            }
            answers[number] = Some(answer);
        }
        Ok(None)
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

/// Whether a plan is answered together with others; not so one that asks for steps.
fn goes_in_batches(plan: &Plan) -> bool {
    needs_work(plan) && plan.stages.iter().all(|stage| !stage.algorithm.needs_device())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_le_bytes(*word))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u64::from_le_bytes(*word))
}

/// What starts a launch.
fn command(launch: &Launch) -> Command<'_> {
    let shape = Shape { grid: launch.grid, block: launch.threads, shared: launch.shared };
    Command::Launch { kernel: &launch.kernel.kernel, shape, argument: launch.arguments.bytes() }
}

impl Lane {
    fn new(stream: Stream) -> Lane {
        let (rows, answers) = (Buffers::default(), Buffers::default());
        Lane { stream, rows, scratch: None, zeros: None, answers, running: None }
    }

    /// Writes the rows of a batch, and says in the arguments where everything lies.
    fn prepare(
        &mut self,
        gpu: &Gpu,
        layout: &Layout,
        batch: &mut Batch,
        arguments: &mut BatchArguments,
    ) -> Result<(), GpuError> {
        let rows = &mut self.rows;
        rows.grow(gpu, layout.sent_bytes)?;
        self.answers.grow(gpu, layout.answers_bytes)?;
        grow(gpu, &mut self.scratch, layout.scratch_bytes)?;
        let scratch = self.scratch.as_ref().map_or(Address::NULL, Memory::address);
        batch.place_parcel(rows.address().plus(layout.rows_bytes));
        layout.write(batch, rows.bytes());
        layout.place(rows.address(), scratch, self.answers.address(), arguments);
        Ok(())
    }

    /// Sends the lists of a prepared batch.
    fn send(
        &mut self,
        gpu: &Gpu,
        index: &Index,
        parcel: &Parcel,
        layout: &Layout,
        usage: Usage,
    ) -> Result<(), Failure> {
        if parcel.bytes() == 0 {
            return Ok(());
        }
        let (from, to) = (self.rows.host_address(), self.rows.address());
        let bytes_at = |span| index.segment().bytes_at(span);
        for slab in parcel.slabs(usage.sent) {
            let (at, bytes) = (layout.rows_bytes + slab.start, slab.len());
            parcel.pack(bytes_at, slab, &mut self.rows.bytes()[at..at + bytes], usage.threads)?;
            gpu.submit(self.stream, Command::Copy { from: from.plus(at), to: to.plus(at), bytes })?;
        }
        let end = layout.rows_bytes + parcel.bytes();
        gpu.submit(self.stream, Command::Clear { at: to.plus(end), bytes: layout.sent_bytes - end })?;
        Ok(())
    }

    /// What a prepared batch needs: rows up, zeros, launches, answers down.
    fn commands<'a>(&self, layout: &Layout, launches: &'a [Launch], is_marked: bool) -> Vec<Command<'a>> {
        let Lane { rows, answers, scratch, .. } = self;
        let at = scratch.as_ref().map_or(Address::NULL, Memory::address);
        let mark = is_marked.then_some(Command::Mark);
        let mut commands = vec![
            Command::Copy { from: rows.host_address(), to: rows.address(), bytes: layout.rows_bytes },
            Command::Clear { at, bytes: layout.zeros_bytes },
        ];
        commands.extend(mark);
        commands.extend(launches.iter().flat_map(|launch| [Some(command(launch)), mark]).flatten());
        commands.push(Command::Copy {
            from: answers.address(),
            to: answers.host_address(),
            bytes: layout.answers_bytes,
        });
        commands
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
        *arguments = BatchArguments { states: zeros, alone: rows, ..*arguments };
        // The kernel replaces it when the rest of the answer is there.
        self.answers.bytes()[..4].copy_from_slice(&NONE.to_le_bytes());
        Ok(())
    }
}

impl Buffers {
    /// Makes both sides hold so many bytes.
    pub fn grow(&mut self, gpu: &Gpu, bytes: usize) -> Result<(), GpuError> {
        grow(gpu, &mut self.device, bytes)?;
        self.grow_host(gpu, bytes)
    }

    /// Makes the host's side hold so many bytes.
    pub fn grow_host(&mut self, gpu: &Gpu, bytes: usize) -> Result<(), GpuError> {
        if self.host.as_ref().is_none_or(|host| host.len() < bytes) {
            self.host = None;
            self.host = Some(gpu.pin(bytes.next_multiple_of(STEP))?);
        }
        Ok(())
    }

    /// Waits until the kernel of a query alone has written its count, which comes last.
    fn wait_for_count(&self, gpu: &Gpu, stream: Stream) -> Result<(), GpuError> {
        self.host.as_ref().map_or(Ok(()), |host| gpu.wait_for(stream, host, NONE))
    }

    pub fn address(&self) -> Address {
        self.device.as_ref().map_or(Address::NULL, Memory::address)
    }

    pub fn host_address(&self) -> Address {
        self.host.as_ref().map_or(Address::NULL, Pinned::address)
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        self.host.as_deref_mut().unwrap_or(&mut [])
    }
}

/// Makes memory hold so many bytes; what it held is lost.
pub fn grow(gpu: &Gpu, memory: &mut Option<Memory>, bytes: usize) -> Result<(), GpuError> {
    if memory.as_ref().is_none_or(|memory| memory.bytes() < bytes) {
        *memory = None;
        *memory = Some(gpu.allocate(bytes.next_multiple_of(STEP))?);
    }
    Ok(())
}
