// See compaction.rs for the algorithm.
//
// The state of a tile is one word of 64 bits, what is known of it and a count, so that it is read whole and no fence is
// needed. Tiles are numbered as blocks start, whatever blockIdx says, so that a block waits only for others that run.
#pragma once
#include "kernel.h"

namespace papers {

constexpr unsigned THREADS = 256, WARPS = THREADS / 32;

struct Order {
    unsigned *ticket;           // the tile that starts next
    unsigned *total;            // of all tiles, left by the last one
    unsigned long long *states; // of each tile; zero while nothing is known
    unsigned tiles, reserved;
};
static_assert(sizeof(Order) == 32, "as compaction.rs has it");

// In the upper half of a state: the lower half is the count of the tile, or that of all tiles up to it.
constexpr unsigned long long COUNTED = 1ull << 32, SUMMED = 2ull << 32;

struct OrderShared {
    unsigned tile, before;
    unsigned sums[WARPS];
};

// The tile of this block. Ends with a barrier.
__device__ inline unsigned start_tile(OrderShared &shared, const Order &order) {
    if (threadIdx.x == 0) shared.tile = atomicAdd(order.ticket, 1u);
    __syncthreads();
    return shared.tile;
}

// The sum of the values of all threads before this one; `total` becomes that of all. It has one barrier, behind which
// the sums are read: another one must stand before the next call.
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

// The counts of all tiles before this one, by its first warp: lane l looks at the tile l + 1 before it, at the one 32
// before that, and so on, and the warp goes through these rows, from the nearest on, until one has a tile that knows its
// sum. Many tiles run at once, and a sum is far away: all rows are read together.
__device__ inline unsigned look_back(const Order &order, unsigned tile) {
    constexpr unsigned ROWS = 8;
    const unsigned lane = threadIdx.x;
    unsigned before = 0, end = tile;
    for (;;) {
        unsigned long long states[ROWS];
#pragma unroll
        for (unsigned row = 0; row < ROWS; row++) {
            const unsigned distance = 32 * row + lane;
            // There are no tiles before the first.
            states[row] = SUMMED;
            if (distance < end) {
                states[row] = *const_cast<volatile unsigned long long *>(order.states + (end - 1 - distance));
            }
        }
        bool is_missing = false;
#pragma unroll
        for (unsigned row = 0; row < ROWS; row++) {
            if (is_missing) continue;
            const unsigned long long state = states[row];
            const unsigned missing = __ballot_sync(~0u, state == 0), summed = __ballot_sync(~0u, state >= SUMMED);
            // The lanes up to the first that knows its sum; all if none does.
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

// The counts of all tiles before this one, for all threads of the block. Ends with a barrier.
__device__ inline unsigned sum_before(OrderShared &shared, const Order &order, unsigned tile, unsigned count) {
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0 && tile > 0) atomicExch(order.states + tile, COUNTED | count);
        const unsigned before = look_back(order, tile);
        if (threadIdx.x == 0) {
            atomicExch(order.states + tile, SUMMED | (before + count));
            shared.before = before;
            if (tile == order.tiles - 1) *order.total = before + count;
        }
    }
    __syncthreads();
    return shared.before;
}

// Where matches stood in the two lists; null where nobody asks.
struct Origins {
    unsigned *shorter, *longer;
};
static_assert(sizeof(Origins) == 16, "as compaction.rs has it");

// Where the first match of this thread goes, which has so many; `before` becomes what lies before the first of the tile.
__device__ inline unsigned place_in_order(OrderShared &shared, const Order &order, unsigned tile, unsigned count,
                                          unsigned &before) {
    unsigned total;
    const unsigned before_thread = scan_block(shared.sums, count, total);
    before = sum_before(shared, order, tile, total);
    return before + before_thread;
}

// Writes the documents whose bits are set, thread by thread; returns what lies before the first of this tile.
template <unsigned ITEMS>
__device__ inline unsigned write_in_order(OrderShared &shared, const Order &order, unsigned tile, unsigned *results,
                                          const unsigned (&documents)[ITEMS], unsigned matches) {
    unsigned before;
    unsigned place = place_in_order(shared, order, tile, __popc(matches), before);
#pragma unroll
    for (unsigned i = 0; i < ITEMS; i++) {
        if (matches >> i & 1) results[place++] = documents[i];
    }
    return before;
}

// Likewise, with their origins: the documents stand from `first` on in the shorter list, and at `places` in the longer.
template <unsigned ITEMS>
__device__ inline void write_in_order(OrderShared &shared, const Order &order, unsigned tile, unsigned *results,
                                      const unsigned (&documents)[ITEMS], unsigned matches, const Origins &origins,
                                      unsigned first, const unsigned (&places)[ITEMS]) {
    unsigned before;
    unsigned place = place_in_order(shared, order, tile, __popc(matches), before);
#pragma unroll
    for (unsigned i = 0; i < ITEMS; i++) {
        if (!(matches >> i & 1)) continue;
        results[place] = documents[i];
        if (origins.shorter) {
            origins.shorter[place] = first + i;
            origins.longer[place] = places[i];
        }
        place++;
    }
}

} // namespace papers
