// See unary.rs for the codec. A warp reads 16 bits per lane, 512 at a time. One round is nearly always enough: with the
// width that gives the fewest bytes, an encoder writes no more than three bits per number.
//
// The ones that a lane reads belong to numbers of other lanes, so their positions go through scratch: each lane writes
// the positions of its ones after those of the lanes before it, and reads back four. This is griffin's Algorithm 1 and
// the bit-wise prefix sum with compaction of gpu-ir's section 6.1.
#pragma once
#include "codec/constants.h"
#include "codec/lanes.cu"
#include "codec/packed.cu"
#include "kernel.h"

static_assert(31 * BLOCK / 8 + LONGEST_UNARY_BYTES <= LONGEST_COLUMN_BYTES,
              "unary bits follow up to 31 bits per number");
// Bytes that the 32 lanes read at a time.
constexpr unsigned UNARY_ROUND_BYTES = 64;

// The end of `count` numbers, the last of which has its one at `position`. An arbitrary position, as for a one that was
// not found, gives an end within bounds and, in a full block, at a multiple of four bytes.
__device__ inline const uint8_t *unary_end_at(const uint8_t *bits, unsigned position, unsigned count) {
    return bits + filled(min(position / 8 + 1, LONGEST_UNARY_BYTES), count);
}

// The lane's 16 bits from byte `at` on: one load in a full block, whose columns start at multiples of four bytes.
__device__ inline unsigned unary_bits(const uint8_t *bits, unsigned at, unsigned count) {
    if (at >= LONGEST_UNARY_BYTES) return 0;
    if (count == BLOCK) return __ldg(reinterpret_cast<const uint16_t *>(bits + at));
    return __ldg(bits + at) | __ldg(bits + at + 1) << 8;
}

// The inclusive prefix sums of the lane's four numbers; sets `end` to the end of the bits.
__device__ inline uint4 unary_sums(const uint8_t *bits, unsigned count, unsigned lane, Scratch &scratch,
                                   const uint8_t *&end) {
    __syncwarp();
    for (unsigned start = 0, found = 0; found < count && start < LONGEST_UNARY_BYTES; start += UNARY_ROUND_BYTES) {
        const unsigned at = start + 2 * lane;
        unsigned word = unary_bits(bits, at, count);
        const unsigned ones = __popc(word), before = found + sum_before(ones);
        found = __shfl_sync(~0u, before + ones, 31);
        for (unsigned i = before; word != 0 && i < BLOCK; i++) {
            scratch.numbers[i] = 8 * at + __ffs(word) - 1;
            word &= word - 1;
        }
    }
    __syncwarp();
    end = unary_end_at(bits, scratch.numbers[count - 1], count);
    const uint4 positions = reinterpret_cast<const uint4 *>(scratch.numbers)[lane];
    const unsigned i = 4 * lane;
    return make_uint4(positions.x - i, positions.y - i - 1, positions.z - i - 2, positions.w - i - 3);
}

// The positions of the one of a number and of the one before it; `before` of the first is -1.
struct UnaryPositions {
    unsigned before, at;
};

// The positions for number `index`; as if the number were 0 where its one is missing. Any thread may call it.
__device__ inline UnaryPositions unary_positions(const uint8_t *bits, unsigned index) {
    unsigned before = ~0u, left = index;
#pragma unroll 1
    for (unsigned at = 0; at < LONGEST_UNARY_BYTES; at += 4) {
        unsigned word = word_from(bits + at);
        const unsigned ones = __popc(word);
        if (ones > left) {
#pragma unroll 1
            for (; left > 0; left--) {
                before = 8 * at + __ffs(word) - 1;
                word &= word - 1;
            }
            return {before, 8 * at + __ffs(word) - 1};
        }
        left -= ones;
        if (word != 0) before = 8 * at + 31 - __clz(word);
    }
    return {before, before + 1};
}

// Number `index`: the count of zeros between two ones.
__device__ inline unsigned unary_number(const uint8_t *bits, unsigned index) {
    const UnaryPositions positions = unary_positions(bits, index);
    return positions.at - positions.before - 1;
}

// The end of `count` numbers. Any thread may call it.
__device__ inline const uint8_t *unary_end(const uint8_t *bits, unsigned count) {
    return unary_end_at(bits, unary_positions(bits, count - 1).at, count);
}
