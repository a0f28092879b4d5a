// See rice.rs for the codec, unary.cu for the use of scratch. Remainders are summed up by shuffles.
#pragma once
#include "codec/lanes.cu"
#include "codec/packed.cu"
#include "codec/unary.cu"
#include "kernel.h"

struct Rice {
    static constexpr unsigned DECODE_BLOCKS_PER_SM = 8;

    __device__ static uint4 documents(const Packed &packed, unsigned base, unsigned count, unsigned lane,
                                      Scratch &scratch, const uint8_t *&end) {
        const unsigned width = remainder_width(packed);
        const uint4 sums = quotient_sums(packed, count, lane, scratch, end);
        return add_shifted(sum_up(unpack(packed.bytes, width, count, lane), base, lane), sums, width);
    }

    __device__ static uint4 values(const Packed &packed, unsigned count, unsigned lane, Scratch &scratch,
                                   const uint8_t *&end) {
        const unsigned width = remainder_width(packed);
        const uint4 quotients = differences(quotient_sums(packed, count, lane, scratch, end), lane);
        return add_shifted(plus_one(unpack(packed.bytes, width, count, lane)), quotients, width);
    }

    __device__ static unsigned value_at(const Packed &packed, unsigned count, unsigned index) {
        if (is_run(packed)) return 1;
        const unsigned width = packed.byte;
        const unsigned quotient = unary_number(packed.bytes + packed_bytes(width, count), index);
        return (quotient << width | number_at(packed.bytes, width, count, index)) + 1;
    }

    __device__ static const uint8_t *end_of(const Packed &packed, unsigned count) {
        if (is_run(packed)) return packed.bytes;
        return unary_end(packed.bytes + packed_bytes(packed.byte, count), count);
    }

  private:
    __device__ static bool is_run(const Packed &packed) { return packed.byte > 31; }

    __device__ static unsigned remainder_width(const Packed &packed) { return is_run(packed) ? 0 : packed.byte; }

    __device__ static uint4 quotient_sums(const Packed &packed, unsigned count, unsigned lane, Scratch &scratch,
                                          const uint8_t *&end) {
        if (is_run(packed)) {
            end = packed.bytes;
            return make_uint4(0, 0, 0, 0);
        }
        return unary_sums(packed.bytes + packed_bytes(packed.byte, count), count, lane, scratch, end);
    }

    __device__ static uint4 add_shifted(uint4 numbers, uint4 high, unsigned width) {
        return make_uint4(numbers.x + (high.x << width), numbers.y + (high.y << width), numbers.z + (high.z << width),
                          numbers.w + (high.w << width));
    }
};
