// See pfor_block.rs for the codec. The lane that reads an exception usually does not hold its number, so patches go
// through scratch, which is zero for all other numbers.
#pragma once
#include "codec/constants.h"
#include "codec/lanes.cu"
#include "codec/packed.cu"
#include "kernel.h"

// Zeroes scratch, before patches are written.
__device__ inline void clear_patches(unsigned lane, Scratch &scratch) {
    __syncwarp();
    reinterpret_cast<uint4 *>(scratch.numbers)[lane] = make_uint4(0, 0, 0, 0);
    __syncwarp();
}

// Adds the patches to the lane's numbers, after all of them are written.
__device__ inline uint4 add_patches(uint4 numbers, unsigned lane, const Scratch &scratch) {
    __syncwarp();
    const uint4 patches = reinterpret_cast<const uint4 *>(scratch.numbers)[lane];
    return make_uint4(numbers.x + patches.x, numbers.y + patches.y, numbers.z + patches.z, numbers.w + patches.w);
}

// A codec `Self` that packs the low bits of numbers and patches those that do not fit. Its function `unpack_patched`
// returns the lane's gaps, or values less 1.
template <class Self> struct PatchedNumbers {
    __device__ static uint4 documents(const Packed &packed, unsigned base, unsigned count, unsigned lane,
                                      Scratch &scratch, const uint8_t *&end) {
        return sum_up(Self::unpack_patched(packed, count, lane, scratch, end), base, lane);
    }

    __device__ static uint4 values(const Packed &packed, unsigned count, unsigned lane, Scratch &scratch,
                                   const uint8_t *&end) {
        return plus_one(Self::unpack_patched(packed, count, lane, scratch, end));
    }
};

// The exceptions of a block, which follow its numbers. Damaged counts and widths are clamped to valid ones.
struct BlockExceptions {
    const uint8_t *positions;
    unsigned count;
    unsigned high_width;
    const uint8_t *highs;

    __device__ BlockExceptions(const uint8_t *bytes, unsigned width)
        : positions(bytes + 2), count(min(__ldg(bytes), BLOCK)), high_width(min(__ldg(bytes + 1), 32 - width)),
          highs(positions + count) {}

    // What an exception adds to its number of a width.
    __device__ unsigned addend(unsigned number, unsigned width) const {
        return (number_of_bits(highs, high_width, number) + 1) << (width & 31);
    }

    __device__ const uint8_t *end() const { return highs + packed_bytes(high_width, count); }
};

struct PforBlock : PatchedNumbers<PforBlock> {
    static constexpr unsigned DECODE_BLOCKS_PER_SM = 8;

    __device__ static unsigned value_at(const Packed &packed, unsigned count, unsigned index) {
        const unsigned width = width_of(packed);
        const unsigned low = number_at(packed.bytes, width, count, index);
        if (!is_patched(packed)) return low + 1;
        const BlockExceptions exceptions(packed.bytes + packed_bytes(width, count), width);
        // Positions increase.
        unsigned number = 0, position = 0;
#pragma unroll 1
        while (number < exceptions.count && (position = __ldg(exceptions.positions + number)) < index) number++;
        if (number == exceptions.count || position != index) return low + 1;
        return low + exceptions.addend(number, width) + 1;
    }

    __device__ static const uint8_t *end_of(const Packed &packed, unsigned count) {
        const unsigned width = width_of(packed), numbers = packed_bytes(width, count);
        if (!is_patched(packed)) return packed.bytes + numbers;
        return end_behind(packed, BlockExceptions(packed.bytes + numbers, width), count);
    }

    // The directory byte is uniform in the warp, so all lanes or none write patches.
    __device__ static uint4 unpack_patched(const Packed &packed, unsigned count, unsigned lane, Scratch &scratch,
                                           const uint8_t *&end) {
        const unsigned width = width_of(packed);
        const uint4 numbers = unpack(packed.bytes, width, count, lane);
        end = packed.bytes + packed_bytes(width, count);
        if (!is_patched(packed)) return numbers;
        const BlockExceptions exceptions(end, width);
        end = end_behind(packed, exceptions, count);
        clear_patches(lane, scratch);
#pragma unroll 1
        for (unsigned number = lane; number < exceptions.count; number += 32) {
            const unsigned position = __ldg(exceptions.positions + number);
            if (position < BLOCK) scratch.numbers[position] = exceptions.addend(number, width);
        }
        return add_patches(numbers, lane, scratch);
    }

  private:
    __device__ static bool is_patched(const Packed &packed) { return packed.byte & PFOR_BLOCK_PATCHED; }

    __device__ static unsigned width_of(const Packed &packed) { return min(packed.byte & ~PFOR_BLOCK_PATCHED, 32u); }

    __device__ static const uint8_t *end_behind(const Packed &packed, const BlockExceptions &exceptions,
                                                unsigned count) {
        return packed.bytes + filled(static_cast<unsigned>(exceptions.end() - packed.bytes), count);
    }
};
