//! A batch of plans as kernels read it: rows, how queries are divided among thread blocks, and where answers come out.

use super::resident::Resident;
use super::rows::ListRow;
use super::upload::Parcel;
use crate::device::kernels::{
    ALONE_LISTS, AND_BLOCKS_PER_SM, AND_THREADS, AloneRows, DenseRow, NONE, OR_BLOCKS_PER_SM, OR_BLOCKS_PER_SM_ANY,
    OR_THREADS, QueryRow, SCORE_BINS, SHARED_KEYS, SparseRow, TABLE_BUCKETS, WIDEST_WINDOW,
};
use crate::query::plan::{Operation, Plan, PlannedList, Stage};
use lanner_gpu::device::Address;
use lanner_index::codec::CodecName;
use lanner_index::format::IndexError;
use lanner_index::open::Index;
use std::cmp::Reverse;
use std::ops::Range;

/// A batch is divided into so many parts for each thread block that the device runs at once: all processors then end
/// at about the same time.
const PARTS_A_PLACE: u64 = 16;
/// No part of an OR, or of an AND of bitmaps, has fewer documents.
const FEWEST_DOCUMENTS: u32 = 16_384;
/// No part of another AND has fewer slices of blocks of its shortest list: one a warp.
const FEWEST_SLICES: u32 = AND_THREADS / 32;
/// Slices of a block, as powers of two: at most one for each lane; of documents that are looked up in bitmaps, so many
/// that a warp looks its own up at once.
const MOST_SLICES: u32 = 5;
const SLICES_FOR_BITMAPS: u32 = 2;

/// Rows, and what they say of one another.
#[derive(Debug, Default)]
pub struct Batch {
    /// Stages of plans.
    pub queries: Vec<QueryRow>,
    /// Their lists in blocks.
    pub sparse: Vec<SparseRow>,
    /// Their bitmaps.
    pub dense: Vec<DenseRow>,
    /// The AND of which each thread block answers a part.
    pub and_parts: Vec<u32>,
    /// The OR, likewise.
    pub or_parts: Vec<u32>,
    /// The most lists in blocks of an OR.
    pub most_sparse: usize,
    /// For each query the blocks of its lists that can hold one of its documents.
    pub blocks: Vec<u64>,
    /// For each plan its stages, as places in `queries`.
    pub stages: Vec<Range<usize>>,
    /// Keys of the answers.
    pub answer_keys: usize,
    /// Keys of the arena.
    pub arena_keys: u64,
    /// The lists that do not lie on the device.
    pub parcel: Parcel,
}

/// What a query has of the device: up to so many parts, and thread blocks that run at once.
struct Share {
    parts: u32,
    places: u32,
}

/// The lists of a query.
#[derive(Default)]
struct Rows {
    sparse: Vec<SparseRow>,
    dense: Vec<DenseRow>,
    /// Blocks that can hold a document of the plan.
    blocks: u64,
}

impl Batch {
    /// Makes the rows of some stages of plans, each with stages, a k and documents. Lists that do not lie on the device are
    /// counted from address 0 on; see [`Batch::place_parcel`].
    pub fn new(
        index: &Index,
        resident: &Resident,
        plans: &[&Plan],
        stages: Range<usize>,
        processors: u32,
    ) -> Result<Batch, IndexError> {
        let mut batch = Batch { stages: vec![0..0; plans.len()], ..Batch::default() };
        // One query alone has each place once: whoever comes second would make it wait.
        let waves = if plans.len() == 1 { 1 } else { PARTS_A_PLACE };
        let or_places = if is_bitpack(index) { OR_BLOCKS_PER_SM } else { OR_BLOCKS_PER_SM_ANY };
        let all = [(Operation::And, AND_BLOCKS_PER_SM), (Operation::Or, or_places)].map(|(operation, places)| {
            let stages = plans.iter().filter(|plan| plan.stages.iter().any(|stage| stage.operation == operation));
            let cost = stages.map(|plan| stage_cost(plan, operation)).sum::<u64>().max(1);
            (operation, waves * u64::from(places) * u64::from(processors), cost)
        });
        let share = |plan: &Plan, stage: &Stage| {
            let found = all.iter().find(|(operation, ..)| *operation == stage.operation);
            let (parts, cost) = found.map_or((1, 1), |&(_, parts, cost)| (parts, cost));
            let parts = u128::from(parts) * u128::from(stage_cost(plan, stage.operation)) / u128::from(cost);
            Share { parts: parts.max(1) as u32, places: (parts / u128::from(waves)) as u32 }
        };
        let mut order: Vec<(u64, usize)> = plans.iter().zip(0..).map(|(plan, number)| (cost(plan), number)).collect();
        // The longest first: the short ones fill the gaps at the end.
        order.sort_by_key(|&(cost, number)| (Reverse(cost), number));
        for (_, number) in order {
            let first = batch.queries.len();
            for stage in plans[number].stages.iter().take(stages.end).skip(stages.start) {
                let rows = batch.rows(index, resident, plans[number])?;
                let after = if batch.queries.len() > first { batch.queries.len() as u32 - 1 } else { NONE };
                batch.push(plans[number], stage, rows, after, share(plans[number], stage));
            }
            batch.stages[number] = first..batch.queries.len();
        }
        Ok(batch)
    }

    /// The rows of a plan's lists, in the order in which kernels want them.
    fn rows(&mut self, index: &Index, resident: &Resident, plan: &Plan) -> Result<Rows, IndexError> {
        let mut rows = Rows::default();
        for list in plan.lists.iter() {
            let address = match resident.address(list.span) {
                Some(address) => address,
                None => Address(self.parcel.add(list.span) as u64),
            };
            match ListRow::new(index, plan, list, address)? {
                ListRow::Sparse(row) => {
                    rows.blocks += blocks_within(index, plan, list, row.blocks)?;
                    rows.sparse.push(row);
                }
                ListRow::Dense(row) => rows.dense.push(row),
            }
        }
        rows.sparse.sort_by_key(|row| row.postings);
        rows.dense.sort_by_key(|row| Reverse(row.bound));
        Ok(rows)
    }

    /// Says where the lists of the parcel are going to lie.
    pub fn place_parcel(&mut self, address: Address) {
        if self.parcel.bytes() > 0 {
            self.sparse.iter_mut().for_each(|row| row.bytes = address.plus(row.bytes.0 as usize));
            self.dense.iter_mut().for_each(|row| row.bytes = address.plus(row.bytes.0 as usize));
        }
    }

    /// The rows of a query that is alone, if they are few enough to travel with the launch.
    pub fn alone(&self) -> Option<AloneRows> {
        let [query] = self.queries[..] else {
            return None;
        };
        let fits = self.sparse.len() <= ALONE_LISTS && self.dense.len() <= ALONE_LISTS && self.parcel.bytes() == 0;
        fits.then(|| {
            let mut rows = AloneRows { query, ..AloneRows::default() };
            rows.sparse[..self.sparse.len()].copy_from_slice(&self.sparse);
            rows.dense[..self.dense.len()].copy_from_slice(&self.dense);
            rows
        })
    }

    fn push(&mut self, plan: &Plan, stage: &Stage, rows: Rows, after: u32, share: Share) {
        let query = self.queries.len() as u32;
        let Range { start: first, end } = plan.range;
        let sum = rows.sparse.iter().fold(0u32, |sum, row| sum.saturating_add(row.bound));
        let postings = rows.sparse.iter().map(|row| u64::from(row.postings)).sum::<u64>();
        let (over, fewest, slices) = match (stage.operation, rows.sparse.first()) {
            (Operation::And, Some(shortest)) => {
                let slices = slices(shortest.blocks, share.places).min(most_slices(&rows));
                (0..shortest.blocks << slices, FEWEST_SLICES, slices)
            }
            _ => (first / 64 * 64..end, FEWEST_DOCUMENTS, 0),
        };
        let unit = if fewest == FEWEST_DOCUMENTS { 64 } else { 1 };
        let part_length = part_length(over.len() as u32, share.parts, fewest, unit);
        let parts = (over.len() as u32).div_ceil(part_length);
        let all_parts = match stage.operation {
            Operation::And => &mut self.and_parts,
            Operation::Or => &mut self.or_parts,
        };
        let first_part = all_parts.len();
        all_parts.resize(first_part + parts as usize, query);
        let k = plan.k.min(plan.range.len()) as u32;
        let (room, seed) = (room(k), plan.seed_of(stage));
        self.queries.push(QueryRow {
            sparse: self.sparse.len() as u32,
            sparse_count: rows.sparse.len() as u32,
            dense: self.dense.len() as u32,
            dense_count: rows.dense.len() as u32,
            first,
            end,
            k,
            seed,
            sum,
            window: window(postings, plan.documents, part_length.min(over.len() as u32)),
            answer: self.answer_keys as u32,
            after,
            parts,
            first_part: first_part as u32,
            parts_first: over.start,
            parts_end: over.end,
            part_length,
            capacity: room,
            shift: shift(plan.largest_score.saturating_sub(seed)),
            slices,
            keys: self.arena_keys,
        });
        self.blocks.push(rows.blocks);
        self.answer_keys += k as usize;
        self.arena_keys += u64::from(parts) * (u64::from(k) + u64::from(room));
        if stage.operation == Operation::Or {
            self.most_sparse = self.most_sparse.max(rows.sparse.len());
        }
        self.sparse.extend(rows.sparse);
        self.dense.extend(rows.dense);
    }
}

/// Whether all lists are packed by bitpack, for which kernels of their own are compiled.
pub fn is_bitpack(index: &Index) -> bool {
    let codecs = index.segment().list_context().codecs;
    [codecs.documents, codecs.weights].iter().all(|&codec| codec == CodecName::Bitpack)
}

/// Of a list's blocks those that can hold a document of the plan.
fn blocks_within(index: &Index, plan: &Plan, list: &PlannedList, blocks: u32) -> Result<u64, IndexError> {
    if plan.range == (0..plan.documents) {
        return Ok(u64::from(blocks));
    }
    let list = index.list_at(list.span)?;
    let first = list.find_block(0, plan.range.start);
    let end = (list.find_block(first, plan.range.end - 1) + 1).min(list.blocks());
    Ok(end.saturating_sub(first) as u64)
}

/// What a plan costs, coarsely.
pub fn cost(plan: &Plan) -> u64 {
    plan.stages.iter().map(|stage| stage_cost(plan, stage.operation)).sum()
}

/// What a stage costs, coarsely, in postings that are decoded: it divides the device's thread blocks among plans.
fn stage_cost(plan: &Plan, operation: Operation) -> u64 {
    let of = |is_dense: bool| {
        plan.lists.iter().filter(move |list| list.is_dense == is_dense).map(|list| u64::from(list.postings))
    };
    let chunks = u64::from(plan.documents) / 64;
    let work = match (operation, of(false).min()) {
        // Every block that can hold a document of the shortest list is decoded.
        (Operation::And, Some(shortest)) => of(false).map(|postings| postings.min(128 * shortest)).sum(),
        // Some of the documents that match are looked up.
        (Operation::And, None) => chunks + of(true).min().unwrap_or(0) / 2,
        (Operation::Or, _) => chunks + of(false).sum::<u64>() + of(true).sum::<u64>() / 8,
    };
    let share = plan.range.len() as f64 / f64::from(plan.documents.max(1));
    (work as f64 * share) as u64 + 1
}

/// How long parts are, of which there are to be up to `share`: at least `fewest`, and a multiple of `unit`.
fn part_length(length: u32, share: u32, fewest: u32, unit: u32) -> u32 {
    let longest = u32::MAX / unit * unit;
    length.div_ceil(share).max(fewest).checked_next_multiple_of(unit).unwrap_or(longest)
}

/// Into how many slices so many blocks can be divided, as a power of two, for each to have a warp of its own.
fn slices(blocks: u32, places: u32) -> u32 {
    (places.saturating_mul(AND_THREADS / 32) / blocks.max(1)).checked_ilog2().unwrap_or(0)
}

/// Into how many it is worth while to divide blocks of the shortest list: each is to have blocks of its own in another.
fn most_slices(rows: &Rows) -> u32 {
    let blocks = |row: Option<&SparseRow>| row.map_or(1, |row| row.blocks.max(1));
    let for_blocks = (blocks(rows.sparse.last()) / blocks(rows.sparse.first())).checked_ilog2().unwrap_or(0);
    let for_bitmaps = if rows.dense.is_empty() { 0 } else { SLICES_FOR_BITMAPS };
    for_blocks.max(for_bitmaps).min(MOST_SLICES)
}

/// Documents that are looked at together: so many that their postings fill half of the table, or a whole part, if its
/// postings do not fill much more than that.
fn window(postings: u64, documents: u32, part: u32) -> u32 {
    let fill = |slots: u32| u64::from(slots) * u64::from(documents) / postings.max(1);
    if part <= WIDEST_WINDOW && u64::from(part) <= fill(TABLE_BUCKETS / 10 * 7) {
        return part.next_multiple_of(64);
    }
    fill(TABLE_BUCKETS / 2).clamp(u64::from(TABLE_BUCKETS), u64::from(WIDEST_WINDOW)) as u32 / 64 * 64
}

/// Keys that a part needs in the arena, a power of two with room for k and a push of every thread; 0 where shared memory
/// holds them.
fn room(k: u32) -> u32 {
    let needed = k.saturating_add(OR_THREADS.max(AND_THREADS)).checked_next_power_of_two().unwrap_or(1 << 31);
    if needed <= SHARED_KEYS { 0 } else { needed }
}

/// How far numbers up to this are to be shifted, so that each is a bin.
fn shift(largest: u32) -> u32 {
    (SCORE_BINS as u32 - 1).leading_zeros().saturating_sub(largest.leading_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_no_smaller_than_asked_for() {
        assert_eq!(
            [part_length(100, 4, 10, 1), part_length(100, 40, 30, 1), part_length(936, 3, 10, 64)],
            [25, 30, 320]
        );
        assert_eq!(part_length(u32::MAX, 1, 10, 64), u32::MAX - 63);
    }

    #[test]
    fn blocks_are_sliced_while_there_are_warps() {
        let cases = [(1, 0), (1, 1), (1, 2), (3, 4), (3169, 792), (3168, 792), (1584, 792)];
        assert_eq!(cases.map(|(blocks, places)| slices(blocks, places)), [0, 2, 3, 2, 0, 0, 1]);
    }

    #[test]
    fn slices_have_blocks_of_their_own_in_another_list() {
        let rows = |blocks: &[u32], bitmaps: usize| Rows {
            sparse: blocks.iter().map(|&blocks| SparseRow { blocks, ..SparseRow::default() }).collect(),
            dense: vec![DenseRow::default(); bitmaps],
            blocks: 0,
        };
        assert_eq!(
            [&[1][..], &[5, 9], &[5, 9, 20], &[1, 1000]].map(|blocks| most_slices(&rows(blocks, 0))),
            [0, 0, 2, 5]
        );
        assert_eq!([&[1][..], &[5, 9], &[1, 1000]].map(|blocks| most_slices(&rows(blocks, 1))), [2, 2, 5]);
    }

    #[test]
    fn a_window_is_a_part_or_as_wide_as_the_table_holds() {
        let documents = 25_000_000;
        assert_eq!(window(0, documents, documents), WIDEST_WINDOW);
        assert_eq!(window(25_000_000, documents, documents), TABLE_BUCKETS);
        assert_eq!(window(1_000_000, documents, 100_000), 51_200);
        assert_eq!(window(2_000_000, documents, 100_000), 25_600);
        assert_eq!(window(3_000_000, documents, 100_000), 17_024);
        assert_eq!([window(1_000_000, documents, 60_000), window(2_000_000, documents, 60_000)], [60_032, 25_600]);
        assert_eq!(window(0, documents, 1000), 1024);
    }

    #[test]
    fn the_largest_score_is_the_last_bin_or_before_it() {
        assert_eq!([0, 1, 1023, 1024, 2047, 2048, u32::MAX].map(shift), [0, 0, 0, 1, 1, 2, 22]);
    }

    #[test]
    fn a_large_k_lies_in_the_arena_with_room_for_a_push_of_every_thread() {
        assert_eq!([0, 10, 256, 257, 1000, 10_000].map(room), [0, 0, 0, 1024, 2048, 16_384]);
    }
}
