// See lanes.rs for the layout. A warp reads a block: lane `l` holds numbers 4 l to 4 l + 3.
//
// Nothing here uses shared memory. Sums are computed by shuffles, so all lanes of the warp must take part.
#pragma once
#include "codec/constants.h"
#include "kernel.h"

// The four bytes from any address on. Reads no byte outside the aligned words that hold them.
__device__ inline unsigned word_from(const uint8_t *bytes) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(bytes);
    const unsigned *words = reinterpret_cast<const unsigned *>(address & ~uintptr_t(3));
    const unsigned shift = 8 * (address & 3);
    const unsigned low = __ldg(words);
    return shift == 0 ? low : __funnelshift_r(low, __ldg(words + 1), shift);
}

__device__ inline unsigned mask_of_width(unsigned width) { return width >= 32 ? ~0u : (1u << width) - 1; }

// Bytes of `count` numbers of a width.
__device__ inline unsigned packed_bytes(unsigned width, unsigned count) { return (width * count + 7) / 8; }

// Bytes of a column that is padded with zeros in a full block.
__device__ inline unsigned filled(unsigned bytes, unsigned count) {
    return count == BLOCK ? (bytes + 3) / 4 * 4 : bytes;
}

// Number `index` of numbers packed one after the other, from at most two words.
__device__ inline unsigned number_of_bits(const uint8_t *bytes, unsigned width, unsigned index) {
    if (width == 0) return 0;
    const uintptr_t address = reinterpret_cast<uintptr_t>(bytes);
    const unsigned bit = 8 * (address & 3) + index * width, shift = bit & 31;
    const unsigned *word = reinterpret_cast<const unsigned *>(address & ~uintptr_t(3)) + bit / 32;
    const unsigned low = __ldg(word);
    const unsigned high = shift + width > 32 ? __ldg(word + 1) : 0;
    return __funnelshift_r(low, high, shift) & mask_of_width(width);
}

// Number `index` of `count`, from at most two words of a full block.
__device__ inline unsigned number_at(const uint8_t *bytes, unsigned width, unsigned count, unsigned index) {
    if (count != BLOCK) return number_of_bits(bytes, width, index);
    if (width == 0) return 0;
    const unsigned bit = index / 4 * width, shift = bit & 31;
    const unsigned *word = reinterpret_cast<const unsigned *>(bytes) + 4 * (bit / 32) + index % 4;
    const unsigned low = __ldg(word);
    const unsigned high = shift + width > 32 ? __ldg(word + 4) : 0;
    return __funnelshift_r(low, high, shift) & mask_of_width(width);
}

// Four consecutive words.
__device__ inline uint4 four_words(const unsigned *words) {
    return make_uint4(__ldg(words), __ldg(words + 1), __ldg(words + 2), __ldg(words + 3));
}

// The lane's four numbers of `count`; undefined after the last.
__device__ inline uint4 unpack(const uint8_t *bytes, unsigned width, unsigned count, unsigned lane) {
    if (width == 0) return make_uint4(0, 0, 0, 0);
    if (count != BLOCK) {
        uint4 numbers = make_uint4(0, 0, 0, 0);
        if (4 * lane + 0 < count) numbers.x = number_of_bits(bytes, width, 4 * lane);
        if (4 * lane + 1 < count) numbers.y = number_of_bits(bytes, width, 4 * lane + 1);
        if (4 * lane + 2 < count) numbers.z = number_of_bits(bytes, width, 4 * lane + 2);
        if (4 * lane + 3 < count) numbers.w = number_of_bits(bytes, width, 4 * lane + 3);
        return numbers;
    }
    const unsigned bit = lane * width, shift = bit & 31, mask = mask_of_width(width);
    const uint4 *first = reinterpret_cast<const uint4 *>(bytes) + bit / 32;
    const bool is_split = shift + width > 32;
    uint4 low, high = make_uint4(0, 0, 0, 0);
    // A column after another one may start at any multiple of four bytes.
    if ((reinterpret_cast<uintptr_t>(bytes) & 15) == 0) {
        low = __ldg(first);
        if (is_split) high = __ldg(first + 1);
    } else {
        low = four_words(reinterpret_cast<const unsigned *>(first));
        if (is_split) high = four_words(reinterpret_cast<const unsigned *>(first + 1));
    }
    // Lanes whose numbers are split have diverged. Converge, or everything that follows is executed twice.
    __syncwarp();
    return make_uint4(__funnelshift_r(low.x, high.x, shift) & mask, __funnelshift_r(low.y, high.y, shift) & mask,
                      __funnelshift_r(low.z, high.z, shift) & mask, __funnelshift_r(low.w, high.w, shift) & mask);
}

// The lane's four numbers of a full block in shared memory.
__device__ inline uint4 unpack_shared(const uint4 *words, unsigned width, unsigned lane) {
    if (width == 0) return make_uint4(0, 0, 0, 0);
    const unsigned bit = lane * width, shift = bit & 31, mask = mask_of_width(width);
    const uint4 low = words[bit / 32];
    // The numbers of the last lane are never split.
    const uint4 high = words[shift + width > 32 ? bit / 32 + 1 : bit / 32];
    return make_uint4(__funnelshift_r(low.x, high.x, shift) & mask, __funnelshift_r(low.y, high.y, shift) & mask,
                      __funnelshift_r(low.z, high.z, shift) & mask, __funnelshift_r(low.w, high.w, shift) & mask);
}

// The exclusive prefix sum over the lanes of the warp.
__device__ inline unsigned sum_before(unsigned number) {
    unsigned sum = number;
#pragma unroll
    for (unsigned by = 1; by < 32; by <<= 1) ADD_LANE_BEFORE(sum, by);
    return sum - number;
}

// Prefix sums of the warp's numbers, each plus `base`, plus one for each number before it: turns gaps into documents.
__device__ inline uint4 sum_up(uint4 gaps, unsigned base, unsigned lane) {
    const unsigned y = gaps.x + gaps.y, z = y + gaps.z, w = z + gaps.w;
    const unsigned first = base + sum_before(w) + 4 * lane;
    return make_uint4(first + gaps.x, first + y + 1, first + z + 2, first + w + 3);
}

// The numbers whose prefix sums these are.
__device__ inline uint4 differences(uint4 sums, unsigned lane) {
    const unsigned before = __shfl_up_sync(~0u, sums.w, 1);
    return make_uint4(lane == 0 ? sums.x : sums.x - before, sums.y - sums.x, sums.z - sums.y, sums.w - sums.z);
}

// Values from the numbers that are packed.
__device__ inline uint4 plus_one(uint4 less_one) {
    return make_uint4(less_one.x + 1, less_one.y + 1, less_one.z + 1, less_one.w + 1);
}
