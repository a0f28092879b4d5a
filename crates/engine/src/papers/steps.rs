//! Answers plans step by step, as griffin and gpu-ir do: one plan at a time, a launch for each step, results of a step
//! left on the device for the next. `intersections.rs` has the steps of an AND, `accumulators.rs` those of an OR,
//! `step_upload.rs` uploads lists that are not resident.

use super::intersections::Intersections;
use super::step_upload::StepList;
use crate::algorithms::topk::hit;
use crate::device::Context;
use crate::device::buffers::{Buffers, grow};
use crate::device::residency::filters::PlacedFilters;
use crate::device::session::Failure;
use crate::papers::compaction::{LOOKBACK_SHARED, Lookback, Scratch, ScratchLayout, THREADS};
use crate::papers::selection::{self, Choice, Selection};
use crate::query::answer::{Answer, Place, Scored, Step, Work};
use crate::query::plan::{Operation, Plan, Stage};
use lanner_gpu::device::{Address, Command, Shape, Stream};
use lanner_gpu::error::GpuError;
use lanner_gpu::kernel::{Argument, TypedKernel};
use lanner_gpu::memory::{Gpu, Memory};
use std::time::{Duration, Instant};

/// The stream of all steps.
pub const STREAM: Stream = Stream(0);
/// The most thread blocks of a launch for each SM; their warps loop over blocks and candidates.
const THREAD_BLOCKS_PER_SM: u32 = 32;

/// Device buffers of the steps. They grow on demand and are kept for the next plan.
#[derive(Default)]
pub struct StepScratch {
    /// Uploaded lists, or the directory of one.
    pub uploaded: Option<Memory>,
    /// Uploaded blocks that can hold a candidate.
    pub blocks: Buffers,
    /// Decoded documents of a list.
    pub list: Option<Memory>,
    /// The results of an intersection, and those of the one before, which it reads.
    pub found: [Option<Memory>; 2],
    /// Origins and scores of both.
    pub scored: [Option<Memory>; 2],
    /// Keys of the matching documents, unsorted.
    pub keys: Option<Memory>,
    selection: Option<Memory>,
    pub accumulators: Option<Memory>,
    /// Results that are copied to the host.
    download: Buffers,
}

/// Keys (documents with their scores) on the device.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    pub address: Address,
    pub count: u32,
}

/// The state of one plan answered step by step.
pub struct StepRun<'a> {
    pub context: &'a Context<'a>,
    pub plan: &'a Plan,
    pub buffers: &'a mut StepScratch,
    pub work: Work,
    /// The filter of the plan.
    filter: PlacedFilters,
    /// Steps submitted since the stream was last waited for.
    pending: Vec<&'static str>,
    steps: Vec<Step>,
}

/// Answers a plan whose stages all need a device. After a failure the caller must wait for the stream.
pub fn answer(context: &Context<'_>, buffers: &mut StepScratch, plan: &Plan) -> Result<Answer<Scored>, Failure> {
    let filter = context.residency.filters.borrow_mut().place(context.gpu, [plan.filter.as_ref()])?;
    let work = Work { bytes_uploaded: filter.bytes_uploaded as u64, ..Work::default() };
    let mut run = StepRun { context, plan, buffers, work, filter, pending: Vec::new(), steps: Vec::new() };
    let lists = run.lists()?;
    let mut hits = Vec::new();
    for stage in plan.stages.iter() {
        let keys = run.keys(stage, &lists)?;
        hits = run.select(keys)?;
        run.work.documents_scored += u64::from(keys.count);
        if hits.len() >= plan.k {
            break;
        }
    }
    let mut answer = Answer { hits, work: run.work, ..Answer::default() };
    answer.trace.steps = run.steps;
    Ok(answer)
}

impl StepRun<'_> {
    fn keys(&mut self, stage: &Stage, lists: &[StepList<'_>]) -> Result<Keys, GpuError> {
        match stage.operation {
            Operation::And => Intersections::new(self, stage.algorithm).run(lists),
            Operation::Or => {
                let lists = self.upload(lists)?;
                self.accumulate(&lists)
            }
        }
    }

    /// The words of the plan's filter; null without one.
    pub fn filter(&self) -> Address {
        self.filter.address_of(0)
    }

    /// The static ranks and their share, if they count; null if not.
    pub fn ranks(&self) -> (Address, f32) {
        let counts = self.plan.static_bound > 0;
        (if counts { self.context.residency.documents.ranks() } else { Address::NULL }, self.plan.score.alpha())
    }

    /// Selects the best k keys.
    fn select(&mut self, keys: Keys) -> Result<Vec<Scored>, GpuError> {
        let Keys { address, count } = keys;
        let k = self.plan.k.min(count as usize) as u32;
        let choice = selection::auto(count, k);
        let mut best = match choice {
            _ if count == 0 => Vec::new(),
            Choice::Cpu => self.read_keys(address, count)?,
            Choice::Gpu(method) => {
                let selection = Selection { keys: address, count, k };
                let scratch = self.scratch(|scratch| &mut scratch.selection, selection.scratch_bytes(method))?;
                let best = selection.gpu(self.begin()?, STREAM, method, scratch)?;
                self.end("select")?;
                self.read_keys(best.keys, best.count)?
            }
        };
        let start = Instant::now();
        if choice == Choice::Cpu {
            selection::cpu(&mut best, k as usize);
            self.note("select", Place::Cpu, start.elapsed());
        }
        Ok(best.into_iter().map(hit).collect())
    }

    /// Starts a step: the commands between this and [`StepRun::end`]. No buffer may grow in between.
    pub fn begin(&mut self) -> Result<&Gpu, GpuError> {
        let gpu = self.context.gpu;
        if self.pending.is_empty() {
            gpu.submit(STREAM, Command::Mark)?;
        }
        Ok(gpu)
    }

    /// Ends a step.
    pub fn end(&mut self, name: &'static str) -> Result<(), GpuError> {
        self.pending.push(name);
        self.context.gpu.submit(STREAM, Command::Mark)
    }

    /// A step of one launch, with a thread block for each tile; its results stay in order.
    pub fn launch_tiles<A: Argument>(
        &mut self,
        kernel: &TypedKernel<A>,
        lookback: Lookback,
        arguments: &A,
        name: &'static str,
    ) -> Result<(), GpuError> {
        let gpu = self.begin()?;
        lookback.clear(gpu, STREAM)?;
        gpu.launch(STREAM, kernel, lookback.shape(LOOKBACK_SHARED), arguments)?;
        self.end(name)
    }

    /// Waits for the pending steps and adds their times to the trace, one entry for each name.
    fn wait(&mut self) -> Result<(), GpuError> {
        let durations = self.context.gpu.wait(STREAM)?;
        for (name, duration) in std::mem::take(&mut self.pending).into_iter().zip(durations) {
            self.note(name, self.context.place, duration);
        }
        Ok(())
    }

    fn note(&mut self, name: &'static str, place: Place, duration: Duration) {
        match self.steps.iter_mut().find(|step| step.name == name && step.place == place) {
            Some(step) => step.duration += duration,
            None => {
                // Steps of one name are one entry, which says when the first of them ended.
                let started = Instant::now().checked_sub(duration).unwrap_or_else(Instant::now);
                self.steps.push(Step { name, place, started, duration });
            }
        }
    }

    /// A buffer of at least this many bytes; its contents are lost if it grows.
    pub fn scratch(
        &mut self,
        buffer: impl Fn(&mut StepScratch) -> &mut Option<Memory>,
        bytes: usize,
    ) -> Result<Scratch, GpuError> {
        if buffer(self.buffers).as_ref().is_none_or(|memory| memory.bytes() < bytes) {
            // The stream may still be using the old one.
            self.wait()?;
            grow(self.context.gpu, buffer(self.buffers), bytes)?;
        }
        Ok(buffer(self.buffers).as_ref().map(Scratch::from).expect("a buffer that has grown"))
    }

    /// Lays out scratch in a buffer, which grows if it must; its contents are lost then.
    pub fn lay_out<T>(
        &mut self,
        buffer: impl Fn(&mut StepScratch) -> &mut Option<Memory>,
        lay_out: impl Fn(&mut ScratchLayout) -> T,
    ) -> Result<T, GpuError> {
        let scratch = self.scratch(buffer, ScratchLayout::bytes_of(&lay_out))?;
        Ok(lay_out(&mut ScratchLayout::from(scratch.address)))
    }

    /// Waits for the steps so far and reads numbers that they left.
    pub fn read<const COUNT: usize>(&mut self, from: [Address; COUNT]) -> Result<[u32; COUNT], GpuError> {
        let words = self.download(&from.map(|from| (from, 4)))?.as_chunks().0;
        Ok(std::array::from_fn(|number| u32::from_le_bytes(words[number])))
    }

    /// Reads an array whose length, at most `most`, lies at `count`.
    pub fn read_numbers(&mut self, count: Address, from: Address, most: u32) -> Result<Vec<u32>, GpuError> {
        let bytes = self.download(&[(count, 4), (from, 4 * most as usize)])?;
        let (count, numbers) = bytes.as_chunks().0.split_first().expect("the count comes first");
        let count = u32::from_le_bytes(*count).min(most) as usize;
        Ok(numbers[..count].iter().map(|word| u32::from_le_bytes(*word)).collect())
    }

    fn read_keys(&mut self, from: Address, count: u32) -> Result<Vec<u64>, GpuError> {
        let words = self.download(&[(from, 8 * count as usize)])?.as_chunks().0;
        Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }

    /// Waits for the steps so far and reads pieces of device memory, one after the other.
    fn download(&mut self, pieces: &[(Address, usize)]) -> Result<&[u8], GpuError> {
        let end = pieces.iter().map(|(_, bytes)| bytes).sum();
        self.buffers.download.grow_host(self.context.gpu, end)?;
        let mut to = self.buffers.download.host_address();
        for &(from, bytes) in pieces {
            self.context.gpu.submit(STREAM, Command::Copy { from, to, bytes })?;
            to = to.plus(bytes);
        }
        self.wait()?;
        Ok(&self.buffers.download.host()[..end])
    }

    /// A launch with a warp for each block or chunk, up to the number at which warps loop.
    pub fn warps(&self, needed: u32, shared: usize) -> Shape {
        let most = THREAD_BLOCKS_PER_SM * self.context.gpu.properties().multiprocessors;
        Shape { grid: needed.div_ceil(THREADS / 32).clamp(1, most), block: THREADS, shared }
    }
}
