// See weigher.rs: turns stored values into weights in units, bit by bit as the host does.
#pragma once
#include "kernel.h"
#include "ptx/kernels.h"
#include "weight.h"

// The two columns of values.
enum Column : unsigned { FREQUENCY = 0, IMPACT = 1 };

// Rounds a nonnegative number half to even, at least to 1.
__device__ inline unsigned at_least_one(float number) { return max(__float2uint_rn(number), 1u); }

// The weight of a saturation.
__device__ inline unsigned units(float multiplier, float saturation) {
    return at_least_one(__fmul_rn(__fmul_rn(multiplier, saturation), ONE));
}

// See score.rs: what the static rank adds to a score. Negative ranks and NaN add nothing.
__device__ inline unsigned static_units(float alpha, float rank) {
    return __float2uint_rn(__fmul_rn(__fmul_rn(alpha, rank), ONE));
}

template <Column COLUMN> __device__ inline unsigned weigh(float multiplier, unsigned value, float norm) {
    const float number = __uint2float_rn(value);
    if (COLUMN == IMPACT) return at_least_one(__fmul_rn(multiplier, number));
    return units(multiplier, __fdiv_rn(number, __fadd_rn(number, norm)));
}

// An upper bound of the weights of a block.
template <Column COLUMN> __device__ inline unsigned block_bound(const SparseRow &list, unsigned block) {
    if (list.block_bound == 0) return list.bound;
    if (COLUMN == IMPACT) return weigh<IMPACT>(list.multiplier, __ldg(list.directory + list.block_bound + block), 0);
    const uint8_t *code = list.directory + list.block_bound + 2 * block;
    const unsigned number = __ldg(reinterpret_cast<const uint16_t *>(code));
    return units(list.multiplier, __fdiv_rn(__uint2float_rn(number), FULL_SATURATION));
}
