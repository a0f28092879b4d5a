// See bitpack.rs for the codec, lanes.cu for which lane holds what.
#pragma once
#include "codec/lanes.cu"
#include "codec/packed.cu"
#include "kernel.h"

struct Bitpack {
    static constexpr unsigned DECODE_BLOCKS_PER_SM = 8;

    __device__ static uint4 documents(const Packed &packed, unsigned base, unsigned count, unsigned lane, Scratch &,
                                      const uint8_t *&end) {
        const unsigned width = min(packed.byte, 32u);
        end = packed.bytes + packed_bytes(width, count);
        return sum_up(unpack(packed.bytes, width, count, lane), base, lane);
    }

    __device__ static uint4 values(const Packed &packed, unsigned count, unsigned lane, Scratch &,
                                   const uint8_t *&end) {
        const unsigned width = min(packed.byte, 32u);
        end = packed.bytes + packed_bytes(width, count);
        return plus_one(unpack(packed.bytes, width, count, lane));
    }

    __device__ static unsigned value_at(const Packed &packed, unsigned count, unsigned index) {
        return number_at(packed.bytes, min(packed.byte, 32u), count, index) + 1;
    }

    __device__ static const uint8_t *end_of(const Packed &packed, unsigned count) {
        return packed.bytes + packed_bytes(min(packed.byte, 32u), count);
    }
};
