//! The steps of an AND, one list after the other; `term_at_a_time.rs` explains them and chooses the intersection.

use super::step_upload::StepList;
use super::steps::{Keys, STREAM, StepRun};
use crate::device::kernels::{CodecTags, DenseRow, SparseRow};
use crate::device::rows::ListRow;
use crate::papers::compaction::{DeviceList, Found, Lookback, Operands, Origins, ScratchLayout, THREADS};
use crate::papers::merge_path::{self, Partitions};
use crate::papers::parallel_merge_find;
use crate::papers::step_kernels::{
    BitsArguments, BlocksArguments, DecodedBlocks, EXPANDED_TILE, STEP_SHARED, TERM_AT_A_TIME_DECODE,
    TERM_AT_A_TIME_EXPAND, TERM_AT_A_TIME_FILTER, TERM_AT_A_TIME_WEIGH_FREQUENCY, TERM_AT_A_TIME_WEIGH_IMPACT, TILE,
    WeighArguments,
};
use crate::papers::term_at_a_time::{Intersection, MERGE_FIND_LEVELS};
use crate::query::Algorithm;
use lanner_gpu::device::{Address, Shape};
use lanner_gpu::error::GpuError;
use lanner_index::codec::BLOCK;
use lanner_index::format::dense::CHUNK;
use lanner_index::open::Column;

/// The state of an AND.
pub struct Intersections<'a, 'b> {
    pub(super) run: &'a mut StepRun<'b>,
    algorithm: Algorithm,
    codecs: CodecTags,
    /// Which of the two buffers the next intersection writes.
    pub(super) turn: usize,
}

/// Documents in all lists so far, with their positions in the last list and among the candidates before it.
#[derive(Clone, Copy)]
pub(super) struct Candidates {
    pub(super) list: DeviceList,
    pub(super) origins: Origins,
    /// The buffer for their scores.
    pub(super) scores: Address,
    /// The decoded blocks of the last list.
    pub(super) decoded: DecodedBlocks,
}

impl<'a, 'b> Intersections<'a, 'b> {
    pub fn new(run: &'a mut StepRun<'b>, algorithm: Algorithm) -> Intersections<'a, 'b> {
        let codecs = run.context.index.segment().list_context().codecs.into();
        Intersections { run, algorithm, codecs, turn: 0 }
    }

    /// Intersects all lists, given shortest first.
    pub fn run(mut self, lists: &[StepList<'_>]) -> Result<Keys, GpuError> {
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
                let address = self.run.scratch(|scratch| &mut scratch.keys, 8 * count as usize)?.address;
                keys = Keys { address, count };
            }
            self.weigh(&row, &candidates, before.map(|candidates| candidates.scores), keys.address)?;
            before = Some(candidates);
            self.turn = 1 - self.turn;
        }
        Ok(keys)
    }

    /// The documents of the first list that pass the filter, and its row.
    fn start(&mut self, list: &StepList<'_>) -> Result<(ListRow, Candidates), GpuError> {
        let list = self.run.upload_whole(list)?;
        let candidates = match list {
            ListRow::Sparse(row) => {
                let decoded = self.decode_all(&row)?;
                let all = DeviceList { documents: decoded.documents, length: row.postings };
                let candidates = self.keep(DenseRow::default(), self.run.filter(), all, "decode")?;
                Candidates { decoded, ..candidates }
            }
            ListRow::Dense(row) => self.expand(row)?,
        };
        Ok((list, candidates))
    }

    /// The candidates that a further list holds, and its row.
    fn intersect(&mut self, list: &StepList<'_>, candidates: DeviceList) -> Result<(ListRow, Candidates), GpuError> {
        let postings = match list.row {
            ListRow::Sparse(row) => row.postings,
            ListRow::Dense(row) => row.postings,
        };
        let way = Intersection::choose(self.algorithm, candidates.length, postings);
        let uploaded = match (way, list.row) {
            (Intersection::SkipSearch, ListRow::Sparse(_)) => self.run.upload_directory(list)?,
            _ => self.run.upload_whole(list)?,
        };
        let row = match uploaded {
            ListRow::Sparse(row) => row,
            ListRow::Dense(row) => return Ok((uploaded, self.keep(row, Address::NULL, candidates, "intersect")?)),
        };
        let candidates = match way {
            Intersection::MergePath => self.merge(&row, candidates)?,
            Intersection::SkipSearch => self.search(list, &row, candidates)?,
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
        let scratch = self.run.scratch(|scratch| &mut scratch.found[turn], bytes)?;
        let operands = Operands { lists, origins: next.origins, scratch };
        let found = merge_path::gpu(self.run.begin()?, STREAM, operands, partitions)?;
        self.intersected(Candidates { decoded, ..next }, found)
    }

    fn merge_find(&mut self, row: &SparseRow, candidates: DeviceList) -> Result<Candidates, GpuError> {
        let (decoded, turn) = (self.decode_all(row)?, self.turn);
        let lists = [candidates, DeviceList { documents: decoded.documents, length: row.postings }];
        let next = self.next(candidates.length)?;
        let bytes = parallel_merge_find::scratch_bytes(candidates, MERGE_FIND_LEVELS);
        let scratch = self.run.scratch(|scratch| &mut scratch.found[turn], bytes)?;
        let operands = Operands { lists, origins: next.origins, scratch };
        let found = parallel_merge_find::gpu(self.run.begin()?, STREAM, operands, MERGE_FIND_LEVELS)?;
        self.intersected(Candidates { decoded, ..next }, found)
    }

    /// Keeps the candidates in the plan's range that are in a bitmap, and pass a filter; an empty row and a null filter
    /// have all.
    fn keep(
        &mut self,
        row: DenseRow,
        filter: Address,
        candidates: DeviceList,
        name: &'static str,
    ) -> Result<Candidates, GpuError> {
        let tiles = candidates.length.div_ceil(TILE);
        self.by_bits((row, filter), candidates, (tiles, candidates.length), name)
    }

    /// The documents of a bitmap in the plan's range that pass the filter.
    fn expand(&mut self, row: DenseRow) -> Result<Candidates, GpuError> {
        let range = &self.run.plan.range;
        // The first chunk may begin before the range.
        let tiles = (range.end - range.start / CHUNK * CHUNK).div_ceil(EXPANDED_TILE);
        let most = row.postings.min(range.len() as u32);
        let bits = (row, self.run.filter());
        self.by_bits(bits, DeviceList { documents: Address::NULL, length: most }, (tiles, most), "decode")
    }

    fn by_bits(
        &mut self,
        (row, filter): (DenseRow, Address),
        candidates: DeviceList,
        (tiles, most): (u32, u32),
        name: &'static str,
    ) -> Result<Candidates, GpuError> {
        let (turn, range) = (self.turn, self.run.plan.range.clone());
        let next = self.next(most)?;
        let lay_out = |layout: &mut ScratchLayout| Lookback::with_results(layout, tiles, most);
        let (lookback, results) = self.run.lay_out(|scratch| &mut scratch.found[turn], lay_out)?;
        let arguments = BitsArguments {
            list: row,
            filter,
            candidates: candidates.documents,
            results,
            origins: next.origins,
            lookback,
            count: candidates.length,
            first: range.start,
            end: range.end,
            reserved: 0,
        };
        let is_expanded = candidates.documents == Address::NULL;
        let kernel = if is_expanded { &TERM_AT_A_TIME_EXPAND } else { &TERM_AT_A_TIME_FILTER };
        self.run.launch_tiles(kernel, lookback, &arguments, name)?;
        let [length] = self.run.read([lookback.total])?;
        Ok(Candidates { list: DeviceList { documents: results, length: length.min(most) }, ..next })
    }

    /// Ends an intersection and waits for its result.
    fn intersected(&mut self, next: Candidates, found: Found) -> Result<Candidates, GpuError> {
        self.run.end("intersect")?;
        let [length] = self.run.read([found.count])?;
        let length = length.min(next.list.length);
        Ok(Candidates { list: DeviceList { documents: found.documents, length }, ..next })
    }

    /// Buffers for at most `most` candidates.
    pub(super) fn next(&mut self, most: u32) -> Result<Candidates, GpuError> {
        let turn = self.turn;
        let lay_out = |layout: &mut ScratchLayout| [0, 1, 2].map(|_| layout.take(4 * most as usize));
        let [shorter, longer, scores] = self.run.lay_out(|scratch| &mut scratch.scored[turn], lay_out)?;
        let list = DeviceList { documents: Address::NULL, length: most };
        Ok(Candidates { list, origins: Origins { shorter, longer }, scores, decoded: DecodedBlocks::default() })
    }

    fn decode_all(&mut self, row: &SparseRow) -> Result<DecodedBlocks, GpuError> {
        let decoded = self.run.lay_out(|scratch| &mut scratch.list, |layout| place_blocks(layout, row.blocks))?;
        self.decode(&self.blocks_arguments(row, decoded), row.blocks)?;
        self.note_decoded(row, row.blocks);
        Ok(decoded)
    }

    /// Decodes at most `most` blocks of a list.
    pub(super) fn decode(&mut self, arguments: &BlocksArguments, most: u32) -> Result<(), GpuError> {
        let shape = self.run.warps(most, STEP_SHARED);
        self.run.begin()?.launch(STREAM, &TERM_AT_A_TIME_DECODE, shape, arguments)?;
        self.run.end("decode")
    }

    pub(super) fn blocks_arguments(&self, row: &SparseRow, decoded: DecodedBlocks) -> BlocksArguments {
        BlocksArguments { list: *row, decoded, codecs: self.codecs, ..BlocksArguments::default() }
    }

    pub(super) fn note_decoded(&mut self, row: &SparseRow, blocks: u32) {
        let work = &mut self.run.work;
        work.blocks_decoded += u64::from(blocks);
        work.blocks_skipped += u64::from(row.blocks - blocks);
        work.postings_decoded += (u64::from(blocks) * BLOCK as u64).min(u64::from(row.postings));
    }

    /// Adds the weights of a list to the scores of candidates; with the last list, makes keys of them.
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
        let (documents, (ranks, alpha)) = (&self.run.context.residency.documents, self.run.ranks());
        let arguments = WeighArguments {
            sparse,
            dense,
            decoded: candidates.decoded,
            candidates: candidates.list.documents,
            origins: candidates.origins,
            before: before.unwrap_or(Address::NULL),
            scores: candidates.scores,
            keys,
            length_codes: documents.length_codes(),
            norms: documents.norms(),
            ranks,
            count: candidates.list.length,
            weights_codec: self.codecs.weights,
            alpha,
            reserved: 0,
        };
        let kernel = match self.run.plan.score.column() {
            Column::Frequency => &TERM_AT_A_TIME_WEIGH_FREQUENCY,
            Column::Impact => &TERM_AT_A_TIME_WEIGH_IMPACT,
        };
        let grid = candidates.list.length.div_ceil(THREADS);
        let gpu = self.run.begin()?;
        gpu.launch(STREAM, kernel, Shape { grid, block: THREADS, shared: 0 }, &arguments)?;
        self.run.end("weigh")
    }
}

/// Lays out the decoded documents of `blocks` blocks.
pub(super) fn place_blocks(layout: &mut ScratchLayout, blocks: u32) -> DecodedBlocks {
    DecodedBlocks {
        documents: layout.take(4 * BLOCK * blocks as usize),
        weights_at: layout.take(4 * blocks as usize),
        capacity: blocks,
        ..DecodedBlocks::default()
    }
}
