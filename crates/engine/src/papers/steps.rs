//! Plans answered step by step, as griffin and gpu-ir do it: one plan at a time, a launch for each step, and what a step
//! leaves lies on the device for the next. `intersections.rs` has the steps of an AND, `sending.rs` what lists need that do
//! not lie on the device.

use super::intersections::Intersections;
use super::sending::Listed;
use crate::algorithms::topk::hit;
use crate::device::kernels::{DenseRow, SparseRow};
use crate::device::resident::Resident;
use crate::device::rows::ListRow;
use crate::device::session::{Buffers, Failure, grow};
use crate::papers::compaction::{LOOKBACK_SHARED, Lookback, Scratch, ScratchLayout, THREADS};
use crate::papers::selection::{self, Choice, Selection};
use crate::papers::step_kernels::{
    ACCUMULATORS_ADD_FREQUENCY, ACCUMULATORS_ADD_IMPACT, ACCUMULATORS_GATHER, AccumulateArguments, DECODE_SHARED,
    GatherArguments, TILE,
};
use crate::query::answer::{Answer, Hit, Place, Step, Work};
use crate::query::plan::{Operation, Plan, Stage};
use lanner_gpu::device::{Address, Command, Shape, Stream};
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::{Gpu, Memory};
use lanner_index::open::{Column, Index};
use std::time::{Duration, Instant};

/// Where all of it happens.
pub const STREAM: Stream = Stream(0);
/// Thread blocks for each processor of the device, at most: their warps take turns over blocks and candidates.
const BLOCKS_A_PROCESSOR: u32 = 32;

/// A device, and the index whose plans it answers.
pub struct Ground<'a> {
    pub gpu: &'a Gpu,
    pub resident: &'a Resident,
    pub index: &'a Index,
    pub place: Place,
}

/// Buffers of the steps. They grow with what comes and stay.
#[derive(Default)]
pub struct Rooms {
    /// Lists that do not lie on the device, or what of one is needed first.
    pub sent: Option<Memory>,
    /// The blocks of such a list that can have a candidate.
    pub hit: Buffers,
    /// What is decoded of a list.
    pub list: Option<Memory>,
    /// What an intersection finds, while the next one reads what the one before has found.
    pub found: [Option<Memory>; 2],
    /// Likewise their origins and scores.
    pub scored: [Option<Memory>; 2],
    /// Hits, not in lookback.
    pub keys: Option<Memory>,
    selection: Option<Memory>,
    accumulators: Option<Memory>,
    /// What comes back to the host.
    landing: Buffers,
}

/// Documents with their scores, which lie on the device.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    pub address: Address,
    pub count: u32,
}

/// A plan under way: its rows, its steps and what they took.
pub struct Course<'a> {
    pub ground: &'a Ground<'a>,
    pub plan: &'a Plan,
    pub rooms: &'a mut Rooms,
    pub work: Work,
    /// Steps that the stream has not been waited for.
    pending: Vec<&'static str>,
    steps: Vec<Step>,
}

/// Answers a plan whose stages all need a device. Where it fails the stream must be waited for.
pub fn answer(ground: &Ground<'_>, rooms: &mut Rooms, plan: &Plan) -> Result<Answer, Failure> {
    let (pending, steps, work) = (Vec::new(), Vec::new(), Work::default());
    let mut course = Course { ground, plan, rooms, work, pending, steps };
    let lists = course.lists()?;
    let mut hits = Vec::new();
    for stage in &plan.stages {
        let keys = course.keys(stage, &lists)?;
        hits = course.select(keys)?;
        course.work.documents_scored += u64::from(keys.count);
        if hits.len() >= plan.k {
            break;
        }
    }
    let mut answer = Answer { hits, exact: true, work: course.work, ..Answer::default() };
    answer.trace.steps = course.steps;
    Ok(answer)
}

impl Course<'_> {
    fn keys(&mut self, stage: &Stage, lists: &[Listed<'_>]) -> Result<Keys, GpuError> {
        match stage.operation {
            Operation::And => Intersections::new(self, stage.algorithm).run(lists),
            Operation::Or => {
                let lists = self.send(lists)?;
                self.accumulate(&lists)
            }
        }
    }

    /// Adds up all postings, and gathers the documents that have some.
    fn accumulate(&mut self, lists: &[ListRow]) -> Result<Keys, GpuError> {
        let range = self.plan.range.clone();
        let count = range.len() as u32;
        let accumulators = self.room(|rooms| &mut rooms.accumulators, 4 * range.len())?.address;
        self.begin()?.submit(STREAM, Command::Clear { at: accumulators, bytes: 4 * range.len() })?;
        self.end("clear")?;
        let codecs = self.ground.index.segment().list_context().codecs;
        let arguments = AccumulateArguments {
            sparse: SparseRow::default(),
            dense: DenseRow::default(),
            accumulators,
            length_codes: self.ground.resident.length_codes(),
            norms: self.ground.resident.norms(),
            first: range.start,
            end: range.end,
            documents_codec: codecs.documents as u32,
            weights_codec: codecs.weights as u32,
        };
        let kernel = match self.plan.score.column() {
            Column::Frequency => &ACCUMULATORS_ADD_FREQUENCY,
            Column::Impact => &ACCUMULATORS_ADD_IMPACT,
        };
        let shapes: Vec<Shape> = lists.iter().map(|list| self.warps(units_of(list, count), DECODE_SHARED)).collect();
        let gpu = self.begin()?;
        for (list, &shape) in lists.iter().zip(&shapes) {
            let arguments = match *list {
                ListRow::Sparse(sparse) => AccumulateArguments { sparse, ..arguments },
                ListRow::Dense(dense) => AccumulateArguments { dense, ..arguments },
            };
            gpu.launch(STREAM, kernel, shape, &arguments)?;
        }
        self.end("accumulate")?;
        let postings = lists.iter().map(|list| u64::from(postings_of(list))).sum::<u64>();
        self.note_decoded(lists);
        self.gather(accumulators, postings.min(u64::from(count)) as u32)
    }

    fn note_decoded(&mut self, lists: &[ListRow]) {
        for list in lists {
            if let ListRow::Sparse(row) = list {
                self.work.blocks_decoded += u64::from(row.blocks);
                self.work.postings_decoded += u64::from(row.postings);
            }
        }
    }

    /// The keys of documents that have a score, at most so many.
    fn gather(&mut self, accumulators: Address, most: u32) -> Result<Keys, GpuError> {
        let range = self.plan.range.clone();
        let count = range.len() as u32;
        let found = self.room(|rooms| &mut rooms.found[0], Lookback::bytes(count.div_ceil(TILE)))?.address;
        let keys = self.room(|rooms| &mut rooms.keys, 8 * most as usize)?.address;
        let lookback = Lookback::reserve(&mut ScratchLayout::from(found), count.div_ceil(TILE));
        let arguments =
            GatherArguments { accumulators, keys, lookback, first: range.start, count, capacity: most, reserved: 0 };
        let gpu = self.begin()?;
        lookback.clear(gpu, STREAM)?;
        gpu.launch(STREAM, &ACCUMULATORS_GATHER, lookback.shape(LOOKBACK_SHARED), &arguments)?;
        self.end("gather")?;
        let [count] = self.read([lookback.total])?;
        Ok(Keys { address: keys, count: count.min(most) })
    }

    /// The best k of the keys.
    fn select(&mut self, keys: Keys) -> Result<Vec<Hit>, GpuError> {
        let Keys { address, count } = keys;
        let k = self.plan.k.min(count as usize) as u32;
        let choice = selection::auto(count, k);
        let mut best = match choice {
            _ if count == 0 => Vec::new(),
            Choice::Cpu => self.read_keys(address, count)?,
            Choice::Gpu(method) => {
                let selection = Selection { keys: address, count, k };
                let room = self.room(|rooms| &mut rooms.selection, selection.scratch_bytes(method))?;
                let best = selection.gpu(self.begin()?, STREAM, method, room)?;
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

    /// Starts a step: the commands between this and [`Course::end`]. No room may grow in between.
    pub fn begin(&mut self) -> Result<&Gpu, GpuError> {
        let gpu = self.ground.gpu;
        if self.pending.is_empty() {
            gpu.submit(STREAM, Command::Mark)?;
        }
        Ok(gpu)
    }

    /// Ends a step.
    pub fn end(&mut self, name: &'static str) -> Result<(), GpuError> {
        self.pending.push(name);
        self.ground.gpu.submit(STREAM, Command::Mark)
    }

    /// Waits for the steps, and adds up what those of one name took.
    fn wait(&mut self) -> Result<(), GpuError> {
        let durations = self.ground.gpu.wait(STREAM)?;
        for (name, duration) in std::mem::take(&mut self.pending).into_iter().zip(durations) {
            self.note(name, self.ground.place, duration);
        }
        Ok(())
    }

    fn note(&mut self, name: &'static str, place: Place, duration: Duration) {
        match self.steps.iter_mut().find(|step| step.name == name && step.place == place) {
            Some(step) => step.duration += duration,
            None => self.steps.push(Step { name, place, duration }),
        }
    }

    /// Makes a room hold so many bytes; what it held is lost where it grows.
    pub fn room(
        &mut self,
        room: impl Fn(&mut Rooms) -> &mut Option<Memory>,
        bytes: usize,
    ) -> Result<Scratch, GpuError> {
        if room(self.rooms).as_ref().is_none_or(|memory| memory.bytes() < bytes) {
            // The stream may still be using what is there.
            self.wait()?;
            grow(self.ground.gpu, room(self.rooms), bytes)?;
        }
        Ok(room(self.rooms).as_ref().map_or(Scratch { address: Address::NULL, bytes: 0 }, Scratch::from))
    }

    /// Numbers that the steps so far leave.
    pub fn read<const COUNT: usize>(&mut self, from: [Address; COUNT]) -> Result<[u32; COUNT], GpuError> {
        let words = self.land(&from.map(|from| (from, 4)))?.as_chunks().0;
        Ok(std::array::from_fn(|place| words.get(place).map_or(0, |word| u32::from_le_bytes(*word))))
    }

    /// As many numbers as another number says, but at most so many.
    pub fn read_numbers(&mut self, count: Address, from: Address, most: u32) -> Result<Vec<u32>, GpuError> {
        let bytes = self.land(&[(count, 4), (from, 4 * most as usize)])?;
        let mut numbers = bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word));
        let count = numbers.next().unwrap_or(0).min(most);
        Ok(numbers.take(count as usize).collect())
    }

    fn read_keys(&mut self, from: Address, count: u32) -> Result<Vec<u64>, GpuError> {
        let words = self.land(&[(from, 8 * count as usize)])?.as_chunks().0;
        Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }

    /// Bytes that the steps so far leave, piece behind piece; the steps are waited for.
    fn land(&mut self, pieces: &[(Address, usize)]) -> Result<&[u8], GpuError> {
        let end = pieces.iter().map(|(_, bytes)| bytes).sum();
        self.rooms.landing.grow_host(self.ground.gpu, end)?;
        let mut to = self.rooms.landing.host_address();
        for &(from, bytes) in pieces {
            self.ground.gpu.submit(STREAM, Command::Copy { from, to, bytes })?;
            to = to.plus(bytes);
        }
        self.wait()?;
        let landed: &[u8] = self.rooms.landing.bytes();
        Ok(landed.get(..end).unwrap_or(&[]))
    }

    /// Warps for so many blocks or chunks, which take turns where there are very many.
    pub fn warps(&self, units: u32, shared: usize) -> Shape {
        let most = BLOCKS_A_PROCESSOR * self.ground.gpu.limits().multiprocessors;
        Shape { grid: units.div_ceil(THREADS / 32).clamp(1, most), block: THREADS, shared }
    }
}

/// Blocks of a list, or chunks of a bitmap within so many documents.
fn units_of(list: &ListRow, documents: u32) -> u32 {
    match list {
        ListRow::Sparse(row) => row.blocks,
        ListRow::Dense(_) => documents / 64 + 2,
    }
}

/// Postings of a list.
fn postings_of(list: &ListRow) -> u32 {
    match list {
        ListRow::Sparse(row) => row.postings,
        ListRow::Dense(row) => row.postings,
    }
}
