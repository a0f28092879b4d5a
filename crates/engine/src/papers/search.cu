// Binary searches for documents of a list, as the intersections make them.
//
// A thread has four documents that follow each other and searches for all of them at once: the loads of a step do not
// wait for each other.
#pragma once
#include "papers/compaction.cu"

namespace papers {

// Documents of the shorter list that a thread searches for.
constexpr unsigned SEARCHED = 4;

// Moves each `first` to the first number that is at least the target, or behind the last, within its `length` numbers;
// the lengths become zero.
template <unsigned ITEMS>
__device__ inline void find(const unsigned *numbers, const unsigned (&targets)[ITEMS], unsigned (&first)[ITEMS],
                            unsigned (&length)[ITEMS]) {
    unsigned longest = 0;
#pragma unroll
    for (unsigned i = 0; i < ITEMS; i++) longest = max(longest, length[i]);
    // A step leaves at most half of a length.
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

// Bits of those targets that stand at their places.
template <unsigned ITEMS>
__device__ inline unsigned matches_at(const unsigned *numbers, unsigned count, const unsigned (&targets)[ITEMS],
                                      const unsigned (&places)[ITEMS], unsigned targets_count) {
    unsigned matches = 0;
#pragma unroll
    for (unsigned i = 0; i < ITEMS; i++) {
        const bool is_match = i < targets_count && places[i] < count && __ldg(numbers + places[i]) == targets[i];
        matches |= static_cast<unsigned>(is_match) << i;
    }
    return matches;
}

// The thread's documents of a tile; how many there are.
template <unsigned ITEMS>
__device__ inline unsigned load(const unsigned *documents, unsigned length, unsigned place,
                                unsigned (&targets)[ITEMS]) {
    const unsigned count = place < length ? min(length - place, ITEMS) : 0;
#pragma unroll
    for (unsigned i = 0; i < ITEMS; i++) targets[i] = i < count ? documents[place + i] : 0;
    return count;
}

} // namespace papers
