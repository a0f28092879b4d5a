// See raw.rs for the codec. Four bytes per number are a width of 32, for which both layouts of lanes.rs are the same.
#pragma once
#include "codec/lanes.cu"
#include "codec/packed.cu"
#include "kernel.h"

struct Raw {
    static constexpr unsigned DECODE_BLOCKS_PER_SM = 8;

    __device__ static uint4 documents(const Packed &packed, unsigned, unsigned count, unsigned lane, Scratch &scratch,
                                      const uint8_t *&end) {
        return values(packed, count, lane, scratch, end);
    }

    __device__ static uint4 values(const Packed &packed, unsigned count, unsigned lane, Scratch &,
                                   const uint8_t *&end) {
        end = end_of(packed, count);
        return unpack(packed.bytes, 32, count, lane);
    }

    __device__ static unsigned value_at(const Packed &packed, unsigned count, unsigned index) {
        return number_at(packed.bytes, 32, count, index);
    }

    __device__ static const uint8_t *end_of(const Packed &packed, unsigned count) { return packed.bytes + 4 * count; }
};
