// See unary.rs for the codec. A warp reads 16 bits a lane, 512 at a time: with the width that makes the least bytes an
// encoder writes no more than three a number, so that once is enough.
//
// The ones that a lane holds are numbers of other lanes, so their places go through scratch: each lane writes those it
// holds, behind as many as the lanes before it have, and reads back four. It is griffin's Algorithm 1 and the bit-wise
// prefix sum with compaction of gpu-ir's section 6.1.
#pragma once
#include "codec/lanes.cu"
#include "codec/packed.cu"

// No encoder writes more bytes; whatever the bytes hold, nothing is read behind so many.
constexpr unsigned LONGEST_UNARY_BYTES = 33 * BLOCK / 8;
static_assert(31 * BLOCK / 8 + LONGEST_UNARY_BYTES <= LONGEST_STREAM_BYTES, "behind up to 31 bits a number");
// What the 32 lanes read at a time.
constexpr unsigned UNARY_ROUND_BYTES = 64;

// The end of `count` numbers, the last of which has its one at `place`. A place that is anything, as one that was not
// found, makes an end that is not too far and, in a full block, at a multiple of four bytes.
__device__ inline const uint8_t *unary_end_at(const uint8_t *bits, unsigned place, unsigned count) {
    return bits + filled(min(place / 8 + 1, LONGEST_UNARY_BYTES), count);
}

// The lane's 16 bits from byte `at` on: one load in a full block, which starts at a multiple of four bytes.
__device__ inline unsigned unary_bits(const uint8_t *bits, unsigned at, unsigned count) {
    if (at >= LONGEST_UNARY_BYTES) return 0;
    if (count == BLOCK) return __ldg(reinterpret_cast<const uint16_t *>(bits + at));
    return __ldg(bits + at) | __ldg(bits + at + 1) << 8;
}

// The sums of the lane's four numbers, each with its own number; `end` becomes the end of the bits.
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
    const uint4 places = reinterpret_cast<const uint4 *>(scratch.numbers)[lane];
    const unsigned i = 4 * lane;
    return make_uint4(places.x - i, places.y - i - 1, places.z - i - 2, places.w - i - 3);
}

// Where the one of a number is, and the one of the number before; `before` of the first is -1.
struct UnaryPlaces {
    unsigned before, at;
};

// The places for number `index`, by any one thread; as if the number were 0 where its one is missing.
__device__ inline UnaryPlaces unary_places(const uint8_t *bits, unsigned index) {
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

// Number `index`: the zeros between two ones.
__device__ inline unsigned unary_number(const uint8_t *bits, unsigned index) {
    const UnaryPlaces places = unary_places(bits, index);
    return places.at - places.before - 1;
}

// The end of `count` numbers, by any one thread.
__device__ inline const uint8_t *unary_end(const uint8_t *bits, unsigned count) {
    return unary_end_at(bits, unary_places(bits, count - 1).at, count);
}
