// Binary searches of a list, which the intersections have in common.
//
// A thread searches for four consecutive documents at once, so that the loads of a step are independent.
#pragma once
#include "kernel.h"

namespace papers {

// Moves each `first` to the first of its `length` numbers that is at least the target, or to their end; the lengths
// become zero.
template <unsigned ITEMS>
__device__ inline void find(const unsigned *numbers, const unsigned (&targets)[ITEMS], unsigned (&first)[ITEMS],
                            unsigned (&length)[ITEMS]) {
    unsigned longest = 0;
#pragma unroll
    for (unsigned i = 0; i < ITEMS; i++) longest = max(longest, length[i]);
    // Each step at least halves a length.
    for (; longest > 0; longest /= 2) {
#pragma unroll
        for (unsigned i = 0; i < ITEMS; i++) {
            const unsigned half = (length[i] + 1) / 2;
            const bool is_before = half > 0 && __ldg(numbers + first[i] + half - 1) < targets[i];
            first[i] += is_before ? half : 0;
            length[i] = is_before ? length[i] - half : half > 0 ? half - 1 : 0;
        }
    }
}

// The bits of the targets that are found at their positions.
template <unsigned ITEMS>
__device__ inline unsigned matches_at(const unsigned *numbers, unsigned count, const unsigned (&targets)[ITEMS],
                                      const unsigned (&positions)[ITEMS], unsigned targets_count) {
    unsigned matches = 0;
#pragma unroll
    for (unsigned i = 0; i < ITEMS; i++) {
        const bool is_match = i < targets_count && positions[i] < count && __ldg(numbers + positions[i]) == targets[i];
        matches |= static_cast<unsigned>(is_match) << i;
    }
    return matches;
}

// Loads the thread's documents of a tile; returns how many there are.
template <unsigned ITEMS>
__device__ inline unsigned load(const unsigned *documents, unsigned length, unsigned position,
                                unsigned (&targets)[ITEMS]) {
    const unsigned count = position < length ? min(length - position, ITEMS) : 0;
#pragma unroll
    for (unsigned i = 0; i < ITEMS; i++) targets[i] = i < count ? documents[position + i] : 0;
    return count;
}

} // namespace papers
