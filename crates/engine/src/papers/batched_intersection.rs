//! Intersections of many queries at once: PART assigns a query to a thread block, PARA an element to a thread.
//!
//! The host sorts the lists of each query by length. A thread takes a document of the shortest list and searches for it
//! in all others. In PART, a thread block does so for all documents of its query, 256 at a time; each query has space
//! for as many results as its shortest list has documents, and thread blocks with short lists wait for those with long
//! ones. In PARA, a query has as many thread blocks as its shortest list fills, and a scan over all of them writes the
//! results of all queries contiguously, together with where those of each query begin, so that only results are
//! downloaded.
//!
//! A batch is closed once its load, the documents of its shortest lists, reaches a threshold S x T x B: SMs, threads of
//! a thread block, thread blocks per SM.
//!
//! Wu et al., Efficient Lists Intersection by CPU-GPU Cooperative Computing (section IV).

use super::compaction::{DeviceList, LOOKBACK_SHARED, Lookback, ScratchLayout, THREADS, read_numbers};
use lanner_gpu::device::{Address, Command, Shape, Stream};
use lanner_gpu::error::GpuError;
use lanner_gpu::kernel::Argument;
use lanner_gpu::memory::{Gpu, Memory};
use std::ops::Range;

lanner_gpu::shared! {
    mod header = "src/ptx/batched_intersection.h", includes "ptx/compaction.h", in papers;

    /// A list of a query.
    struct BatchedList {
        /// Its first document.
        documents: Address to "const unsigned",
        /// How many there are.
        length: u32,
        /// Unused.
        reserved: u32,
    }

    /// A query.
    struct BatchedQuery {
        /// The first of its lists, the shortest.
        first_list: u32,
        /// How many lists it has.
        lists: u32,
        /// PARA: its first thread block.
        first_block: u32,
        /// PART: its first result; it has space for as many as its shortest list has documents.
        first_result: u32,
    }

    /// The argument of both kernels.
    struct BatchedArguments {
        /// The queries.
        queries: Address to "const BatchedQuery",
        /// Their lists.
        lists: Address to "const BatchedList",
        /// PARA: the query of each thread block.
        query_of_block: Address to "const unsigned",
        /// The results.
        results: Address to "unsigned",
        /// PARA: where the results of each query begin. PART: how many there are.
        positions: Address to "unsigned",
        /// PARA: the state that the tiles share.
        lookback: Lookback,
    }
}

lanner_gpu::kernels! {
    super::MODULE;
    /// Intersects a query per thread block.
    BATCHED_INTERSECTION_PART = "batched_intersection_part": BatchedArguments;
    /// Searches for a document per thread.
    BATCHED_INTERSECTION_PARA = "batched_intersection_para": BatchedArguments;
}

/// The least work of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Threshold {
    /// S: SMs of the device.
    pub multiprocessors: u32,
    /// T: threads of a thread block.
    pub threads: u32,
    /// B: thread blocks per SM.
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

/// Queries in the form in which they are uploaded.
#[derive(Debug, Default)]
pub struct Batch {
    queries: Vec<BatchedQuery>,
    lists: Vec<BatchedList>,
    /// For each thread block of PARA.
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
        // A query without documents has a thread block too, which writes where its results would begin.
        let blocks = shortest.div_ceil(THREADS).max(1);
        self.query_of_block.extend(std::iter::repeat_n(query, blocks as usize));
        self.documents = self.documents.checked_add(shortest).expect("fewer than 2^32 documents in a batch");
    }

    fn arguments(&self, layout: &mut ScratchLayout) -> BatchedArguments {
        BatchedArguments {
            queries: layout.take(size_of_val(self.queries.as_slice())),
            lists: layout.take(size_of_val(self.lists.as_slice())),
            query_of_block: layout.take(size_of_val(self.query_of_block.as_slice())),
            results: layout.take(4 * self.documents as usize),
            positions: layout.take(4 * self.queries.len()),
            lookback: Lookback::reserve(layout, self.query_of_block.len() as u32),
        }
    }

    /// The bytes of scratch that the batch needs, for either algorithm.
    pub fn scratch_bytes(&self) -> usize {
        ScratchLayout::bytes_of(|layout| self.arguments(layout))
    }

    /// Uploads queries and lists.
    fn upload(&self, gpu: &Gpu, stream: Stream, scratch: &Memory) -> Result<BatchedArguments, GpuError> {
        let arguments = self.arguments(&mut ScratchLayout::inside(scratch.into(), self.scratch_bytes()));
        let queries: Vec<u8> = self.queries.iter().flat_map(|query| query.bytes().to_vec()).collect();
        let lists: Vec<u8> = self.lists.iter().flat_map(|list| list.bytes().to_vec()).collect();
        gpu.submit(stream, Command::Write { from: &queries, to: arguments.queries })?;
        gpu.submit(stream, Command::Write { from: &lists, to: arguments.lists })?;
        Ok(arguments)
    }

    /// Intersects by PART, with scratch of [`Batch::scratch_bytes`], which the stream uses until it has been waited
    /// for. Records the time before and after the kernel, as [`Batch::para`] does.
    pub fn part(&self, gpu: &Gpu, stream: Stream, scratch: &Memory) -> Result<PartFound, GpuError> {
        let arguments = self.upload(gpu, stream, scratch)?;
        if !self.queries.is_empty() {
            let shape = Shape { grid: self.queries.len() as u32, block: THREADS, shared: LOOKBACK_SHARED };
            gpu.submit(stream, Command::Mark)?;
            gpu.launch(stream, &BATCHED_INTERSECTION_PART, shape, &arguments)?;
            gpu.submit(stream, Command::Mark)?;
        }
        Ok(PartFound { results: arguments.results, counts: arguments.positions })
    }

    /// Intersects by PARA, with scratch of [`Batch::scratch_bytes`], which the stream uses until it has been waited
    /// for.
    pub fn para(&self, gpu: &Gpu, stream: Stream, scratch: &Memory) -> Result<ParaFound, GpuError> {
        let arguments = self.upload(gpu, stream, scratch)?;
        let blocks: Vec<u8> = self.query_of_block.iter().flat_map(|query| query.to_le_bytes()).collect();
        gpu.submit(stream, Command::Write { from: &blocks, to: arguments.query_of_block })?;
        arguments.lookback.clear(gpu, stream)?;
        if !self.queries.is_empty() {
            let shape = arguments.lookback.shape(LOOKBACK_SHARED);
            gpu.submit(stream, Command::Mark)?;
            gpu.launch(stream, &BATCHED_INTERSECTION_PARA, shape, &arguments)?;
            gpu.submit(stream, Command::Mark)?;
        }
        Ok(ParaFound { results: arguments.results, positions: arguments.positions, total: arguments.lookback.total })
    }
}

/// The results of PART: each query has space for as many as its shortest list has documents; all of it is downloaded.
#[derive(Clone, Copy, Debug)]
pub struct PartFound {
    /// The first result.
    pub results: Address,
    /// How many results each query has.
    pub counts: Address,
}

impl PartFound {
    /// Waits for the stream and reads the results of each query of the batch.
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

/// The results of PARA: those of all queries, contiguous.
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
    /// Waits for the stream and reads the results of each query of the batch.
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
