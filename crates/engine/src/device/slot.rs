//! The buffers of one CUDA stream, and the batch that is in flight there.
//!
//! A batch is one upload, a launch for its ANDs, one for its ORs, and one download. A single query is not uploaded: its
//! rows travel as the argument of the launch, and the kernel writes the answer to host memory.

use super::Context;
use super::answers::AnswerMemory;
use super::batch::{Batch, is_bitpack};
use super::buffers::{Buffers, address, grow, growth};
use super::kernels::{BatchArguments, NONE, QueryState, SingleRows, Variant};
use super::layout::{Launch, Layout};
use super::queue::{Request, SmallBatches};
use super::residency::Pin;
use super::residency::filters::PlacedFilters;
use super::session::{Failure, Usage};
use super::submission::Job;
use super::upload::UploadPlan;
use crate::query::answer::{Answer, Place, Step};
use crate::query::cost::SMALL_BATCH;
use lanner_gpu::device::{Address, Command, Shape, Stream};
use lanner_gpu::error::GpuError;
use lanner_gpu::kernel::Argument;
use lanner_gpu::memory::{Gpu, Memory, POLLS};
use lanner_index::open::Index;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The buffers of one stream. They grow on demand and are kept.
pub struct Slot {
    pub stream: Stream,
    usage: Usage,
    /// Rows, then the lists that are uploaded.
    rows: Buffers,
    /// The states of queries, cleared before each batch, then the keys that parts leave.
    scratch: Option<Memory>,
    /// The state of a single query; its kernel resets it before it exits.
    single_state: Option<Memory>,
    /// Counts, work and keys of the answers.
    answers: Buffers,
    in_flight: Option<InFlight>,
    /// Keeps what the batch in flight names where it is.
    pin: Option<Pin>,
    /// The same for its filters.
    filters: PlacedFilters,
    /// The last batch, whose memory the next one uses, and answers of earlier ones.
    batch: Batch,
    answer_memory: AnswerMemory,
    /// How often the answers of single queries were polled: now and then the stream is queried.
    polls: u32,
}

/// A request that the device is answering.
struct InFlight {
    request: Request,
    submitted: Submitted,
}

/// A batch that could not be started.
pub struct Rejected {
    pub failure: Failure,
    pub request: Request,
}

/// A batch as it was submitted: what the host needs to read its answers.
struct Submitted {
    /// Whether the request is for one plan that has further stages.
    has_more_stages: bool,
    batch: Batch,
    layout: Layout,
    bytes_uploaded: u64,
    /// Whether this is a single query, whose kernel itself tells the host when the answer is complete.
    is_single: bool,
    /// The names of the launches.
    launches: Vec<&'static str>,
    start: Instant,
}

impl Slot {
    pub fn new(stream: Stream, usage: Usage) -> Slot {
        let (rows, answers) = (Buffers::default(), Buffers::default());
        Slot {
            stream,
            usage,
            rows,
            scratch: None,
            single_state: None,
            answers,
            in_flight: None,
            pin: None,
            filters: PlacedFilters::default(),
            batch: Batch::default(),
            answer_memory: AnswerMemory::default(),
            polls: 0,
        }
    }

    /// Frees the buffers. Nothing may be in flight, but the kernel of a single query may still be exiting.
    pub fn release(&mut self, gpu: &Gpu) -> Result<(), GpuError> {
        gpu.wait(self.stream)?;
        *self = Slot::new(self.stream, self.usage);
        Ok(())
    }

    /// Drops the batch in flight. Its buffers stay until the stream has stopped using them, whatever the stream
    /// reports.
    pub fn forget(&mut self, gpu: &Gpu) {
        self.in_flight = None;
        _ = gpu.finish(self.stream);
        self.unpin();
    }

    /// Lets go of what the batch that has ended named.
    fn unpin(&mut self) {
        self.pin = None;
        self.filters = PlacedFilters::default();
    }

    /// Whether no batch is in flight.
    pub fn is_free(&self) -> bool {
        self.in_flight.is_none()
    }

    /// Submits a batch. On failure the stream is idle again, and the request is returned.
    pub fn start(&mut self, context: &Context<'_>, request: Request) -> Result<(), Box<Rejected>> {
        match self.submit(context, &request) {
            Ok(submitted) => {
                self.in_flight = Some(InFlight { request, submitted });
                Ok(())
            }
            Err(failure) => {
                let failure = context.gpu.finish(self.stream).err().map_or(failure, Failure::Gpu);
                self.unpin();
                Err(Box::new(Rejected { failure, request }))
            }
        }
    }

    fn submit(&mut self, context: &Context<'_>, request: &Request) -> Result<Submitted, Failure> {
        let (jobs, first) = (&request.jobs, request.jobs[0].plan());
        self.filters = context.residency.filters.borrow_mut().place(context.gpu, jobs.iter().map(Job::filter))?;
        let mut batch = std::mem::take(&mut self.batch).join(context, jobs, request.stages.clone(), &self.filters);
        self.pin = batch.pin.take();
        let layout = Layout::new(&batch);
        let (single, start) = (batch.single(), Instant::now());
        let arguments = match single {
            Some(rows) => self.prepare_single(context, &layout, rows)?,
            None => self.prepare_batch(context, &layout, &mut batch)?,
        };
        let (is_single, column) = (single.is_some(), first.score.column());
        let variant = Variant { is_bitpack: is_bitpack(context.index), column, is_single };
        let launches = layout.launches(&batch, variant, arguments);
        let how = if jobs.len() <= SMALL_BATCH { self.usage.small_batches } else { SmallBatches::TimedCommands };
        let commands = match single {
            Some(_) => launches.iter().map(command).collect(),
            None => self.commands(&layout, &launches, how == SmallBatches::TimedCommands),
        };
        self.submit_commands(context.gpu, &commands, how)?;
        let uploaded = if is_single { size_of::<BatchArguments>() } else { layout.rows_bytes + batch.upload.bytes() };
        let uploaded = uploaded + self.filters.bytes_uploaded;
        Ok(Submitted {
            has_more_stages: request.stages.end < first.stages.len(),
            bytes_uploaded: uploaded as u64,
            is_single,
            launches: launches.iter().map(|launch| launch.name).collect(),
            batch,
            layout,
            start,
        })
    }

    fn submit_commands(&self, gpu: &Gpu, commands: &[Command<'_>], how: SmallBatches) -> Result<(), GpuError> {
        match how {
            SmallBatches::Commands | SmallBatches::TimedCommands => {
                commands.iter().try_for_each(|command| gpu.submit(self.stream, *command))
            }
            SmallBatches::Auto | SmallBatches::SingleQueries | SmallBatches::Graph => {
                gpu.submit_all(self.stream, commands)
            }
        }
    }

    /// Writes the rows of a batch into its buffer, uploads its lists, and returns the arguments of its kernels.
    fn prepare_batch(
        &mut self,
        context: &Context<'_>,
        layout: &Layout,
        batch: &mut Batch,
    ) -> Result<BatchArguments, Failure> {
        let gpu = context.gpu;
        // All of it or nothing: an error says what is missing for the batch.
        let buffers = self.rows.growth(layout.upload_bytes) + self.answers.growth(layout.answers_bytes);
        gpu.check_left(buffers + growth(&self.scratch, layout.scratch_bytes))?;
        self.rows.grow(gpu, layout.upload_bytes)?;
        self.answers.grow(gpu, layout.answers_bytes)?;
        grow(gpu, &mut self.scratch, layout.scratch_bytes)?;
        let rows = self.rows.address();
        batch.place_upload(rows.plus(layout.rows_bytes));
        layout.write(batch, self.rows.host());
        self.upload(context.index, gpu, &batch.upload, layout)?;
        Ok(layout.arguments(context, rows, address(&self.scratch), self.answers.address()))
    }

    /// Uploads the lists of a batch behind its rows, slab by slab.
    fn upload(&mut self, index: &Index, gpu: &Gpu, plan: &UploadPlan, layout: &Layout) -> Result<(), Failure> {
        if plan.bytes() == 0 {
            return Ok(());
        }
        let (from, to) = (self.rows.host_address(), self.rows.address());
        let bytes_at = |span| index.segment().bytes_at(span);
        for slab in plan.slabs(self.usage.upload_limit) {
            let (at, bytes) = (layout.rows_bytes + slab.start, slab.len());
            plan.pack(bytes_at, slab, &mut self.rows.host()[at..at + bytes], self.usage.threads)?;
            gpu.submit(self.stream, Command::Copy { from: from.plus(at), to: to.plus(at), bytes })?;
        }
        let end = layout.rows_bytes + plan.bytes();
        gpu.submit(self.stream, Command::Clear { at: to.plus(end), bytes: layout.upload_bytes - end })?;
        Ok(())
    }

    /// The commands of a prepared batch: copy the rows, clear the states, launch, copy the answers back.
    fn commands<'a>(&self, layout: &Layout, launches: &'a [Launch], is_marked: bool) -> Vec<Command<'a>> {
        let Slot { rows, answers, scratch, .. } = self;
        let mark = is_marked.then_some(Command::Mark);
        let mut commands = vec![
            Command::Copy { from: rows.host_address(), to: rows.address(), bytes: layout.rows_bytes },
            Command::Clear { at: address(scratch), bytes: layout.states_bytes },
        ];
        commands.extend(mark);
        commands.extend(launches.iter().flat_map(|launch| [Some(command(launch)), mark]).flatten());
        let (from, to) = (answers.address(), answers.host_address());
        commands.push(Command::Copy { from, to, bytes: layout.answers_bytes });
        commands
    }

    /// Returns the argument of the kernel that answers a single query: its rows, and where everything lies.
    fn prepare_single(
        &mut self,
        context: &Context<'_>,
        layout: &Layout,
        rows: SingleRows,
    ) -> Result<BatchArguments, Failure> {
        let gpu = context.gpu;
        let state = if self.single_state.is_none() { size_of::<QueryState>() as u64 } else { 0 };
        gpu.check_left(growth(&self.scratch, layout.scratch_bytes) + state)?;
        self.answers.grow_host(gpu, layout.answers_bytes)?;
        grow(gpu, &mut self.scratch, layout.scratch_bytes)?;
        if self.single_state.is_none() {
            let bytes = size_of::<QueryState>();
            let state = gpu.allocate(bytes)?;
            gpu.submit(self.stream, Command::Clear { at: state.address(), bytes })?;
            self.single_state = Some(state);
        }
        // The kernel overwrites the count after it has written the rest of the answer.
        self.answers.host()[..4].copy_from_slice(&NONE.to_le_bytes());
        let answers = self.answers.host_address();
        let arguments = layout.arguments(context, Address::NULL, address(&self.scratch), answers);
        Ok(BatchArguments { states: address(&self.single_state), single: rows, ..arguments })
    }

    /// Whether the batch in flight, if there is one, has been answered.
    pub fn is_done(&mut self, gpu: &Gpu) -> Result<bool, GpuError> {
        match &self.in_flight {
            None => return Ok(false),
            Some(in_flight) if in_flight.submitted.is_single => {
                self.polls = self.polls.wrapping_add(1);
                if self.answers.host().first_word() != NONE {
                    return Ok(true);
                }
                if !self.polls.is_multiple_of(POLLS) {
                    return Ok(false);
                }
            }
            Some(_) => {}
        }
        gpu.is_idle(self.stream)
    }

    /// Waits for the batch in flight, if there is one, and delivers its answers. Returns the next stage of a single
    /// plan that has too few hits so far. After a failure the batch is still in flight, so that the failure can be
    /// reported before its jobs end.
    /// `observe` gets the batch once it is answered, and when it was started.
    pub fn collect(
        &mut self,
        context: &Context<'_>,
        observe: impl FnOnce(&Request, Instant),
    ) -> Result<Option<Request>, GpuError> {
        let Some(InFlight { submitted, .. }) = &self.in_flight else {
            return Ok(None);
        };
        let durations = if submitted.is_single {
            context.gpu.wait_for(self.stream, self.answers.host(), NONE)?;
            Vec::new()
        } else {
            context.gpu.wait(self.stream)?
        };
        let steps = submitted.steps(durations, context.place);
        let Submitted { batch, layout, bytes_uploaded, .. } = submitted;
        let mut answers = self.answer_memory.take().filled(batch, layout, self.answers.host(), *bytes_uploaded)?;
        let InFlight { request, submitted } = self.in_flight.take().expect("it was there");
        self.unpin();
        observe(&request, submitted.start);
        (answers.steps, answers.before) = (steps, request.before);
        self.batch = submitted.batch;
        if submitted.has_more_stages && !answers.is_full(0) {
            let stages = request.stages.end..request.stages.end + 1;
            let before = Answer { hits: Vec::new(), ..answers.answer(0) };
            return Ok(Some(Request { jobs: request.jobs, stages, before }));
        }
        let answers = Arc::new(answers);
        self.answer_memory.keep(&answers);
        Job::end_all(request.jobs, &answers);
        Ok(None)
    }
}

impl Submitted {
    /// The names and times of the launches. The device does not time small batches, because that would slow them down:
    /// there the host's clock gives the time of the whole batch.
    fn steps(&self, durations: Vec<Duration>, place: Place) -> Vec<Step> {
        let (names, durations) = match (&durations[..], &self.launches[..]) {
            ([], &[name]) => (vec![name], vec![self.start.elapsed()]),
            ([], _) => (vec!["batch"], vec![self.start.elapsed()]),
            _ => (self.launches.clone(), durations),
        };
        let mut started = Instant::now();
        let step = |(name, duration): (&'static str, Duration)| {
            started = started.checked_sub(duration).unwrap_or(started);
            Step { name, place, started, duration }
        };
        let mut steps: Vec<Step> = names.into_iter().zip(durations).rev().map(step).collect();
        steps.reverse();
        steps
    }
}

fn command(launch: &Launch) -> Command<'_> {
    let shape = Shape { grid: launch.grid, block: launch.threads, shared: launch.shared };
    Command::Launch { kernel: &launch.kernel.kernel, shape, argument: launch.arguments.bytes() }
}
