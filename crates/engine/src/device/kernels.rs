//! The kernels that answer queries, and the rows that they read: a batch of plans in the form of the device.
//!
//! Lists have the same bytes on the device as in the file, and kernels read the others in host memory. A row says where
//! the arrays of its list begin, so that no kernel has to read a header first. Kernels only read rows.

use lanner_gpu::device::Address;
use lanner_gpu::kernel::{Module, TypedKernel};
use lanner_index::codec::Codecs;
use lanner_index::format::{dense, list, segment};
use lanner_index::open::Column;
use lanner_index::weight;

lanner_gpu::generated! { mod header_of_chunks = "../index/src/format/dense.h", dense::GPU_CONSTANTS }
lanner_gpu::generated! { mod header_of_units = "../index/src/format/list.h", list::GPU_CONSTANTS }
lanner_gpu::generated! { mod header_of_weights = "../index/src/weight.h", weight::GPU_CONSTANTS }

lanner_gpu::shared! {
    mod header = "src/ptx/kernels.h";

    /// Stands for no array, no query, no document.
    const NONE: u32 = 0xffffffff;

    /// Threads of a thread block that answers a part of an AND.
    const AND_THREADS: u32 = 128;
    /// Warps of such a thread block.
    const AND_WARPS: u32 = AND_THREADS / 32;
    /// Thread blocks of an AND that run on an SM at once: the launch bound of its kernels, which limits registers.
    const AND_BLOCKS_PER_SM: u32 = 6;
    /// Bytes of shared memory of an AND.
    const CONJUNCTION_SHARED: usize = 14400;

    /// Threads of a thread block that answers a part of an OR.
    const OR_THREADS: u32 = 256;
    /// Warps of such a thread block.
    const OR_WARPS: u32 = OR_THREADS / 32;
    /// Thread blocks of an OR over lists packed by bitpack that run on an SM at once.
    const OR_BLOCKS_PER_SM: u32 = 4;
    /// Thread blocks of an OR over lists packed by any codec that run on an SM at once.
    const OR_BLOCKS_PER_SM_ANY: u32 = 3;
    /// Bytes of shared memory of an OR, without those for each sparse list.
    const SCATTER_SHARED: usize = 53600;
    /// Bytes of shared memory of an OR for each sparse list.
    const SCATTER_SHARED_PER_LIST: usize = 12;
    /// Buckets of the hash table of an OR.
    const TABLE_BUCKETS: u32 = 4096;
    /// Chunks of a window of the format, for which dense lists store a rank.
    const CHUNKS_PER_WINDOW: u32 = 512;
    /// The most documents of a scatter window.
    const WIDEST_WINDOW: u32 = 65536;

    /// Keys of a thread block in shared memory. If k keys and a push of every thread do not fit, keys lie in the arena.
    /// A larger number would be no faster, because fewer thread blocks would run on an SM at once.
    const SHARED_KEYS: u32 = 512;
    /// Bins of the histogram of a query's scores. Impacts have a bin for each sum, as long as their sums are smaller.
    const SCORE_BINS: usize = 1024;
    /// Groups of bins, each of as many as a warp has lanes.
    const SCORE_GROUPS: usize = SCORE_BINS / 32;

    /// The most lists of each kind of a single query whose rows are part of the argument.
    const SINGLE_LISTS: usize = 12;

    /// A sparse list. Its directory and its blocks may lie in different memory. Arrays of the directory are given by the
    /// offset of their first byte in the list, in bytes unless noted.
    #[derive(Default, PartialEq)]
    struct SparseRow {
        /// The directory, with which the list begins. Of a short list: the list.
        directory: Address to "const uint8_t",
        /// The first block, for blocks that begin before `split`.
        head: Address to "const uint8_t",
        /// The same for all other blocks, which may lie in other memory, and for what the codecs store once for all
        /// blocks.
        tail: Address to "const uint8_t",
        /// Values are multiplied by it.
        multiplier: f32,
        /// The largest weight.
        bound: u32,
        /// Postings of the list.
        postings: u32,
        /// Blocks of the list.
        blocks: u32,
        /// The offset of the first block that `tail` is for, from the first block on, in units of 16 bytes.
        split: u32,
        /// The largest offset that a block may have, from the first block on, in units of 16 bytes.
        end: u32,
        /// For each block its last document, a u32. Of a short list: its last document.
        last: u32,
        /// For each block its offset from the first block on, a u32, in units of 16 bytes. Of a short list: the offset
        /// of its documents.
        offset: u32,
        /// For each block its bound, a u16 (frequencies) or u8 (impacts); 0 where stored bounds do not hold.
        block_bound: u32,
        /// For each block the directory byte of its documents. Of a short list: the byte itself.
        document_byte: u32,
        /// For each block the directory byte of the column between documents and weights; NONE without such a column.
        skipped_byte: u32,
        /// For each block the directory byte of the weights that the query uses; NONE where they are not stored.
        weight_byte: u32,
        /// The bytes of the directory. Of a short list: the offset of its weights.
        payload: u32,
        /// Of a short list: its first document, which is not packed.
        first: u32,
        /// 1 for a short list.
        is_short: u32,
        /// What the codec stores once for all blocks, for each of the three columns, from the first block on, in units
        /// of 16 bytes; 0 for nothing.
        shared: [u32; 3],
        /// Bytes of each of these.
        shared_bytes: [u32; 3],
        /// 1 if the blocks from `split` on are in host memory.
        is_on_host: u32,
    }

    /// A bitmap with ranks. Its arrays may lie in different memory.
    #[derive(Default, PartialEq)]
    struct DenseRow {
        /// For each window of 32,768 documents its rank.
        window_rank: Address to "const unsigned",
        /// For each chunk of 64 documents its rank within the window.
        chunk_rank: Address to "const uint16_t",
        /// For each chunk the code of its bound.
        chunk_bound: Address to "const uint8_t",
        /// For each chunk its bits.
        words: Address to "const uint2",
        /// Frequencies or impacts, in the order of documents.
        values: Address to "const uint8_t",
        /// Ranks of the frequencies that do not fit their bits, then these frequencies.
        exception_rank: Address to "const unsigned",
        /// Values are multiplied by it.
        multiplier: f32,
        /// The largest weight.
        bound: u32,
        /// The code of a chunk's bound times this bounds the weights of the chunk; 0 where stored bounds do not hold.
        factor: u32,
        /// Postings of the list.
        postings: u32,
        /// Bits of a value: 2, 4 or 8; 0 where they are not stored.
        value_bits: u32,
        /// How many frequencies do not fit their bits.
        exceptions: u32,
        /// 1 if bounds, words and ranks are in device memory, where a single query prefetches them. From host memory, it
        /// reads no more than it needs.
        is_prefetched: u32,
        /// Unused.
        reserved: u32,
    }

    /// One stage of a plan, and the parts that it is divided into, one thread block each. A part is a range of
    /// documents or, for an AND driven by a sparse list, of slices of its blocks. All parts but the last are equally
    /// long.
    #[derive(Default, PartialEq)]
    struct QueryRow {
        /// The first of its sparse rows, which stand shortest first.
        sparse: u32,
        /// How many sparse rows it has.
        sparse_count: u32,
        /// The first of its dense rows, which stand strongest first.
        dense: u32,
        /// How many dense rows it has.
        dense_count: u32,
        /// The first document that may be a hit.
        first: u32,
        /// The end of the documents that may be hits.
        end: u32,
        /// Hits that are asked for.
        k: u32,
        /// A score that hits must reach.
        seed: u32,
        /// The sum of the bounds of all sparse lists.
        sum: u32,
        /// Documents of a scatter window, a multiple of 64.
        window: u32,
        /// Its first key among the answers.
        answer: u32,
        /// Another query: this one is skipped if that one has k hits. NONE for no such query.
        after: u32,
        /// How many parts it has.
        parts: u32,
        /// The first of its parts among the thread blocks of the launch.
        first_part: u32,
        /// The start of the range that is divided: documents, from a multiple of 64 on, or slices of blocks.
        parts_first: u32,
        /// The end of that range.
        parts_end: u32,
        /// How much of the range a part has.
        part_length: u32,
        /// Keys that a part may hold in the arena, a power of two; 0 where they fit in shared memory.
        capacity: u32,
        /// Bins are scores less the seed, shifted right by this.
        shift: u32,
        /// An AND driven by a sparse list divides each block into 2 to this power slices, which different warps take.
        slices: u32,
        /// Its first key in the arena: up to k that each part leaves for the last, then the keys of running parts.
        keys: u64,
        /// For each chunk of the collection the documents that may be hits; null: all may.
        filter: Address to "const uint2",
        /// The most that the static rank adds to a score; 0 in score models without one.
        static_bound: u32,
        /// The share of the static rank.
        alpha: f32,
    }

    /// The work done for a query.
    #[derive(Default, PartialEq)]
    struct WorkRow {
        /// Blocks of sparse lists that were decoded.
        blocks: u32,
        /// Documents whose whole score was computed.
        documents: u32,
        /// Postings that these blocks lack to have 128 each.
        missing: u64,
    }

    /// The state that the parts of a query share; zeros before the launch.
    struct QueryState {
        /// Only keys above this enter.
        floor: u64,
        /// The work of the parts that are done.
        work: WorkRow,
        /// Keys that the parts have left; with `done` one number of 64 bits.
        left: u32,
        /// Parts that are done.
        done: u32,
        /// Scores that were pushed, by group of bins.
        groups: [u32; SCORE_GROUPS],
        /// Scores that were pushed, by bin.
        scores: [u32; SCORE_BINS],
    }

    /// The rows of a single query. They are part of the kernel's argument, so that nothing is uploaded before the
    /// launch.
    #[derive(Default)]
    struct SingleRows {
        /// The query.
        query: QueryRow,
        /// Its sparse lists.
        sparse: [SparseRow; SINGLE_LISTS],
        /// Its dense lists.
        dense: [DenseRow; SINGLE_LISTS],
    }

    /// The tags of the codecs of lists.
    #[derive(Default)]
    struct CodecTags {
        /// Of documents.
        documents: u32,
        /// Of weights.
        weights: u32,
    }

    /// The argument of all kernels that answer queries.
    #[derive(Default)]
    struct BatchArguments {
        /// The queries.
        queries: Address to "const QueryRow",
        /// Their sparse lists.
        sparse: Address to "const SparseRow",
        /// Their bitmaps.
        dense: Address to "const DenseRow",
        /// For each thread block the query that it answers a part of.
        parts: Address to "const unsigned",
        /// A length code for each document.
        length_codes: Address to "const uint8_t",
        /// The norms of the length codes.
        norms: Address to "const float",
        /// A static rank for each document; null in an index without them.
        ranks: Address to "const float",
        /// A state for each query.
        states: Address to "QueryState",
        /// Keys of parts.
        arena: Address to "uint64_t",
        /// Keys of the hits of each query, best first.
        answers: Address to "uint64_t",
        /// Work done for each query.
        answer_work: Address to "WorkRow",
        /// Hits of each query, written after everything else of its answer.
        answer_counts: Address to "unsigned",
        /// The codecs of the lists.
        codecs: CodecTags,
        /// One divided by the documents of the collection, to estimate where a document lies in a list.
        inverse_documents: f32,
        /// Unused.
        reserved: u32,
        /// The rows of a single query.
        single: SingleRows,
    }
}

impl From<Codecs> for CodecTags {
    fn from(codecs: Codecs) -> CodecTags {
        CodecTags { documents: codecs.documents as u32, weights: codecs.weights as u32 }
    }
}

const _: () = assert!(CHUNKS_PER_WINDOW == segment::WINDOW / dense::CHUNK);

/// Declares a module that answers queries, and its kernels for the parts of ANDs and of ORs: those for batches, and
/// those for a single query, whose rows lie in constant memory.
macro_rules! answering {
    ($name:literal) => {{
        static MODULE: Module = Module { name: $name, ptx: include_str!(concat!("../ptx/", $name, ".ptx")) };
        [
            [lanner_gpu::kernel!(MODULE, "conjunction_", $name), lanner_gpu::kernel!(MODULE, "scatter_", $name)],
            [
                lanner_gpu::kernel!(MODULE, "conjunction_", $name, "_single"),
                lanner_gpu::kernel!(MODULE, "scatter_", $name, "_single"),
            ],
        ]
    }};
}

/// The kernels that answer queries: by codec (bitpack, which most indexes have, or any), by column of values, for
/// batches or for a single query, for ANDs and ORs.
static ANSWERING: [[[[TypedKernel<BatchArguments>; 2]; 2]; 2]; 2] = [
    [answering!("any_frequency"), answering!("any_impact")],
    [answering!("bitpack_frequency"), answering!("bitpack_impact")],
];

/// Which variants of the kernels answer a batch.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Whether all lists are packed by bitpack.
    pub is_bitpack: bool,
    /// The column that weights are made from.
    pub column: Column,
    /// Whether this is a single query, whose rows travel with the launch.
    pub is_single: bool,
}

impl Variant {
    /// The kernels for the parts of ANDs and of ORs.
    pub fn kernels(self) -> [&'static TypedKernel<BatchArguments>; 2] {
        let is_impact = self.column == Column::Impact;
        ANSWERING[usize::from(self.is_bitpack)][usize::from(is_impact)][usize::from(self.is_single)].each_ref()
    }
}
