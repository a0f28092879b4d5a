//! The kernels, and the rows that they read: what a batch of plans is on a device.
//!
//! `plan.cu` has the same structs and says what each field means.
#![allow(missing_docs)]

use lanner_gpu::device::Address;
use lanner_gpu::kernel::{Module, TypedKernel, kernels};
use lanner_index::open::Column;

/// OR and AND by frequencies, of lists packed by bitpack, which most indexes have; modules are loaded when they are first used.
pub static BITPACK_FREQUENCY: Module =
    Module { name: "bitpack_frequency", ptx: include_str!("../ptx/bitpack_frequency.ptx") };
/// OR and AND by impacts, of lists packed by bitpack, which most indexes have.
pub static BITPACK_IMPACT: Module = Module { name: "bitpack_impact", ptx: include_str!("../ptx/bitpack_impact.ptx") };
/// OR and AND by frequencies, of lists packed by any codec that a GPU reads.
pub static ANY_FREQUENCY: Module = Module { name: "any_frequency", ptx: include_str!("../ptx/any_frequency.ptx") };
/// OR and AND by impacts, of lists packed by any codec that a GPU reads.
pub static ANY_IMPACT: Module = Module { name: "any_impact", ptx: include_str!("../ptx/any_impact.ptx") };
/// Decoding alone.
pub static DECODING: Module = Module { name: "decode", ptx: include_str!("../ptx/decode.ptx") };

/// What stands where there is nothing.
pub const NONE: u32 = u32::MAX;

/// Threads of a block that answers a part of an AND.
pub const AND_THREADS: u32 = 128;
/// Threads of a block that answers a part of an OR.
pub const OR_THREADS: u32 = 256;
/// Bytes of shared memory of `scatter`, without those for each sparse list.
pub const SCATTER_SHARED: usize = 53_600;
/// Bytes of shared memory of `scatter` for each sparse list.
pub const SCATTER_SHARED_A_LIST: usize = 12;
/// Bytes of shared memory of `conjunction`.
pub const CONJUNCTION_SHARED: usize = 14_400;
/// Keys in shared memory: where k and a push of every thread do not fit, they lie in the arena.
pub const SHARED_KEYS: u32 = 512;
/// Slots of the hash table of `scatter`.
pub const SLOTS: u32 = 4096;
/// The most documents that `scatter` looks at together.
pub const WIDEST_WINDOW: u32 = 65_536;

/// Bins of the histogram of a query's scores.
pub const SCORE_BINS: u32 = 1024;
/// Bytes of what the parts of a query know of each other.
pub const STATE: usize = 4256;

/// Threads of a block of the kernels that decode.
pub const DECODE_THREADS: u32 = 256;
/// Bytes of shared memory of the kernels that decode.
pub const DECODE_SHARED: usize = 4128;

/// A list in blocks.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SparseRow {
    pub bytes: Address,
    pub multiplier: f32,
    pub bound: u32,
    pub postings: u32,
    pub blocks: u32,
    pub end: u32,
    pub last: u32,
    pub offset: u32,
    pub block_bound: u32,
    pub document_byte: u32,
    pub skipped_byte: u32,
    pub weight_byte: u32,
    pub payload: u32,
    pub first: u32,
    pub is_short: u32,
    pub shared: [u32; 3],
    pub shared_bytes: [u32; 3],
}

/// A bitmap with ranks.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DenseRow {
    pub bytes: Address,
    pub multiplier: f32,
    pub bound: u32,
    pub factor: u32,
    pub postings: u32,
    pub window_rank: u32,
    pub chunk_rank: u32,
    pub chunk_bound: u32,
    pub words: u32,
    pub values: u32,
    pub value_bits: u32,
    pub exception_rank: u32,
    pub exceptions: u32,
}

/// One stage of a plan, and its parts.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueryRow {
    pub sparse: u32,
    pub sparse_count: u32,
    pub dense: u32,
    pub dense_count: u32,
    pub first: u32,
    pub end: u32,
    pub k: u32,
    pub seed: u32,
    pub sum: u32,
    pub window: u32,
    pub answer: u32,
    pub after: u32,
    pub parts: u32,
    pub first_part: u32,
    pub parts_first: u32,
    pub parts_end: u32,
    pub part_length: u32,
    pub room: u32,
    pub shift: u32,
    pub slices: u32,
    pub keys: u64,
}

/// What was done for a query, beside its hits.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WorkRow {
    pub blocks: u32,
    pub documents: u32,
    pub missing: u64,
}

/// The most lists of each kind that travel with a launch.
pub const ALONE_LISTS: usize = 12;

/// A query that comes alone.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct AloneRows {
    pub query: QueryRow,
    pub sparse: [SparseRow; ALONE_LISTS],
    pub dense: [DenseRow; ALONE_LISTS],
}

/// What all kernels that answer queries take.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct BatchArguments {
    pub queries: Address,
    pub sparse: Address,
    pub dense: Address,
    pub parts: Address,
    pub length_codes: Address,
    pub norms: Address,
    pub states: Address,
    pub arena: Address,
    pub answers: Address,
    pub answer_work: Address,
    pub answer_counts: Address,
    pub documents_codec: u32,
    pub weights_codec: u32,
    pub blocks_a_document: f32,
    pub reserved: u32,
    pub alone: AloneRows,
}

/// A stream of one block.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DecodeRow {
    pub start: u64,
    pub shared_start: u64,
    pub shared_bytes: u32,
    pub base: u32,
    pub count: u32,
    pub byte: u32,
    pub block: u32,
    pub reserved: u32,
}

/// What the streams are, and how they are read.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum DecodeKind {
    #[default]
    Documents = 0,
    Values = 1,
    SingleValues = 2,
}

/// What is kept of them: their sum, themselves, or the lengths of the streams.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum DecodeOutput {
    #[default]
    Sum = 0,
    Numbers = 1,
    Lengths = 2,
}

/// What the kernels that decode take.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct DecodeArguments {
    pub rows: Address,
    pub bytes: Address,
    pub out: Address,
    pub blocks: u32,
    pub tag: u32,
    pub kind: DecodeKind,
    pub output: DecodeOutput,
    pub sink: Address,
}

kernels! {
    BITPACK_FREQUENCY;
    [SparseRow: 88 bytes]
    [DenseRow: 56 bytes]
    [QueryRow: 88 bytes]
    [WorkRow: 16 bytes]
    [AloneRows: 1816 bytes]
    [BatchArguments: 1920 bytes]
    /// OR by frequencies, of lists packed by bitpack.
    SCATTER_BITPACK_FREQUENCY = scatter_bitpack_frequency: BatchArguments;
    /// Likewise, of a query alone.
    SCATTER_BITPACK_FREQUENCY_ALONE = scatter_bitpack_frequency_alone: BatchArguments;
    /// AND by frequencies, of lists packed by bitpack.
    CONJUNCTION_BITPACK_FREQUENCY = conjunction_bitpack_frequency: BatchArguments;
    /// Likewise, of a query alone.
    CONJUNCTION_BITPACK_FREQUENCY_ALONE = conjunction_bitpack_frequency_alone: BatchArguments;
}

kernels! {
    BITPACK_IMPACT;
    /// OR by impacts, of lists packed by bitpack.
    SCATTER_BITPACK_IMPACT = scatter_bitpack_impact: BatchArguments;
    /// Likewise, of a query alone.
    SCATTER_BITPACK_IMPACT_ALONE = scatter_bitpack_impact_alone: BatchArguments;
    /// AND by impacts, of lists packed by bitpack.
    CONJUNCTION_BITPACK_IMPACT = conjunction_bitpack_impact: BatchArguments;
    /// Likewise, of a query alone.
    CONJUNCTION_BITPACK_IMPACT_ALONE = conjunction_bitpack_impact_alone: BatchArguments;
}

kernels! {
    ANY_FREQUENCY;
    /// OR by frequencies, of lists packed by any codec.
    SCATTER_ANY_FREQUENCY = scatter_any_frequency: BatchArguments;
    /// Likewise, of a query alone.
    SCATTER_ANY_FREQUENCY_ALONE = scatter_any_frequency_alone: BatchArguments;
    /// AND by frequencies, of lists packed by any codec.
    CONJUNCTION_ANY_FREQUENCY = conjunction_any_frequency: BatchArguments;
    /// Likewise, of a query alone.
    CONJUNCTION_ANY_FREQUENCY_ALONE = conjunction_any_frequency_alone: BatchArguments;
}

kernels! {
    ANY_IMPACT;
    /// OR by impacts, of lists packed by any codec.
    SCATTER_ANY_IMPACT = scatter_any_impact: BatchArguments;
    /// Likewise, of a query alone.
    SCATTER_ANY_IMPACT_ALONE = scatter_any_impact_alone: BatchArguments;
    /// AND by impacts, of lists packed by any codec.
    CONJUNCTION_ANY_IMPACT = conjunction_any_impact: BatchArguments;
    /// Likewise, of a query alone.
    CONJUNCTION_ANY_IMPACT_ALONE = conjunction_any_impact_alone: BatchArguments;
}

/// The kernels for the parts of ANDs and of ORs: of lists packed by bitpack or by any codec, by one column of values, of a
/// query alone or of batches.
pub fn answering(is_bitpack: bool, column: Column, is_alone: bool) -> [&'static TypedKernel<BatchArguments>; 2] {
    use Column::{Frequency, Impact};
    match (is_bitpack, column, is_alone) {
        (true, Frequency, false) => [&CONJUNCTION_BITPACK_FREQUENCY, &SCATTER_BITPACK_FREQUENCY],
        (true, Frequency, true) => [&CONJUNCTION_BITPACK_FREQUENCY_ALONE, &SCATTER_BITPACK_FREQUENCY_ALONE],
        (true, Impact, false) => [&CONJUNCTION_BITPACK_IMPACT, &SCATTER_BITPACK_IMPACT],
        (true, Impact, true) => [&CONJUNCTION_BITPACK_IMPACT_ALONE, &SCATTER_BITPACK_IMPACT_ALONE],
        (false, Frequency, false) => [&CONJUNCTION_ANY_FREQUENCY, &SCATTER_ANY_FREQUENCY],
        (false, Frequency, true) => [&CONJUNCTION_ANY_FREQUENCY_ALONE, &SCATTER_ANY_FREQUENCY_ALONE],
        (false, Impact, false) => [&CONJUNCTION_ANY_IMPACT, &SCATTER_ANY_IMPACT],
        (false, Impact, true) => [&CONJUNCTION_ANY_IMPACT_ALONE, &SCATTER_ANY_IMPACT_ALONE],
    }
}

kernels! {
    DECODING;
    [DecodeRow: 40 bytes]
    [DecodeArguments: 48 bytes]
    /// Decodes streams of the codec that the tag names.
    DECODE = decode: DecodeArguments;
    /// Decodes streams of raw.
    DECODE_RAW = decode_raw: DecodeArguments;
    /// Decodes streams of bitpack.
    DECODE_BITPACK = decode_bitpack: DecodeArguments;
    /// Decodes streams of elias-fano.
    DECODE_ELIAS_FANO = decode_elias_fano: DecodeArguments;
    /// Decodes streams of pfor.
    DECODE_PFOR = decode_pfor: DecodeArguments;
    /// Decodes streams of rice.
    DECODE_RICE = decode_rice: DecodeArguments;
    /// Decodes streams of pfor-block.
    DECODE_PFOR_BLOCK = decode_pfor_block: DecodeArguments;
}
