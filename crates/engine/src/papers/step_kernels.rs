//! The kernels of `steps.cu`: AND term at a time and OR by accumulators, over packed lists and bitmaps.
//!
//! `term_at_a_time.cu` and `accumulators.cu` have the same structs and say what each field means.

use super::compaction::{Order, Origins};
use crate::device::kernels::{DenseRow, SparseRow};
use lanner_gpu::device::Address;
use lanner_gpu::kernel::{Module, kernels};

/// AND and OR step by step; loaded only where one of these algorithms is asked for.
pub static STEPS: Module = Module { name: "steps", ptx: include_str!("../ptx/steps.ptx") };

/// Bytes of shared memory of the kernels that decode.
pub const DECODE_SHARED: usize = 4096;
/// Candidates, or accumulators, of a tile.
pub const TILE: u32 = 4 * 256;
/// Documents of a tile where a bitmap is expanded.
pub const EXPANDED_TILE: u32 = 64 * 256;

/// Blocks of a list whose documents are decoded.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct DecodedBlocks {
    pub blocks: Address,
    pub count: Address,
    pub documents: Address,
    pub weights_at: Address,
    pub sent: Address,
    pub room: u32,
    pub reserved: u32,
}

/// What decodes blocks, finds them and searches them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BlocksArguments {
    pub list: SparseRow,
    pub decoded: DecodedBlocks,
    pub candidates: Address,
    pub slots: Address,
    pub results: Address,
    pub origins: Origins,
    pub order: Order,
    pub count: u32,
    pub documents_codec: u32,
    pub weights_codec: u32,
    pub reserved: u32,
}

/// What asks for bits, and expands them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BitsArguments {
    pub list: DenseRow,
    pub candidates: Address,
    pub results: Address,
    pub origins: Origins,
    pub order: Order,
    pub count: u32,
    pub first: u32,
    pub end: u32,
    pub reserved: u32,
}

/// What adds weights to candidates.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct WeighArguments {
    pub sparse: SparseRow,
    pub dense: DenseRow,
    pub decoded: DecodedBlocks,
    pub candidates: Address,
    pub origins: Origins,
    pub before: Address,
    pub scores: Address,
    pub keys: Address,
    pub length_codes: Address,
    pub norms: Address,
    pub count: u32,
    pub weights_codec: u32,
}

/// What adds weights to accumulators.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AccumulateArguments {
    pub sparse: SparseRow,
    pub dense: DenseRow,
    pub accumulators: Address,
    pub length_codes: Address,
    pub norms: Address,
    pub first: u32,
    pub end: u32,
    pub documents_codec: u32,
    pub weights_codec: u32,
}

/// What makes keys of accumulators.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GatherArguments {
    pub accumulators: Address,
    pub keys: Address,
    pub order: Order,
    pub first: u32,
    pub count: u32,
    pub room: u32,
    pub reserved: u32,
}

kernels! {
    STEPS;
    [DecodedBlocks: 48 bytes]
    [BlocksArguments: 224 bytes]
    [BitsArguments: 136 bytes]
    [WeighArguments: 264 bytes]
    [AccumulateArguments: 184 bytes]
    [GatherArguments: 64 bytes]
    /// Decodes blocks, or all of a list.
    TERM_AT_A_TIME_DECODE = term_at_a_time_decode: BlocksArguments;
    /// Finds the blocks that can have candidates.
    TERM_AT_A_TIME_FIND_BLOCKS = term_at_a_time_find_blocks: BlocksArguments;
    /// Looks candidates up in these.
    TERM_AT_A_TIME_SEARCH_BLOCKS = term_at_a_time_search_blocks: BlocksArguments;
    /// Keeps candidates of a range and of a bitmap.
    TERM_AT_A_TIME_FILTER = term_at_a_time_filter: BitsArguments;
    /// Makes candidates of a bitmap.
    TERM_AT_A_TIME_EXPAND = term_at_a_time_expand: BitsArguments;
    /// Adds weights by frequencies to candidates.
    TERM_AT_A_TIME_WEIGH_FREQUENCY = term_at_a_time_weigh_frequency: WeighArguments;
    /// Likewise by impacts.
    TERM_AT_A_TIME_WEIGH_IMPACT = term_at_a_time_weigh_impact: WeighArguments;
    /// Adds weights by frequencies to accumulators.
    ACCUMULATORS_ADD_FREQUENCY = accumulators_add_frequency: AccumulateArguments;
    /// Likewise by impacts.
    ACCUMULATORS_ADD_IMPACT = accumulators_add_impact: AccumulateArguments;
    /// Makes keys of accumulators.
    ACCUMULATORS_GATHER = accumulators_gather: GatherArguments;
}
