// See elias_fano.rs for the codec, unary.cu for the use of scratch. No sums are computed: the position of a one is a
// sum.
#pragma once
#include "codec/constants.h"
#include "codec/lanes.cu"
#include "codec/packed.cu"
#include "codec/raw.cu"
#include "codec/unary.cu"
#include "kernel.h"

struct EliasFano {
    static constexpr unsigned DECODE_BLOCKS_PER_SM = 8;

    __device__ static uint4 documents(const Packed &packed, unsigned base, unsigned count, unsigned lane,
                                      Scratch &scratch, const uint8_t *&end) {
        const uint4 sums = decode_sums(packed, count, lane, scratch, end);
        const unsigned first = base + 4 * lane;
        return make_uint4(first + sums.x, first + sums.y + 1, first + sums.z + 2, first + sums.w + 3);
    }

    __device__ static uint4 values(const Packed &packed, unsigned count, unsigned lane, Scratch &scratch,
                                   const uint8_t *&end) {
        if (packed.byte == ELIAS_FANO_WIDE) return Raw::values(packed, count, lane, scratch, end);
        return plus_one(differences(decode_sums(packed, count, lane, scratch, end), lane));
    }

    __device__ static unsigned value_at(const Packed &packed, unsigned count, unsigned index) {
        if (packed.byte == ELIAS_FANO_WIDE) return Raw::value_at(packed, count, index);
        if (packed.byte > 31) return 1;
        const unsigned width = packed.byte;
        const unsigned before = index == 0 ? 0 : number_at(packed.bytes, width, count, index - 1);
        const unsigned high = unary_number(packed.bytes + packed_bytes(width, count), index);
        return (high << width) + number_at(packed.bytes, width, count, index) - before + 1;
    }

    __device__ static const uint8_t *end_of(const Packed &packed, unsigned count) {
        if (packed.byte == ELIAS_FANO_WIDE) return Raw::end_of(packed, count);
        if (packed.byte > 31) return packed.bytes;
        return unary_end(packed.bytes + packed_bytes(packed.byte, count), count);
    }

  private:
    // Any directory byte above 31 but ELIAS_FANO_WIDE means that all numbers are 0.
    __device__ static uint4 decode_sums(const Packed &packed, unsigned count, unsigned lane, Scratch &scratch,
                                        const uint8_t *&end) {
        if (packed.byte > 31) {
            end = packed.bytes;
            return make_uint4(0, 0, 0, 0);
        }
        const unsigned width = packed.byte;
        const uint4 low = unpack(packed.bytes, width, count, lane);
        const uint4 high = unary_sums(packed.bytes + packed_bytes(width, count), count, lane, scratch, end);
        return make_uint4(high.x << width | low.x, high.y << width | low.y, high.z << width | low.z,
                          high.w << width | low.w);
    }
};
