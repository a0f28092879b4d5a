// See compaction.rs for the algorithm.
//
// The state of a tile is one 64-bit word, a flag and a count, so that both are read together and no fence is needed.
// Tiles are numbered in the order in which thread blocks start, not by blockIdx, so that a thread block waits only for
// tiles that already run.
#pragma once
#include "kernel.h"
#include "ptx/compaction.h"

namespace papers {

// The upper half of a state: the lower half is the count of the tile, or its inclusive prefix sum.
constexpr unsigned long long COUNTED = 1ull << 32, SUMMED = 2ull << 32;

struct LookbackShared {
    unsigned tile, before;
    unsigned sums[WARPS];
};
static_assert(sizeof(LookbackShared) == LOOKBACK_SHARED, "as compaction.rs has it");

// The tile of this thread block. Ends with a barrier.
__device__ inline unsigned start_tile(LookbackShared &shared, const Lookback &lookback) {
    if (threadIdx.x == 0) shared.tile = atomicAdd(lookback.ticket, 1u);
    __syncthreads();
    return shared.tile;
}

// The exclusive prefix sum over the threads of the thread block; sets `total` to the sum of all. Has one barrier, after
// which it reads the sums, so another barrier must come before the next call.
__device__ inline unsigned scan_block(unsigned (&sums)[WARPS], unsigned value, unsigned &total) {
    const unsigned lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    unsigned sum = value;
    for (unsigned by = 1; by < 32; by *= 2) {
        const unsigned of_others = __shfl_up_sync(~0u, sum, by);
        if (lane >= by) sum += of_others;
    }
    if (lane == 31) sums[warp] = sum;
    __syncthreads();
    unsigned before = sum - value;
    total = 0;
    for (unsigned other = 0; other < WARPS; other++) {
        if (other < warp) before += sums[other];
        total += sums[other];
    }
    return before;
}

// The sum of the counts of all tiles before this one, by its first warp. Lane l reads the state of the tile l + 1
// before it, of the one 32 before that, and so on; the warp goes through these rows from the nearest on, until a row
// has a tile with a prefix sum. Many tiles run at once, so that the next prefix sum is far away: all rows are loaded
// together.
__device__ inline unsigned look_back(const Lookback &lookback, unsigned tile) {
    constexpr unsigned ROWS = 8;
    const unsigned lane = threadIdx.x;
    unsigned before = 0, end = tile;
    for (;;) {
        unsigned long long states[ROWS];
#pragma unroll
        for (unsigned row = 0; row < ROWS; row++) {
            const unsigned distance = 32 * row + lane;
            // Before the first tile the prefix sum is zero.
            states[row] = SUMMED;
            if (distance < end) {
                states[row] = *const_cast<volatile unsigned long long *>(lookback.states + (end - 1 - distance));
            }
        }
        bool is_missing = false;
#pragma unroll
        for (unsigned row = 0; row < ROWS; row++) {
            if (is_missing) continue;
            const unsigned long long state = states[row];
            const unsigned missing = __ballot_sync(~0u, state == 0), summed = __ballot_sync(~0u, state >= SUMMED);
            // The lanes up to the first with a prefix sum; all if there is none.
            const unsigned near = (summed & (0u - summed)) * 2 - 1;
            is_missing = missing & near;
            if (is_missing) continue;
            unsigned count = near >> lane & 1 ? static_cast<unsigned>(state) : 0;
            for (unsigned by = 16; by > 0; by /= 2) count += __shfl_xor_sync(~0u, count, by);
            before += count;
            if (summed) return before;
            end -= 32;
        }
    }
}

// The sum of the counts of all tiles before this one, for all threads of the thread block. Ends with a barrier.
__device__ inline unsigned sum_before(LookbackShared &shared, const Lookback &lookback, unsigned tile, unsigned count) {
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0 && tile > 0) atomicExch(lookback.states + tile, COUNTED | count);
        const unsigned before = look_back(lookback, tile);
        if (threadIdx.x == 0) {
            atomicExch(lookback.states + tile, SUMMED | (before + count));
            shared.before = before;
            if (tile == lookback.tiles - 1) *lookback.total = before + count;
        }
    }
    __syncthreads();
    return shared.before;
}

// The position of the first of this thread's `count` matches; sets `before` to the position of the first of the tile.
__device__ inline unsigned position_in_order(LookbackShared &shared, const Lookback &lookback, unsigned tile,
                                             unsigned count, unsigned &before) {
    unsigned total;
    const unsigned before_thread = scan_block(shared.sums, count, total);
    before = sum_before(shared, lookback, tile, total);
    return before + before_thread;
}

// Writes the documents whose bits are set in `matches`; returns the position of the first of this tile.
template <unsigned ITEMS>
__device__ inline unsigned write_in_order(LookbackShared &shared, const Lookback &lookback, unsigned tile,
                                          unsigned *results, const unsigned (&documents)[ITEMS], unsigned matches) {
    unsigned before;
    unsigned position = position_in_order(shared, lookback, tile, __popc(matches), before);
#pragma unroll
    for (unsigned i = 0; i < ITEMS; i++) {
        if (matches >> i & 1) results[position++] = documents[i];
    }
    return before;
}

// The same with origins: the documents are at `first` and following in the shorter list, at `positions` in the longer.
template <unsigned ITEMS>
__device__ inline void write_in_order(LookbackShared &shared, const Lookback &lookback, unsigned tile,
                                      unsigned *results, const unsigned (&documents)[ITEMS], unsigned matches,
                                      const Origins &origins, unsigned first, const unsigned (&positions)[ITEMS]) {
    unsigned before;
    unsigned position = position_in_order(shared, lookback, tile, __popc(matches), before);
#pragma unroll
    for (unsigned i = 0; i < ITEMS; i++) {
        if (!(matches >> i & 1)) continue;
        results[position] = documents[i];
        if (origins.shorter) {
            origins.shorter[position] = first + i;
            origins.longer[position] = positions[i];
        }
        position++;
    }
}

} // namespace papers
