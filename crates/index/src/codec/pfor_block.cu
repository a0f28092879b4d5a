// See pfor_block.rs for the codec. An exception belongs to another lane than the one that reads it, so what it adds
// goes through scratch, which holds zeros for all other numbers.
#pragma once
#include "codec/lanes.cu"
#include "codec/packed.cu"

// Before exceptions are written to scratch.
__device__ inline void clear_patches(unsigned lane, Scratch &scratch) {
    __syncwarp();
    reinterpret_cast<uint4 *>(scratch.numbers)[lane] = make_uint4(0, 0, 0, 0);
    __syncwarp();
}

// The lane's numbers with their patches, once all exceptions are written.
__device__ inline uint4 add_patches(uint4 numbers, unsigned lane, const Scratch &scratch) {
    __syncwarp();
    const uint4 patches = reinterpret_cast<const uint4 *>(scratch.numbers)[lane];
    return make_uint4(numbers.x + patches.x, numbers.y + patches.y, numbers.z + patches.z, numbers.w + patches.w);
}

// The codec `Self` of a block whose numbers are slots with patches: its function `unpack_patched` gives the lane's gaps,
// or values less 1.
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

// Exceptions of a block, as they lie behind its numbers. What damaged bytes say is cut to what can be.
struct BlockExceptions {
    const uint8_t *positions;
    unsigned count;
    unsigned high_width;
    const uint8_t *highs;

    __device__ BlockExceptions(const uint8_t *bytes, unsigned width)
        : positions(bytes + 2), count(min(__ldg(bytes), BLOCK)), high_width(min(__ldg(bytes + 1), 32 - width)),
          highs(positions + count) {}

    // What an exception adds to its slot of a width.
    __device__ unsigned addend(unsigned number, unsigned width) const {
        return (number_of_bits(highs, high_width, number) + 1) << (width & 31);
    }

    __device__ const uint8_t *end() const { return highs + packed_bytes(high_width, count); }
};

struct PforBlock : PatchedNumbers<PforBlock> {
    __device__ static unsigned value_at(const Packed &packed, unsigned count, unsigned index) {
        const unsigned width = width_of(packed);
        const unsigned low = number_at(packed.bytes, width, count, index);
        if (!is_patched(packed)) return low + 1;
        const BlockExceptions exceptions(packed.bytes + packed_bytes(width, count), width);
        // Positions rise.
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

    // All lanes have the same directory byte, so all or none come to where the
    // exceptions are written.
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
    // In the directory byte: exceptions follow.
    static constexpr unsigned PATCHED = 0x40;

    __device__ static bool is_patched(const Packed &packed) { return packed.byte & PATCHED; }

    __device__ static unsigned width_of(const Packed &packed) { return min(packed.byte & ~PATCHED, 32u); }

    __device__ static const uint8_t *end_behind(const Packed &packed, const BlockExceptions &exceptions,
                                                unsigned count) {
        return packed.bytes + filled(static_cast<unsigned>(exceptions.end() - packed.bytes), count);
    }
};
