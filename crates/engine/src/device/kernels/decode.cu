// The kernels that only decode blocks: a module of decode.rs.
//
// A warp decodes a block, then the one as many blocks further on as there are warps.
#include "codec/codec.cu"
#include "codec/constants.h"
#include "codec/packed.cu"
#include "codec/table.h"
#include "kernel.h"
#include "ptx/decode.h"

constexpr unsigned DECODE_WARPS = DECODE_THREADS / 32;

struct DecodeShared {
    Scratch scratch[DECODE_WARPS];
    unsigned sums[DECODE_WARPS];
};
static_assert(sizeof(DecodeShared) == DECODE_SHARED, "as decode.rs has it");

__device__ inline Packed packed_row(const DecodeRow &row, const uint8_t *bytes) {
    const uint8_t *shared = row.shared_bytes > 0 ? bytes + row.shared_start : nullptr;
    return {bytes + row.start, shared, row.shared_bytes, row.byte, row.block};
}

// The lane's four values, each fetched by itself. Unrolled, this would need four times the registers.
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

// The lane's four numbers of a block; sets `end` to the end of the column.
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

// The sum of the lane's numbers, without those after the last of the block.
__device__ inline unsigned sum_of(uint4 numbers, unsigned count, unsigned lane) {
    if (count == BLOCK) return numbers.x + numbers.y + numbers.z + numbers.w;
    const unsigned left = count > 4 * lane ? count - 4 * lane : 0;
    return (left > 0 ? numbers.x : 0) + (left > 1 ? numbers.y : 0) + (left > 2 ? numbers.z : 0) +
           (left > 3 ? numbers.w : 0);
}

// Adds the sums of all threads of the thread block to the sink. All threads must call it.
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

// Bounded to as many resident thread blocks per SM as their registers allow with hardly any spilling.
#define DECODE_KERNEL(tag, Name, stem)                                                                                 \
    BOUNDED_KERNEL(decode_##stem, DECODE_THREADS, Name::DECODE_BLOCKS_PER_SM, DecodeArguments, arguments) {            \
        decode_rows<tag>(arguments);                                                                                   \
    }
BOUNDED_KERNEL(decode, DECODE_THREADS, 4, DecodeArguments, arguments) { decode_rows<ANY>(arguments); }
FOR_EACH_GPU_CODEC(DECODE_KERNEL)
#undef DECODE_KERNEL
