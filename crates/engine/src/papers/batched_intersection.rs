//! Intersections of many queries at once: PART gives a query to a thread block, PARA an element to a thread.
//!
//! The host sorts the lists of each query by length. A thread takes a document of the shortest list and searches for it
//! in all others. In PART a block does so for all documents of its query, one stretch after the other; its results lie
//! where the shortest list would have room, and blocks with short lists wait for those with long ones. In PARA a query
//! has as many blocks as its shortest list fills, a scan over all of them puts the results of all queries side by side,
//! and where those of each query begin is left too, so that nothing but results is downloaded.
//!
//! How many queries make a batch follows from the work: its load, the documents of its shortest lists, reaches a
//! threshold S x T x B: multiprocessors, threads of a block, blocks that a multiprocessor is to have.
//!
//! Wu et al., Efficient Lists Intersection by CPU-GPU Cooperative Computing (section IV).

use super::compaction::{DeviceList, ORDER_SHARED, Order, Places, THREADS, read_numbers};
use super::{BATCHED_INTERSECTION_PARA, BATCHED_INTERSECTION_PART};
use lanner_gpu::device::{Address, Command, Shape, Stream};
use lanner_gpu::error::GpuError;
use lanner_gpu::kernel::Argument;
use lanner_gpu::memory::{Gpu, Memory};
use std::ops::Range;

/// A list of a query; `batched_intersection.cu` says what the fields mean.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct BatchedList {
    pub documents: Address,
    pub length: u32,
    pub reserved: u32,
}

/// A query, likewise.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct BatchedQuery {
    pub first_list: u32,
    pub lists: u32,
    pub first_block: u32,
    pub first_result: u32,
}

/// What both kernels take, likewise.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct BatchedArguments {
    pub queries: Address,
    pub lists: Address,
    pub query_of_block: Address,
    pub results: Address,
    pub positions: Address,
    pub order: Order,
}

/// How much work a batch is to have.
#[derive(Clone, Copy, Debug)]
pub struct Threshold {
    /// S: multiprocessors of the device.
    pub multiprocessors: u32,
    /// T: threads of a block.
    pub threads: u32,
    /// B: blocks that a multiprocessor is to have.
    pub blocks: u32,
}

impl Threshold {
    /// S x T x B documents.
    pub fn documents(&self) -> u64 {
        u64::from(self.multiprocessors) * u64::from(self.threads) * u64::from(self.blocks)
    }
}

/// Cuts queries, given by the lengths of their shortest lists, into batches as they come: a batch is closed once its
/// load reaches the threshold. With a threshold of zero every query is a batch.
pub fn batches(loads: &[u32], threshold: u64) -> Vec<Range<usize>> {
    let mut batches = Vec::new();
    let (mut first, mut load) = (0, 0);
    for (query, &documents) in loads.iter().enumerate() {
        load += u64::from(documents);
        if load >= threshold {
            batches.push(first..query + 1);
            (first, load) = (query + 1, 0);
        }
    }
    if first < loads.len() {
        batches.push(first..loads.len());
    }
    batches
}

/// Queries as they are uploaded.
#[derive(Debug, Default)]
pub struct Batch {
    queries: Vec<BatchedQuery>,
    lists: Vec<BatchedList>,
    /// By block of PARA.
    query_of_block: Vec<u32>,
    /// The documents of all shortest lists.
    documents: u32,
}

impl Batch {
    /// Takes the lists of each query, at least one, and sorts them by length.
    ///
    /// # Panics
    /// If a query has no list, or the shortest lists have 2^32 documents together.
    pub fn new(queries: &[Vec<DeviceList>]) -> Batch {
        let mut batch = Batch::default();
        queries.iter().for_each(|lists| batch.add(lists));
        batch
    }

    fn add(&mut self, lists: &[DeviceList]) {
        let first = self.lists.len();
        let row = |list: &DeviceList| BatchedList { documents: list.documents, length: list.length, reserved: 0 };
        self.lists.extend(lists.iter().map(row));
        self.lists[first..].sort_by_key(|list| list.length);
        let shortest = self.lists[first].length;
        let query = self.queries.len() as u32;
        self.queries.push(BatchedQuery {
            first_list: first as u32,
            lists: lists.len() as u32,
            first_block: self.query_of_block.len() as u32,
            first_result: self.documents,
        });
        // A query without documents has a block too, which notes where its results would be.
        let blocks = shortest.div_ceil(THREADS).max(1);
        self.query_of_block.extend(std::iter::repeat_n(query, blocks as usize));
        self.documents = self.documents.checked_add(shortest).expect("fewer than 2^32 documents in a batch");
    }

    fn arguments(&self, places: &mut Places) -> BatchedArguments {
        BatchedArguments {
            queries: places.take(size_of_val(self.queries.as_slice())),
            lists: places.take(size_of_val(self.lists.as_slice())),
            query_of_block: places.take(size_of_val(self.query_of_block.as_slice())),
            results: places.take(4 * self.documents as usize),
            positions: places.take(4 * self.queries.len()),
            order: Order::place(places, self.query_of_block.len() as u32),
        }
    }

    /// The bytes of a room for the batch, by either algorithm.
    pub fn room_bytes(&self) -> usize {
        let mut places = Places::from(Address::NULL);
        self.arguments(&mut places);
        places.end()
    }

    /// Uploads what the kernels need to know of the queries.
    fn upload(&self, gpu: &Gpu, stream: Stream, room: &Memory) -> Result<BatchedArguments, GpuError> {
        let arguments = self.arguments(&mut Places::inside(room.into(), self.room_bytes()));
        let queries: Vec<u8> = self.queries.iter().flat_map(|query| query.bytes().to_vec()).collect();
        let lists: Vec<u8> = self.lists.iter().flat_map(|list| list.bytes().to_vec()).collect();
        gpu.submit(stream, Command::Write { from: &queries, to: arguments.queries })?;
        gpu.submit(stream, Command::Write { from: &lists, to: arguments.lists })?;
        Ok(arguments)
    }

    /// Intersects by PART, in a room of [`Batch::room_bytes`], which the stream uses until it was waited for. The time
    /// is marked before the kernel and behind it, here as in PARA.
    pub fn part(&self, gpu: &Gpu, stream: Stream, room: &Memory) -> Result<PartFound, GpuError> {
        let arguments = self.upload(gpu, stream, room)?;
        if !self.queries.is_empty() {
            let shape = Shape { grid: self.queries.len() as u32, block: THREADS, shared: ORDER_SHARED };
            gpu.submit(stream, Command::Mark)?;
            gpu.launch(stream, &BATCHED_INTERSECTION_PART, shape, &arguments)?;
            gpu.submit(stream, Command::Mark)?;
        }
        Ok(PartFound { results: arguments.results, counts: arguments.positions })
    }

    /// Intersects by PARA, in a room of [`Batch::room_bytes`], which the stream uses until it was waited for.
    pub fn para(&self, gpu: &Gpu, stream: Stream, room: &Memory) -> Result<ParaFound, GpuError> {
        let arguments = self.upload(gpu, stream, room)?;
        let blocks: Vec<u8> = self.query_of_block.iter().flat_map(|query| query.to_le_bytes()).collect();
        gpu.submit(stream, Command::Write { from: &blocks, to: arguments.query_of_block })?;
        arguments.order.clear(gpu, stream)?;
        if !self.queries.is_empty() {
            let shape = arguments.order.shape(ORDER_SHARED);
            gpu.submit(stream, Command::Mark)?;
            gpu.launch(stream, &BATCHED_INTERSECTION_PARA, shape, &arguments)?;
            gpu.submit(stream, Command::Mark)?;
        }
        Ok(ParaFound { results: arguments.results, positions: arguments.positions, total: arguments.order.total })
    }
}

/// Where PART leaves results: each query's in a room as large as its shortest list, which is downloaded whole.
#[derive(Clone, Copy, Debug)]
pub struct PartFound {
    /// The first result.
    pub results: Address,
    /// How many results each query has.
    pub counts: Address,
}

impl PartFound {
    /// Waits for the stream, and reads the results of each query of the batch.
    pub fn read(&self, gpu: &Gpu, stream: Stream, batch: &Batch) -> Result<Vec<Vec<u32>>, GpuError> {
        let counts = read_numbers(gpu, stream, self.counts, batch.queries.len())?;
        let results = read_numbers(gpu, stream, self.results, batch.documents as usize)?;
        let of_query = |(query, &count): (&BatchedQuery, &u32)| {
            let first = query.first_result as usize;
            results[first..first + count as usize].to_vec()
        };
        Ok(batch.queries.iter().zip(&counts).map(of_query).collect())
    }
}

/// Where PARA leaves results: those of all queries, side by side.
#[derive(Clone, Copy, Debug)]
pub struct ParaFound {
    /// The first result.
    pub results: Address,
    /// Where the results of each query begin.
    pub positions: Address,
    /// How many results there are, a `u32`.
    pub total: Address,
}

impl ParaFound {
    /// Waits for the stream, and reads the results of each query of the batch.
    pub fn read(&self, gpu: &Gpu, stream: Stream, batch: &Batch) -> Result<Vec<Vec<u32>>, GpuError> {
        let mut positions = read_numbers(gpu, stream, self.positions, batch.queries.len())?;
        positions.extend(read_numbers(gpu, stream, self.total, 1)?);
        let results = read_numbers(gpu, stream, self.results, positions[batch.queries.len()] as usize)?;
        Ok(positions.windows(2).map(|ends| results[ends[0] as usize..ends[1] as usize].to_vec()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_closed_once_its_load_reaches_the_threshold() {
        for (loads, threshold, expected) in [
            (vec![], 0, vec![]),
            (vec![5, 0, 7], 0, vec![(0, 1), (1, 2), (2, 3)]),
            (vec![5, 5, 5], 10, vec![(0, 2), (2, 3)]),
            (vec![4, 5, 5], 10, vec![(0, 3)]),
            (vec![100, 1, 2, 3], 10, vec![(0, 1), (1, 4)]),
            (vec![0, 0, 0], 1, vec![(0, 3)]),
            (vec![u32::MAX, u32::MAX, 1], 1 << 33, vec![(0, 3)]),
        ] {
            let found: Vec<(usize, usize)> =
                batches(&loads, threshold).into_iter().map(|batch| (batch.start, batch.end)).collect();
            assert_eq!(found, expected, "{loads:?} {threshold}");
        }
    }

    #[test]
    fn the_threshold_is_that_of_the_paper() {
        let threshold = Threshold { multiprocessors: 30, threads: 256, blocks: 128 };
        assert_eq!(threshold.documents(), 983_040);
    }
}
