// Decodes blocks as they lie in the file: what tests compare with the CPU, and what the decode benchmark times.
//
// A warp takes a block, and then the one as many further on as there are warps.
#pragma once
#include "codec/codec.cu"

constexpr unsigned DECODE_THREADS = 256, DECODE_WARPS = DECODE_THREADS / 32;

// A stream of one block.
struct DecodeRow {
    uint64_t start;        // its first byte
    uint64_t shared_start; // the first byte of the shared part
    uint32_t shared_bytes; // 0 for none
    uint32_t base;         // of documents
    uint32_t count;        // 1 to 128
    uint32_t byte;         // the directory byte
    uint32_t block;        // which block of its list
    uint32_t reserved;
};
static_assert(sizeof(DecodeRow) == 40, "as kernels.rs has it");

// What the streams are, and how they are read.
enum class DecodeKind : unsigned { Documents = 0, Values = 1, SingleValues = 2 };

// What is kept: the sum of the first `count` numbers of all blocks, modulo 2^32, so that reading alone can be timed;
// the numbers; or, for each of them, the length of the stream in bytes.
enum class DecodeOutput : unsigned { Sum = 0, Numbers = 1, Lengths = 2 };

struct DecodeArguments {
    const DecodeRow *rows;
    const uint8_t *bytes;
    unsigned *out; // 128 numbers a block; those behind the last of an unfinished one are anything
    unsigned blocks;
    unsigned tag; // for the kernel that reads any codec
    DecodeKind kind;
    DecodeOutput output;
    unsigned *sink; // to which the sum is added
};
static_assert(sizeof(DecodeArguments) == 48, "as kernels.rs has it");

struct DecodeShared {
    Scratch scratch[DECODE_WARPS];
    unsigned sums[DECODE_WARPS];
};
static_assert(sizeof(DecodeShared) == 4128, "as kernels.rs has it");

__device__ inline Packed packed_row(const DecodeRow &row, const uint8_t *bytes) {
    const uint8_t *shared = row.shared_bytes > 0 ? bytes + row.shared_start : nullptr;
    return {bytes + row.start, shared, row.shared_bytes, row.byte, row.block};
}

// The lane's four values, each fetched alone. Unrolled, this would need four times the registers.
template <unsigned TAG>
__device__ inline uint4 single_values(unsigned tag, const Packed &packed, unsigned count, unsigned lane) {
    uint4 values = make_uint4(0, 0, 0, 0);
#pragma unroll 1
    for (unsigned i = 4 * lane; i < 4 * lane + 4; i++) {
        const unsigned value = i < count ? Codec<TAG>::value_at(tag, packed, count, i) : 0;
        values = make_uint4(values.y, values.z, values.w, value);
    }
    return values;
}

// The lane's four numbers of a block; `end` becomes the end of the stream.
template <unsigned TAG>
__device__ inline uint4 decode_row(const DecodeArguments &arguments, const DecodeRow &row, const Packed &packed,
                                   unsigned lane, Scratch &scratch, const uint8_t *&end) {
    const unsigned tag = arguments.tag, count = row.count;
    switch (arguments.kind) {
    case DecodeKind::Documents: return Codec<TAG>::documents(tag, packed, row.base, count, lane, scratch, end);
    case DecodeKind::Values: return Codec<TAG>::values(tag, packed, count, lane, scratch, end);
    case DecodeKind::SingleValues: break;
    }
    end = Codec<TAG>::end_of(tag, packed, count);
    return single_values<TAG>(tag, packed, count, lane);
}

// The sum of the lane's numbers, without those behind the last of their block.
__device__ inline unsigned sum_of(uint4 numbers, unsigned count, unsigned lane) {
    if (count == BLOCK) return numbers.x + numbers.y + numbers.z + numbers.w;
    const unsigned left = count > 4 * lane ? count - 4 * lane : 0;
    return (left > 0 ? numbers.x : 0) + (left > 1 ? numbers.y : 0) + (left > 2 ? numbers.z : 0) +
           (left > 3 ? numbers.w : 0);
}

// Adds up what the threads of the block have. All of them come.
__device__ inline void add_to_sink(unsigned sum, unsigned lane, unsigned warp, DecodeShared &shared, unsigned *sink) {
    for (unsigned by = 16; by > 0; by >>= 1) sum += __shfl_xor_sync(~0u, sum, by);
    if (lane == 0) shared.sums[warp] = sum;
    __syncthreads();
    if (threadIdx.x != 0) return;
    unsigned all = 0;
    for (unsigned other : shared.sums) all += other;
    atomicAdd(sink, all);
}

template <unsigned TAG> __device__ inline void decode_rows(const DecodeArguments &arguments) {
    SHARED(DecodeShared, shared);
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = gridDim.x * DECODE_WARPS;
    unsigned sum = 0;
    for (unsigned i = blockIdx.x * DECODE_WARPS + warp; i < arguments.blocks; i += warps) {
        const DecodeRow row = arguments.rows[i];
        const Packed packed = packed_row(row, arguments.bytes);
        const uint8_t *end;
        uint4 numbers = decode_row<TAG>(arguments, row, packed, lane, shared.scratch[warp], end);
        if (arguments.output == DecodeOutput::Sum) {
            sum += sum_of(numbers, row.count, lane);
            continue;
        }
        const unsigned length = end - packed.bytes;
        if (arguments.output == DecodeOutput::Lengths) numbers = make_uint4(length, length, length, length);
        reinterpret_cast<uint4 *>(arguments.out)[32ull * i + lane] = numbers;
    }
    if (arguments.output == DecodeOutput::Sum) add_to_sink(sum, lane, warp, shared, arguments.sink);
}

// With registers for so many blocks a processor: as many as fit without, or nearly without, keeping some in memory.
#define DECODE_KERNEL(name, tag, blocks)                                                                               \
    BOUNDED_KERNEL(name, DECODE_THREADS, blocks, DecodeArguments, arguments) { decode_rows<tag>(arguments); }
DECODE_KERNEL(decode, ANY, 4)
DECODE_KERNEL(decode_raw, RAW, 8)
DECODE_KERNEL(decode_bitpack, BITPACK, 8)
DECODE_KERNEL(decode_elias_fano, ELIAS_FANO, 8)
DECODE_KERNEL(decode_pfor, PFOR, 6)
DECODE_KERNEL(decode_rice, RICE, 8)
DECODE_KERNEL(decode_pfor_block, PFOR_BLOCK, 8)
#undef DECODE_KERNEL
