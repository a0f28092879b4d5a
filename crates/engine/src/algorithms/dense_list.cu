// See dense_list.rs: bit tests, ranks and weights of a bitmap, in device or host memory; any thread may call these functions.
#pragma once
#include "algorithms/weigher.cu"
#include "kernel.h"
#include "ptx/kernels.h"

// The bits of a chunk, as two words of 32.
__device__ inline uint2 word_of(const DenseRow &list, unsigned chunk) {
    return __ldg(list.words + chunk);
}

__device__ inline bool has_bit(uint2 word, unsigned bit) {
    return (bit < 32 ? word.x >> bit : word.y >> (bit - 32)) & 1;
}

// The most that a list can add to a document of a chunk.
__device__ inline unsigned bound_in(const DenseRow &list, unsigned chunk) {
    if (list.factor == 0) return list.bound;
    return __ldg(list.chunk_bound + chunk) * list.factor;
}

// The rank of a document whose bit is set: the position of its value.
__device__ inline unsigned rank_of(const DenseRow &list, unsigned chunk, uint2 word, unsigned bit) {
    const unsigned low = bit < 32 ? word.x & ((1u << bit) - 1) : word.x;
    const unsigned high = bit < 32 ? 0 : word.y & ((1u << (bit - 32)) - 1);
    const unsigned before = __ldg(list.window_rank + chunk / CHUNKS_PER_WINDOW) + __ldg(list.chunk_rank + chunk);
    return before + __popc(low) + __popc(high);
}

// A frequency that does not fit its bits. The first four probes are independent reads, around the position that the
// exception would have if exceptions were evenly spread.
__device__ inline unsigned exception_of(const unsigned *ranks, unsigned exceptions, unsigned postings,
                                        unsigned rank) {
    const float share = __uint2float_rn(rank) / __uint2float_rn(postings);
    const unsigned even = __float2uint_rz(share * __uint2float_rn(exceptions));
    unsigned low = 0, high = exceptions;
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        const unsigned far = i % 2 == 0 ? 512 : 32;
        const unsigned probe = i < 2 ? (even > far ? even - far : 0) : even + far;
        if (probe >= exceptions) continue;
        if (__ldg(ranks + probe) < rank) low = max(low, probe + 1);
        else high = min(high, probe);
    }
    while (low < high) {
        const unsigned middle = low + (high - low) / 2;
        if (__ldg(ranks + middle) < rank) low = middle + 1;
        else high = middle;
    }
    return low < exceptions && __ldg(ranks + low) == rank ? __ldg(ranks + exceptions + low) : 1;
}

// The frequency or impact of the posting with a rank.
__device__ inline unsigned value_of(const DenseRow &list, unsigned rank) {
    if (list.value_bits == 0 || rank >= list.postings) return 1;
    const uint64_t bit = static_cast<uint64_t>(rank) * list.value_bits;
    const unsigned byte = __ldg(list.values + bit / 8);
    const unsigned value = byte >> (bit & 7) & ((1u << list.value_bits) - 1);
    if (value > 0) return value;
    return exception_of(list.exception_rank, list.exceptions, list.postings, rank);
}

// The weight of a posting, whose bit is set in the word of its chunk.
template <Column COLUMN>
__device__ inline unsigned weigh_dense(const DenseRow &list, unsigned chunk, uint2 word, unsigned bit, float norm) {
    return weigh<COLUMN>(list.multiplier, value_of(list, rank_of(list, chunk, word, bit)), norm);
}
