//! The kernels of plans answered step by step: AND term at a time and OR by accumulators, over packed lists and
//! bitmaps.

use super::compaction::{Lookback, Origins, SEARCHED, THREADS};
use crate::device::kernels::{CodecTags, DenseRow, SparseRow};
use lanner_gpu::device::Address;
use lanner_gpu::kernel::Module;
use lanner_index::format::dense::CHUNK;

/// Candidates, or accumulators, of a tile.
pub const TILE: u32 = SEARCHED * THREADS;

lanner_gpu::shared! {
    mod header = "src/ptx/step_kernels.h",
        includes "format/dense.h", includes "ptx/compaction.h", includes "ptx/kernels.h", in papers;

    /// Bytes of shared memory of the kernels that decode.
    const STEP_SHARED: usize = 4096;
    /// Documents of a tile where a bitmap is expanded: a chunk for each thread.
    const EXPANDED_TILE: u32 = CHUNK * THREADS;

    /// Blocks of a list whose documents are decoded, one after the other.
    #[derive(Default)]
    struct DecodedBlocks {
        /// Their numbers in the list; null: all blocks of the list are decoded.
        blocks: Address to "unsigned",
        /// How many there are; unused if all are decoded.
        count: Address to "unsigned",
        /// Their documents; NONE after the last of a partial block.
        documents: Address to "unsigned",
        /// For each block where its weights begin, in bytes from its start.
        weights_at: Address to "unsigned",
        /// For each block its offset from here, in units of 16 bytes; null: blocks are read from the list.
        uploaded: Address to "const unsigned",
        /// The most blocks that fit.
        capacity: u32,
        /// Unused.
        reserved: u32,
    }

    /// The argument of the kernels that find, decode and search blocks.
    #[derive(Default)]
    struct BlocksArguments {
        /// The list.
        list: SparseRow,
        /// Its decoded blocks.
        decoded: DecodedBlocks,
        /// The candidates.
        candidates: Address to "const unsigned",
        /// For each candidate the decoded block that can have it; NONE if none can.
        candidate_blocks: Address to "unsigned",
        /// The candidates that are left.
        results: Address to "unsigned",
        /// Their positions among the candidates, and among the decoded documents.
        origins: Origins,
        /// The state that the tiles share.
        lookback: Lookback,
        /// How many candidates there are.
        count: u32,
        /// The codecs of the lists.
        codecs: CodecTags,
        /// Unused.
        reserved: u32,
    }

    /// The argument of the kernels that test and expand bits.
    struct BitsArguments {
        /// The bitmap; its `bytes` are null where only the range is tested.
        list: DenseRow,
        /// For each chunk of the collection the documents that may be hits; null where that is not tested.
        filter: Address to "const uint2",
        /// The candidates.
        candidates: Address to "const unsigned",
        /// The candidates that are left.
        results: Address to "unsigned",
        /// Their positions among the candidates, twice.
        origins: Origins,
        /// The state that the tiles share.
        lookback: Lookback,
        /// How many candidates there are, or how many results fit.
        count: u32,
        /// The first document that may be a candidate.
        first: u32,
        /// The end of the documents that may be candidates.
        end: u32,
        /// Unused.
        reserved: u32,
    }

    /// The argument of the kernels that add the weights of a list to candidates, all of which the list has.
    struct WeighArguments {
        /// A sparse list.
        sparse: SparseRow,
        /// A bitmap; its `bytes` are null where the list is sparse.
        dense: DenseRow,
        /// The decoded blocks of a sparse list.
        decoded: DecodedBlocks,
        /// The candidates.
        candidates: Address to "const unsigned",
        /// Their positions among the candidates before, and among the decoded documents.
        origins: Origins,
        /// The scores of the candidates before; null: zeros.
        before: Address to "const unsigned",
        /// The scores of the candidates.
        scores: Address to "unsigned",
        /// The keys of the candidates, if this is the last list; else null.
        keys: Address to "unsigned long long",
        /// A length code for each document.
        length_codes: Address to "const uint8_t",
        /// The norms of the length codes.
        norms: Address to "const float",
        /// A static rank for each document; null where they do not count.
        ranks: Address to "const float",
        /// How many candidates there are.
        count: u32,
        /// The tag of the codec of weights.
        weights_codec: u32,
        /// The share of the static rank.
        alpha: f32,
        /// Unused.
        reserved: u32,
    }

    /// The argument of the kernels that add the weights of a list to accumulators.
    #[derive(Default)]
    struct AccumulateArguments {
        /// A sparse list.
        sparse: SparseRow,
        /// A bitmap; its `bytes` are null where the list is sparse.
        dense: DenseRow,
        /// An accumulator for each document of the range.
        accumulators: Address to "unsigned",
        /// A length code for each document.
        length_codes: Address to "const uint8_t",
        /// The norms of the length codes.
        norms: Address to "const float",
        /// The first document of the range.
        first: u32,
        /// The end of the range.
        end: u32,
        /// The codecs of the lists.
        codecs: CodecTags,
    }

    /// The argument of the kernel that turns accumulators into keys.
    struct GatherArguments {
        /// The accumulators.
        accumulators: Address to "const unsigned",
        /// For each chunk of the collection the documents that may be hits; null: all may.
        filter: Address to "const uint2",
        /// A static rank for each document; null where they do not count.
        ranks: Address to "const float",
        /// The keys of documents with a score.
        keys: Address to "unsigned long long",
        /// The state that the tiles share.
        lookback: Lookback,
        /// The document of the first accumulator.
        first: u32,
        /// How many accumulators there are.
        count: u32,
        /// The most keys that fit.
        capacity: u32,
        /// The share of the static rank.
        alpha: f32,
    }
}

static MODULE: Module = Module { name: "steps", ptx: include_str!("../ptx/steps.ptx") };

lanner_gpu::kernels! {
    MODULE;
    /// Decodes blocks, or a whole list.
    TERM_AT_A_TIME_DECODE = "term_at_a_time_decode": BlocksArguments;
    /// Finds the blocks that can have candidates.
    TERM_AT_A_TIME_FIND_BLOCKS = "term_at_a_time_find_blocks": BlocksArguments;
    /// Searches these for the candidates.
    TERM_AT_A_TIME_SEARCH_BLOCKS = "term_at_a_time_search_blocks": BlocksArguments;
    /// Keeps the candidates of a range that a bitmap has.
    TERM_AT_A_TIME_FILTER = "term_at_a_time_filter": BitsArguments;
    /// Turns a bitmap into candidates.
    TERM_AT_A_TIME_EXPAND = "term_at_a_time_expand": BitsArguments;
    /// Adds weights by frequencies to candidates.
    TERM_AT_A_TIME_WEIGH_FREQUENCY = "term_at_a_time_weigh_frequency": WeighArguments;
    /// Adds weights by impacts to candidates.
    TERM_AT_A_TIME_WEIGH_IMPACT = "term_at_a_time_weigh_impact": WeighArguments;
    /// Adds weights by frequencies to accumulators.
    ACCUMULATORS_ADD_FREQUENCY = "accumulators_add_frequency": AccumulateArguments;
    /// Adds weights by impacts to accumulators.
    ACCUMULATORS_ADD_IMPACT = "accumulators_add_impact": AccumulateArguments;
    /// Turns accumulators into keys.
    ACCUMULATORS_GATHER = "accumulators_gather": GatherArguments;
}
