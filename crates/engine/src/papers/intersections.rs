//! The steps of an AND, a list after the other; `algorithms/term_at_a_time.rs` explains it.

use super::sending::Listed;
use super::steps::{Course, Keys, STREAM};
use crate::device::kernels::{DenseRow, SparseRow};
use crate::device::rows::ListRow;
use crate::papers::compaction::{DeviceList, Found, LOOKBACK_SHARED, Lookback, Origins, ScratchLayout, THREADS};
use crate::papers::merge_path::{self, Partitions};
use crate::papers::parallel_merge_find;
use crate::papers::step_kernels::{
    BitsArguments, BlocksArguments, DECODE_SHARED, DecodedBlocks, EXPANDED_TILE, TERM_AT_A_TIME_DECODE,
    TERM_AT_A_TIME_EXPAND, TERM_AT_A_TIME_FILTER, TERM_AT_A_TIME_FIND_BLOCKS, TERM_AT_A_TIME_SEARCH_BLOCKS,
    TERM_AT_A_TIME_WEIGH_FREQUENCY, TERM_AT_A_TIME_WEIGH_IMPACT, TILE, WeighArguments,
};
use crate::papers::term_at_a_time::{Intersection, LEVELS};
use crate::query::Algorithm;
use lanner_gpu::device::{Address, Shape};
use lanner_gpu::error::GpuError;
use lanner_index::codec::{BLOCK, Codecs};
use lanner_index::open::Column;

/// An AND under way.
pub struct Intersections<'a, 'b> {
    course: &'a mut Course<'b>,
    algorithm: Algorithm,
    codecs: Codecs,
    /// Which of the two rooms is for what the next intersection finds.
    turn: usize,
}

/// Documents that are in all lists so far, and where they stood in the last one and among the candidates before.
#[derive(Clone, Copy)]
struct Candidates {
    list: DeviceList,
    origins: Origins,
    /// Room for their scores.
    scores: Address,
    /// What was decoded of the last list.
    decoded: DecodedBlocks,
}

impl<'a, 'b> Intersections<'a, 'b> {
    pub fn new(course: &'a mut Course<'b>, algorithm: Algorithm) -> Intersections<'a, 'b> {
        let codecs = course.ground.index.segment().list_context().codecs;
        Intersections { course, algorithm, codecs, turn: 0 }
    }

    /// The documents that are in all lists, which stand the shortest first.
    pub fn run(mut self, lists: &[Listed<'_>]) -> Result<Keys, GpuError> {
        let (mut before, mut keys) = (None, Keys { address: Address::NULL, count: 0 });
        for (number, list) in lists.iter().enumerate() {
            let (row, candidates) = match before {
                None => self.start(list)?,
                Some(Candidates { list: candidates, .. }) => self.intersect(list, candidates)?,
            };
            if candidates.list.length == 0 {
                break;
            }
            if number + 1 == lists.len() {
                let count = candidates.list.length;
                let address = self.course.room(|rooms| &mut rooms.keys, 8 * count as usize)?.address;
                keys = Keys { address, count };
            }
            self.weigh(&row, &candidates, before.map(|candidates| candidates.scores), keys.address)?;
            before = Some(candidates);
            self.turn = 1 - self.turn;
        }
        Ok(keys)
    }

    /// The documents of the first list, and where it lies.
    fn start(&mut self, list: &Listed<'_>) -> Result<(ListRow, Candidates), GpuError> {
        let list = list.row.at(self.course.send_whole(list)?);
        let candidates = match list {
            ListRow::Sparse(row) => {
                let decoded = self.decode_all(&row)?;
                let all = DeviceList { documents: decoded.documents, length: row.postings };
                let candidates = self.filter(DenseRow::default(), all, "decode")?;
                Candidates { decoded, ..candidates }
            }
            ListRow::Dense(row) => self.expand(row)?,
        };
        Ok((list, candidates))
    }

    /// The candidates that a further list has, and where it lies.
    fn intersect(&mut self, list: &Listed<'_>, candidates: DeviceList) -> Result<(ListRow, Candidates), GpuError> {
        let row = match list.row {
            ListRow::Sparse(row) => row,
            ListRow::Dense(row) => {
                let row = DenseRow { bytes: self.course.send_whole(list)?, ..row };
                return Ok((ListRow::Dense(row), self.filter(row, candidates, "intersect")?));
            }
        };
        let way = Intersection::choose(self.algorithm, candidates.length, row.postings);
        let row = match way {
            Intersection::BinarySearch => self.course.send_directory(row, list)?,
            _ => SparseRow { bytes: self.course.send_whole(list)?, ..row },
        };
        let candidates = match way {
            Intersection::MergePath => self.merge(&row, candidates)?,
            Intersection::BinarySearch => self.search(list, &row, candidates)?,
            Intersection::ParallelMergeFind => self.merge_find(&row, candidates)?,
        };
        Ok((ListRow::Sparse(row), candidates))
    }

    fn merge(&mut self, row: &SparseRow, candidates: DeviceList) -> Result<Candidates, GpuError> {
        let (decoded, turn) = (self.decode_all(row)?, self.turn);
        let lists = [candidates, DeviceList { documents: decoded.documents, length: row.postings }];
        let next = self.next(candidates.length.min(row.postings))?;
        let partitions = Partitions::of(lists);
        let bytes = merge_path::scratch_bytes(lists, partitions);
        let room = self.course.room(|rooms| &mut rooms.found[turn], bytes)?;
        let found = merge_path::gpu(self.course.begin()?, STREAM, lists, partitions, next.origins, room)?;
        self.intersected(Candidates { decoded, ..next }, found)
    }

    fn merge_find(&mut self, row: &SparseRow, candidates: DeviceList) -> Result<Candidates, GpuError> {
        let (decoded, turn) = (self.decode_all(row)?, self.turn);
        let lists = [candidates, DeviceList { documents: decoded.documents, length: row.postings }];
        let next = self.next(candidates.length)?;
        let bytes = parallel_merge_find::scratch_bytes(candidates, LEVELS);
        let room = self.course.room(|rooms| &mut rooms.found[turn], bytes)?;
        let found = parallel_merge_find::gpu(self.course.begin()?, STREAM, lists, LEVELS, next.origins, room)?;
        self.intersected(Candidates { decoded, ..next }, found)
    }

    /// Finds the blocks that can have a candidate, decodes these, and searches them. They are sent where the list does not
    /// lie on the device, of which the row knows the directory alone.
    fn search(&mut self, list: &Listed<'_>, row: &SparseRow, candidates: DeviceList) -> Result<Candidates, GpuError> {
        let (turn, count) = (self.turn, candidates.length);
        let next = self.next(count)?;
        let (tiles, blocks) = (count.div_ceil(TILE), count.min(row.blocks));
        let lay = |places: &mut ScratchLayout| {
            let order = Lookback::reserve(places, tiles);
            let slots = places.take(4 * count as usize);
            let decoded = DecodedBlocks { blocks: places.take(4 * blocks as usize), ..place_blocks(places, blocks) };
            (order, slots, DecodedBlocks { count: order.total, ..decoded })
        };
        let room = self.course.room(|rooms| &mut rooms.list, bytes_of(lay))?;
        let (order, slots, decoded) = lay(&mut ScratchLayout::from(room.address));
        let find = |places: &mut ScratchLayout| (Lookback::reserve(places, tiles), places.take(4 * count as usize));
        let room = self.course.room(|rooms| &mut rooms.found[turn], bytes_of(find))?;
        let (found_order, results) = find(&mut ScratchLayout::from(room.address));
        let arguments = BlocksArguments {
            candidates: candidates.documents,
            slots,
            results,
            origins: next.origins,
            lookback: order,
            count,
            ..self.blocks_arguments(row, decoded)
        };
        let gpu = self.course.begin()?;
        order.clear(gpu, STREAM)?;
        gpu.launch(STREAM, &TERM_AT_A_TIME_FIND_BLOCKS, order.shape(LOOKBACK_SHARED), &arguments)?;
        self.course.end("find blocks")?;
        let decoded = self.course.send_blocks(list, decoded)?;
        let arguments = BlocksArguments { decoded, ..arguments };
        self.decode(&arguments, blocks)?;
        let arguments = BlocksArguments { lookback: found_order, ..arguments };
        let gpu = self.course.begin()?;
        found_order.clear(gpu, STREAM)?;
        gpu.launch(STREAM, &TERM_AT_A_TIME_SEARCH_BLOCKS, found_order.shape(LOOKBACK_SHARED), &arguments)?;
        self.course.end("intersect")?;
        let [length, hit] = self.course.read([found_order.total, order.total])?;
        self.note_decoded(row, hit.min(blocks));
        let list = DeviceList { documents: results, length: length.min(count) };
        Ok(Candidates { list, decoded, ..next })
    }

    /// Keeps the documents within the plan's range that a bitmap has; all within it where there is none.
    fn filter(&mut self, row: DenseRow, candidates: DeviceList, name: &'static str) -> Result<Candidates, GpuError> {
        let tiles = candidates.length.div_ceil(TILE);
        self.by_bits(row, candidates, (tiles, candidates.length), name)
    }

    /// The documents within the plan's range that a bitmap has.
    fn expand(&mut self, row: DenseRow) -> Result<Candidates, GpuError> {
        let range = &self.course.plan.range;
        // The first chunk may begin before the range.
        let tiles = (range.end - range.start / 64 * 64).div_ceil(EXPANDED_TILE);
        let most = row.postings.min(range.len() as u32);
        self.by_bits(row, DeviceList { documents: Address::NULL, length: most }, (tiles, most), "decode")
    }

    fn by_bits(
        &mut self,
        row: DenseRow,
        candidates: DeviceList,
        (tiles, most): (u32, u32),
        name: &'static str,
    ) -> Result<Candidates, GpuError> {
        let (turn, range) = (self.turn, self.course.plan.range.clone());
        let next = self.next(most)?;
        let find = |places: &mut ScratchLayout| (Lookback::reserve(places, tiles), places.take(4 * most as usize));
        let room = self.course.room(|rooms| &mut rooms.found[turn], bytes_of(find))?;
        let (order, results) = find(&mut ScratchLayout::from(room.address));
        let arguments = BitsArguments {
            list: row,
            candidates: candidates.documents,
            results,
            origins: next.origins,
            lookback: order,
            count: candidates.length,
            first: range.start,
            end: range.end,
            reserved: 0,
        };
        let is_expanded = candidates.documents == Address::NULL;
        let kernel = if is_expanded { &TERM_AT_A_TIME_EXPAND } else { &TERM_AT_A_TIME_FILTER };
        let gpu = self.course.begin()?;
        order.clear(gpu, STREAM)?;
        gpu.launch(STREAM, kernel, order.shape(LOOKBACK_SHARED), &arguments)?;
        self.course.end(name)?;
        let [length] = self.course.read([order.total])?;
        Ok(Candidates { list: DeviceList { documents: results, length: length.min(most) }, ..next })
    }

    /// Ends an intersection, and waits for what it has found.
    fn intersected(&mut self, next: Candidates, found: Found) -> Result<Candidates, GpuError> {
        self.course.end("intersect")?;
        let [length] = self.course.read([found.count])?;
        let length = length.min(next.list.length);
        Ok(Candidates { list: DeviceList { documents: found.documents, length }, ..next })
    }

    /// Room for so many candidates.
    fn next(&mut self, most: u32) -> Result<Candidates, GpuError> {
        let turn = self.turn;
        let lay = |places: &mut ScratchLayout| [0, 1, 2].map(|_| places.take(4 * most as usize));
        let room = self.course.room(|rooms| &mut rooms.scored[turn], bytes_of(lay))?;
        let [shorter, longer, scores] = lay(&mut ScratchLayout::from(room.address));
        let list = DeviceList { documents: Address::NULL, length: most };
        Ok(Candidates { list, origins: Origins { shorter, longer }, scores, decoded: DecodedBlocks::default() })
    }

    fn decode_all(&mut self, row: &SparseRow) -> Result<DecodedBlocks, GpuError> {
        let lay = |places: &mut ScratchLayout| place_blocks(places, row.blocks);
        let room = self.course.room(|rooms| &mut rooms.list, bytes_of(lay))?;
        let decoded = lay(&mut ScratchLayout::from(room.address));
        self.decode(&self.blocks_arguments(row, decoded), row.blocks)?;
        self.note_decoded(row, row.blocks);
        Ok(decoded)
    }

    /// Decodes blocks of a list, at most so many.
    fn decode(&mut self, arguments: &BlocksArguments, most: u32) -> Result<(), GpuError> {
        let shape = self.course.warps(most, DECODE_SHARED);
        self.course.begin()?.launch(STREAM, &TERM_AT_A_TIME_DECODE, shape, arguments)?;
        self.course.end("decode")
    }

    fn blocks_arguments(&self, row: &SparseRow, decoded: DecodedBlocks) -> BlocksArguments {
        let nothing = Address::NULL;
        BlocksArguments {
            list: *row,
            decoded,
            candidates: nothing,
            slots: nothing,
            results: nothing,
            origins: Origins::NONE,
            lookback: Lookback { ticket: nothing, total: nothing, states: nothing, tiles: 0, reserved: 0 },
            count: 0,
            documents_codec: self.codecs.documents as u32,
            weights_codec: self.codecs.weights as u32,
            reserved: 0,
        }
    }

    fn note_decoded(&mut self, row: &SparseRow, blocks: u32) {
        let work = &mut self.course.work;
        work.blocks_decoded += u64::from(blocks);
        work.blocks_skipped += u64::from(row.blocks - blocks);
        work.postings_decoded += (u64::from(blocks) * BLOCK as u64).min(u64::from(row.postings));
    }

    /// Adds the weights of a list to the scores of candidates; with the last list they become keys.
    fn weigh(
        &mut self,
        list: &ListRow,
        candidates: &Candidates,
        before: Option<Address>,
        keys: Address,
    ) -> Result<(), GpuError> {
        let (sparse, dense) = match *list {
            ListRow::Sparse(row) => (row, DenseRow::default()),
            ListRow::Dense(row) => (SparseRow::default(), row),
        };
        let resident = self.course.ground.resident;
        let arguments = WeighArguments {
            sparse,
            dense,
            decoded: candidates.decoded,
            candidates: candidates.list.documents,
            origins: candidates.origins,
            before: before.unwrap_or(Address::NULL),
            scores: candidates.scores,
            keys,
            length_codes: resident.length_codes(),
            norms: resident.norms(),
            count: candidates.list.length,
            weights_codec: self.codecs.weights as u32,
        };
        let kernel = match self.course.plan.score.column() {
            Column::Frequency => &TERM_AT_A_TIME_WEIGH_FREQUENCY,
            Column::Impact => &TERM_AT_A_TIME_WEIGH_IMPACT,
        };
        let grid = candidates.list.length.div_ceil(THREADS);
        let gpu = self.course.begin()?;
        gpu.launch(STREAM, kernel, Shape { grid, block: THREADS, shared: 0 }, &arguments)?;
        self.course.end("weigh")
    }
}

/// Places for the documents of so many blocks; the numbers of all are known.
fn place_blocks(places: &mut ScratchLayout, blocks: u32) -> DecodedBlocks {
    DecodedBlocks {
        documents: places.take(4 * BLOCK * blocks as usize),
        weights_at: places.take(4 * blocks as usize),
        capacity: blocks,
        ..DecodedBlocks::default()
    }
}

/// The bytes that are laid out.
fn bytes_of<T>(lay: impl Fn(&mut ScratchLayout) -> T) -> usize {
    let mut places = ScratchLayout::from(Address::NULL);
    lay(&mut places);
    places.end()
}
