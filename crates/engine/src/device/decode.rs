//! The kernels that only decode blocks: tests compare them with the CPU, and benchmarks time them.

use lanner_gpu::device::Address;
use lanner_gpu::kernel::{Module, TypedKernel};
use lanner_index::codec::{self, CodecName};

// The headers of codecs are checked here because lanner-index does not depend on lanner-gpu.
lanner_gpu::generated! { mod header_of_codecs = "../index/src/codec/table.h", codec::GPU_TABLE }
lanner_gpu::generated! { mod header_of_constants = "../index/src/codec/constants.h", codec::GPU_CONSTANTS }

lanner_gpu::shared! {
    mod header = "src/ptx/decode.h";

    /// Threads of a thread block.
    const DECODE_THREADS: u32 = 256;
    /// Bytes of shared memory.
    const DECODE_SHARED: usize = 4128;

    /// What is decoded.
    #[derive(PartialEq)]
    enum DecodeKind {
        /// Documents.
        Documents = 0,
        /// Values.
        Values = 1,
        /// Values, each fetched by itself.
        SingleValues = 2,
    }

    /// What a kernel returns.
    #[derive(PartialEq)]
    enum DecodeOutput {
        /// The sum of all numbers modulo 2^32, so that reading can be timed without writing.
        Sum = 0,
        /// The numbers.
        Numbers = 1,
        /// For each number the length of its column in bytes.
        Lengths = 2,
    }

    /// A column of one block.
    #[derive(Default, PartialEq)]
    struct DecodeRow {
        /// Its first byte.
        start: u64,
        /// The first byte of what its codec stores for all blocks of the list.
        shared_start: u64,
        /// How many bytes that has; 0 for nothing.
        shared_bytes: u32,
        /// No document is smaller.
        base: u32,
        /// Numbers, 1 to 128.
        count: u32,
        /// The directory byte.
        byte: u32,
        /// The position of the block in its list.
        block: u32,
        /// Unused.
        reserved: u32,
    }

    /// The argument of all kernels that decode.
    struct DecodeArguments {
        /// A row for each block.
        rows: Address to "const DecodeRow",
        /// The packed bytes.
        bytes: Address to "const uint8_t",
        /// 128 numbers for each block; undefined after the last of a partial block.
        out: Address to "unsigned",
        /// How many blocks there are.
        blocks: u32,
        /// The tag of the codec, for the kernel that reads any.
        tag: u32,
        /// What is decoded.
        kind: DecodeKind,
        /// What is returned.
        output: DecodeOutput,
        /// The sum is added to this number.
        sink: Address to "unsigned",
    }
}

static MODULE: Module = Module { name: "decode", ptx: include_str!("../ptx/decode.ptx") };

/// Decodes the codec that the tag names.
pub static DECODE: TypedKernel<DecodeArguments> = lanner_gpu::kernel!(MODULE, "decode");

/// The kernels that are compiled for one codec.
static DECODERS: [(CodecName, TypedKernel<DecodeArguments>); 6] = [
    (CodecName::Raw, lanner_gpu::kernel!(MODULE, "decode_raw")),
    (CodecName::Bitpack, lanner_gpu::kernel!(MODULE, "decode_bitpack")),
    (CodecName::EliasFano, lanner_gpu::kernel!(MODULE, "decode_elias_fano")),
    (CodecName::Pfor, lanner_gpu::kernel!(MODULE, "decode_pfor")),
    (CodecName::Rice, lanner_gpu::kernel!(MODULE, "decode_rice")),
    (CodecName::PforBlock, lanner_gpu::kernel!(MODULE, "decode_pfor_block")),
];

/// The kernel that decodes only one codec, if the codec has a GPU decoder.
pub fn decoder(codec: CodecName) -> Option<&'static TypedKernel<DecodeArguments>> {
    DECODERS.iter().find(|(name, _)| *name == codec).map(|(_, kernel)| kernel)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_codec_with_a_gpu_decoder_has_a_kernel_of_its_own() {
        for codec in CodecName::ALL {
            assert_eq!(decoder(codec).is_some(), codec.has_gpu_decoder(), "{codec}");
        }
    }
}
