//! A batch of plans in the form that kernels read: rows, how queries are divided among thread blocks, and where their
//! answers go.

use super::Context;
use super::kernels::{
    AND_BLOCKS_PER_SM, AND_THREADS, DenseRow, NONE, OR_BLOCKS_PER_SM, OR_BLOCKS_PER_SM_ANY, QueryRow, SINGLE_LISTS,
    SingleRows, SparseRow, TABLE_BUCKETS, WIDEST_WINDOW,
};
use super::plan_rows::{ListRows, Listed, PlanRows, StageRow};
use super::residency::filters::PlacedFilters;
use super::residency::{Pin, Placing};
use super::rows::{DensePlacement, SparsePlacement};
use super::submission::Job;
use super::upload::UploadPlan;
use crate::query::plan::Operation;
use lanner_gpu::device::Address;
use lanner_index::codec::CodecName;
use lanner_index::format::dense::CHUNK;
use lanner_index::open::Index;
use std::cmp::Reverse;
use std::ops::Range;

/// A batch is divided into this many parts for each thread block that the device runs at once, so that all SMs finish
/// at about the same time: ORs, whose work is predicted less well, into more than ANDs. A single query gets one wave of
/// thread blocks; a second wave would serialize. Like all constants here, measured in decision 17.
const AND_WAVES: u32 = 8;
const OR_WAVES: u32 = 16;
/// The fewest documents in a part of an OR, or of an AND of bitmaps.
const FEWEST_DOCUMENTS: u32 = 32_768;
/// The fewest slices of blocks of the shortest list in a part of any other AND: one for each warp.
const FEWEST_SLICES: u32 = AND_THREADS / 32;
/// The binary logarithm of the most slices of a block: one for each lane.
const MOST_SLICES: u32 = 5;
/// The binary logarithm of the slices of a block whose documents are looked up in bitmaps: a warp looks up a slice at
/// once.
const SLICES_FOR_BITMAPS: u32 = 2;

/// The rows of a batch, and the numbers that the host needs to launch it and to read its answers.
#[derive(Debug, Default)]
pub struct Batch {
    /// The stages of the plans.
    pub queries: Vec<QueryRow>,
    /// Their sparse lists.
    pub sparse: Vec<SparseRow>,
    /// Their dense lists.
    pub dense: Vec<DenseRow>,
    /// `and_parts[i]`: the AND of which thread block `i` answers a part.
    pub and_parts: Vec<u32>,
    /// `or_parts[i]`: the OR of which thread block `i` answers a part.
    pub or_parts: Vec<u32>,
    /// The largest number of sparse lists of an OR.
    pub most_sparse: usize,
    /// `blocks[query]`: blocks of its lists that can hold a document of the plan's range.
    pub blocks: Vec<u64>,
    /// `stages[plan]`: its stages, as positions in `queries`.
    pub stages: Vec<Range<usize>>,
    /// Keys of the answers.
    pub answer_keys: usize,
    /// Keys of the arena.
    pub arena_keys: u64,
    /// The lists that are uploaded, and the rows of these.
    pub upload: UploadPlan,
    uploaded: OfRows<u32>,
    /// For each row of a list, the bytes that are predicted to be read in host memory.
    from_host: OfRows<f32>,
    /// `bytes_from_host[query]`: the same for all lists of its plan.
    pub bytes_from_host: Vec<u64>,
    /// Keeps what the batch names where it is; to be dropped when the batch has ended.
    pub pin: Option<Pin>,
    longest_first: Vec<JoinedJob>,
}

/// Numbers of, or for, the rows of sparse and of dense lists.
#[derive(Debug, Default)]
struct OfRows<T> {
    sparse: Vec<T>,
    dense: Vec<T>,
}

/// A job of a batch.
#[derive(Debug)]
struct JoinedJob {
    /// Its predicted work.
    work: u64,
    number: u32,
    /// Where the rows of its lists begin.
    sparse: u32,
    dense: u32,
}

impl OfRows<f32> {
    /// The sum over consecutive rows of both kinds.
    fn sum(&self, sparse: u32, sparse_count: usize, dense: u32, dense_count: usize) -> f32 {
        let of = |bytes: &[f32], first: u32, count: usize| bytes[first as usize..][..count].iter().sum::<f32>();
        of(&self.sparse, sparse, sparse_count) + of(&self.dense, dense, dense_count)
    }
}

/// The share of the device that a query gets.
struct Share {
    /// The most parts.
    parts: u32,
    /// Thread blocks that run at once.
    concurrent: u32,
}

/// The predicted work of a batch, by operation.
#[derive(Default)]
struct BatchWork {
    and: u64,
    or: u64,
}

/// How the thread blocks of each operation are divided among the plans of a batch, in proportion to their predicted
/// work.
struct Division {
    and: Divided,
    or: Divided,
}

/// The thread blocks of one operation. Shares are computed for every job of a batch: by multiplications, since integer
/// divisions would take longer than the rest of its row.
struct Divided {
    /// Parts of the batch for each unit of work.
    parts_per_work: f64,
    /// Thread blocks that run at once, for each part.
    concurrent_per_part: f64,
}

impl Division {
    fn new(context: &Context<'_>, jobs: usize, work: &BatchWork) -> Division {
        let or_blocks = if is_bitpack(context.index) { OR_BLOCKS_PER_SM } else { OR_BLOCKS_PER_SM_ANY };
        let of = |blocks_per_sm: u32, waves: u32, work: u64| {
            let waves = if jobs == 1 { 1 } else { waves };
            let parts = waves * blocks_per_sm * context.gpu.properties().multiprocessors;
            let parts_per_work = f64::from(parts) / work.max(1) as f64;
            Divided { parts_per_work, concurrent_per_part: 1.0 / f64::from(waves) }
        };
        Division { and: of(AND_BLOCKS_PER_SM, AND_WAVES, work.and), or: of(or_blocks, OR_WAVES, work.or) }
    }

    fn share(&self, stage: &StageRow) -> Share {
        let Divided { parts_per_work, concurrent_per_part } = match stage.operation {
            Operation::And => &self.and,
            Operation::Or => &self.or,
        };
        // A plan that is alone gets all parts, whatever the rounding.
        let parts = stage.work as f64 * parts_per_work + 1e-3;
        Share { parts: (parts as u32).max(1), concurrent: (parts * concurrent_per_part) as u32 }
    }
}

impl Batch {
    /// Joins the rows of some stages of plans; each plan has stages, a k above 0 and documents. `filters` has those of
    /// all jobs. Lists that are uploaded get addresses from 0 on until [`Batch::place_upload`].
    ///
    /// Reuses the memory of an earlier batch: allocating here would contend with callers that free this thread's
    /// memory.
    pub(crate) fn join(
        self,
        context: &Context<'_>,
        jobs: &[Job],
        stages: Range<usize>,
        filters: &PlacedFilters,
    ) -> Batch {
        let mut batch = self.emptied(jobs.len());
        // Only single queries run in some of their stages.
        let reads = if jobs.len() == 1 { jobs[0].rows().reads(&stages) } else { 1.0 };
        let mut placing = context.residency.placing(jobs.len(), jobs[0].column(), reads);
        let (mut longest_first, mut work) = (std::mem::take(&mut batch.longest_first), BatchWork::default());
        // In the order of memory, since all of it is in the caches of other cores: the hardware prefetches.
        for jobs in jobs.chunk_by(Job::is_before) {
            let lists = Job::lists_of(jobs);
            let (sparse, dense) = (batch.sparse.len() as u32, batch.dense.len() as u32);
            batch.add_lists(&mut placing, lists);
            for job in jobs {
                let rows = job.rows();
                for stage in rows.stages {
                    match stage.operation {
                        Operation::And => work.and += stage.work,
                        Operation::Or => work.or += stage.work,
                    }
                }
                let (sparse_start, dense_start) = lists.starts_of(job.row_ranges());
                let (sparse, dense) = (sparse + sparse_start, dense + dense_start);
                let number = longest_first.len() as u32;
                longest_first.push(JoinedJob { work: rows.work(), number, sparse, dense });
            }
        }
        batch.pin = placing.finish();
        let division = Division::new(context, jobs.len(), &work);
        // Short queries fill the gaps at the end.
        longest_first.sort_unstable_by_key(|job| (Reverse(job.work), job.number));
        for job in &longest_first {
            let (number, first) = (job.number as usize, batch.queries.len());
            let (rows, filter) = (jobs[number].rows(), filters.address_of(number));
            let bytes = batch.from_host.sum(job.sparse, rows.sparse.len(), job.dense, rows.dense.len());
            for stage in rows.stages.iter().take(stages.end).skip(stages.start) {
                batch.push(stage, (rows, job), division.share(stage), filter);
                batch.bytes_from_host.push((bytes * stage.reads / reads) as u64);
            }
            // A stage is skipped if the one before it has k hits.
            let later = batch.queries[first..].iter_mut().skip(1);
            later.zip(first as u32..).for_each(|(query, before)| query.after = before);
            batch.stages[number] = first..batch.queries.len();
        }
        batch.longest_first = longest_first;
        batch
    }

    /// An empty batch of `jobs` jobs with the memory of this one.
    fn emptied(self, jobs: usize) -> Batch {
        fn empty<T>(mut values: Vec<T>) -> Vec<T> {
            values.clear();
            values
        }
        let mut stages = empty(self.stages);
        stages.resize(jobs, 0..0);
        Batch {
            queries: empty(self.queries),
            sparse: empty(self.sparse),
            dense: empty(self.dense),
            and_parts: empty(self.and_parts),
            or_parts: empty(self.or_parts),
            blocks: empty(self.blocks),
            longest_first: empty(self.longest_first),
            bytes_from_host: empty(self.bytes_from_host),
            uploaded: OfRows { sparse: empty(self.uploaded.sparse), dense: empty(self.uploaded.dense) },
            from_host: OfRows { sparse: empty(self.from_host.sparse), dense: empty(self.from_host.dense) },
            stages,
            ..Batch::default()
        }
    }

    /// Adds rows of lists, with their addresses.
    fn add_lists(&mut self, placing: &mut Placing<'_>, rows: ListRows<'_>) {
        let Batch { sparse, dense, uploaded, upload, from_host, .. } = self;
        for listed in rows.sparse {
            let (row, bytes) = placing.sparse(listed).unwrap_or_else(|| {
                uploaded.sparse.push(sparse.len() as u32);
                (listed.row.placed(SparsePlacement::whole(Address(upload.add(listed.span) as u64))), 0.0)
            });
            sparse.push(row);
            from_host.sparse.push(bytes);
        }
        for listed in rows.dense {
            let (row, bytes) = placing.dense(listed).unwrap_or_else(|| {
                uploaded.dense.push(dense.len() as u32);
                (listed.row.placed(DensePlacement::whole(Address(upload.add(listed.span) as u64))), 0.0)
            });
            dense.push(row);
            from_host.dense.push(bytes);
        }
    }

    /// Says where on the device the uploaded lists will lie.
    pub fn place_upload(&mut self, address: Address) {
        for &row in &self.uploaded.sparse {
            let row = &mut self.sparse[row as usize];
            *row = row.placed(SparsePlacement::whole(address));
        }
        for &row in &self.uploaded.dense {
            let row = &mut self.dense[row as usize];
            *row = row.placed(DensePlacement::whole(address));
        }
    }

    /// The rows of a single query, if there are few enough to travel with the launch.
    pub fn single(&self) -> Option<SingleRows> {
        let [query] = self.queries[..] else {
            return None;
        };
        let fits = self.sparse.len() <= SINGLE_LISTS && self.dense.len() <= SINGLE_LISTS && self.upload.bytes() == 0;
        fits.then(|| {
            let mut rows = SingleRows { query, ..SingleRows::default() };
            rows.sparse[..self.sparse.len()].copy_from_slice(&self.sparse);
            rows.dense[..self.dense.len()].copy_from_slice(&self.dense);
            rows
        })
    }

    fn push(&mut self, stage: &StageRow, (rows, job): (PlanRows<'_>, &JoinedJob), share: Share, filter: Address) {
        let parts = Parts::new(stage, rows, share);
        let all_parts = match stage.operation {
            Operation::And => &mut self.and_parts,
            Operation::Or => &mut self.or_parts,
        };
        let (query, first_part) = (self.queries.len() as u32, all_parts.len());
        all_parts.resize(first_part + parts.count as usize, query);
        let StageRow { k, seed, capacity, shift, static_bound, alpha, .. } = *stage;
        self.queries.push(QueryRow {
            sparse: job.sparse,
            sparse_count: rows.sparse.len() as u32,
            dense: job.dense,
            dense_count: rows.dense.len() as u32,
            first: rows.range.start,
            end: rows.range.end,
            k,
            seed,
            sum: rows.bounds,
            window: window(rows.postings, rows.documents, parts.length.min(parts.over.len() as u32)),
            answer: self.answer_keys as u32,
            after: NONE,
            parts: parts.count,
            first_part: first_part as u32,
            parts_first: parts.over.start,
            parts_end: parts.over.end,
            part_length: parts.length,
            capacity,
            shift,
            slices: parts.slices,
            keys: self.arena_keys,
            filter,
            static_bound,
            alpha,
        });
        self.blocks.push(rows.blocks);
        self.answer_keys += k as usize;
        self.arena_keys += u64::from(parts.count) * (u64::from(k) + u64::from(capacity));
        if stage.operation == Operation::Or {
            self.most_sparse = self.most_sparse.max(rows.sparse.len());
        }
    }
}

/// How a query is divided among thread blocks.
struct Parts {
    /// The range that is divided: documents, or slices of the blocks of the shortest list.
    over: Range<u32>,
    length: u32,
    count: u32,
    /// The binary logarithm of the slices of a block.
    slices: u32,
}

impl Parts {
    fn new(stage: &StageRow, rows: PlanRows<'_>, share: Share) -> Parts {
        let (over, fewest, unit, slices) = match (stage.operation, rows.sparse.first()) {
            (Operation::And, Some(Listed { row: shortest, .. })) => {
                let slices = slices(shortest.blocks, share.concurrent).min(most_slices(rows));
                (0..shortest.blocks << slices, FEWEST_SLICES, 1, slices)
            }
            _ => (rows.range.start / CHUNK * CHUNK..rows.range.end, FEWEST_DOCUMENTS, CHUNK, 0),
        };
        let length = part_length(over.len() as u32, share.parts, fewest, unit);
        Parts { count: (over.len() as u32).div_ceil(length), over, length, slices }
    }
}

/// Whether all lists are packed by bitpack, which has kernels compiled for it alone.
pub fn is_bitpack(index: &Index) -> bool {
    let codecs = index.segment().list_context().codecs;
    [codecs.documents, codecs.weights].iter().all(|&codec| codec == CodecName::Bitpack)
}

/// The length of parts, of which there are up to `share`: at least `fewest`, and a multiple of `unit`.
fn part_length(length: u32, share: u32, fewest: u32, unit: u32) -> u32 {
    let longest = u32::MAX / unit * unit;
    length.div_ceil(share).max(fewest).checked_next_multiple_of(unit).unwrap_or(longest)
}

/// The binary logarithm of the slices into which blocks can be divided such that each slice has a warp.
fn slices(blocks: u32, concurrent: u32) -> u32 {
    (concurrent.saturating_mul(AND_THREADS / 32) / blocks.max(1)).checked_ilog2().unwrap_or(0)
}

/// The binary logarithm of the most slices that pay: each slice should decode other blocks of the longest list.
fn most_slices(rows: PlanRows<'_>) -> u32 {
    let blocks = |row: Option<&Listed<SparseRow>>| row.map_or(1, |it| it.row.blocks.max(1));
    let for_blocks = (blocks(rows.sparse.last()) / blocks(rows.sparse.first())).checked_ilog2().unwrap_or(0);
    let for_bitmaps = if rows.dense.is_empty() { 0 } else { SLICES_FOR_BITMAPS };
    for_blocks.max(for_bitmaps).min(MOST_SLICES)
}

/// Documents of a scatter window: as many as fill half of the hash table with postings, or a whole part if its postings
/// do not fill much more.
fn window(postings: u64, documents: u32, part: u32) -> u32 {
    let fill = |buckets: u32| u64::from(buckets) * u64::from(documents) / postings.max(1);
    if part <= WIDEST_WINDOW && u64::from(part) <= fill(TABLE_BUCKETS / 10 * 7) {
        return part.next_multiple_of(CHUNK);
    }
    fill(TABLE_BUCKETS / 2).clamp(u64::from(TABLE_BUCKETS), u64::from(WIDEST_WINDOW)) as u32 / CHUNK * CHUNK
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
        assert_eq!(cases.map(|(blocks, concurrent)| slices(blocks, concurrent)), [0, 2, 3, 2, 0, 0, 1]);
    }

    #[test]
    fn slices_have_blocks_of_their_own_in_another_list() {
        let sparse = |&blocks: &u32| {
            let row = SparseRow { blocks, ..SparseRow::default() };
            Listed { row, ..Listed::default() }
        };
        let most_slices = |blocks: &[u32], bitmaps: usize| {
            let sparse: Vec<Listed<SparseRow>> = blocks.iter().map(sparse).collect();
            let dense = vec![Listed::<DenseRow>::default(); bitmaps];
            most_slices(PlanRows { sparse: &sparse, dense: &dense, ..PlanRows::default() })
        };
        assert_eq!([&[1][..], &[5, 9], &[5, 9, 20], &[1, 1000]].map(|blocks| most_slices(blocks, 0)), [0, 0, 2, 5]);
        assert_eq!([&[1][..], &[5, 9], &[1, 1000]].map(|blocks| most_slices(blocks, 1)), [2, 2, 5]);
    }

    #[test]
    fn a_plan_that_is_alone_gets_all_parts_and_others_share_them_by_their_work() {
        let divided = |parts: u32, work: u64, waves: f64| Divided {
            parts_per_work: f64::from(parts) / work as f64,
            concurrent_per_part: 1.0 / waves,
        };
        let share = |or: Divided, work: u64| {
            let (static_bound, alpha) = (0, 0.0);
            let stage = StageRow {
                operation: Operation::Or,
                k: 1,
                seed: 0,
                capacity: 0,
                shift: 0,
                static_bound,
                alpha,
                work,
                reads: 1.0,
            };
            let Share { parts, concurrent } = Division { and: divided(0, 1, 1.0), or }.share(&stage);
            (parts, concurrent)
        };
        for work in [1, 3, 7, 1_000_003, 49_999_991, u64::from(u32::MAX) * 1024] {
            for parts in [1, 132, 396, 528] {
                assert_eq!(share(divided(parts, work, 1.0), work), (parts, parts), "{work}");
            }
        }
        assert_eq!(share(divided(8 * 528, 1_000_000, 8.0), 500_000), (4 * 528, 264));
        assert_eq!(share(divided(8 * 528, 1_000_000, 8.0), 1), (1, 0));
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
}
