// See selection.rs for the algorithms.
//
// A launch leaves its results for the next one in global memory: the greatest keys of groups, counts of buckets, the
// range that has the k-th key. Nothing goes through the host in between.
#pragma once
#include "kernel.h"
#include "papers/compaction.cu"
#include "ptx/compaction.h"
#include "ptx/selection.h"

namespace papers {

using Key = unsigned long long;

// The bitonic sort. A thread block has `size` keys in shared memory, a power of two, padded with zeros, which are less
// than any key. Steps of 32 and more go through shared memory; in shorter ones a lane's partner is in its own warp.

// The greater or the smaller of two keys, by its position in a run that is sorted in descending or ascending order.
__device__ inline Key exchanged(Key mine, Key other, unsigned position, unsigned step, unsigned run) {
    const bool is_descending = (position & run) == 0, is_first = (position & step) == 0;
    return (is_first == is_descending) == (mine > other) ? mine : other;
}

__device__ inline void sort_in_shared(Key *keys, unsigned size) {
    for (unsigned run = 2; run <= size; run *= 2) {
        for (unsigned step = run / 2; step >= 32; step /= 2) {
            for (unsigned i = threadIdx.x; i < size / 2; i += blockDim.x) {
                const unsigned low = 2 * i - (i & (step - 1)), high = low + step;
                const Key first = keys[low], second = keys[high];
                keys[low] = exchanged(first, second, low, step, run);
                keys[high] = exchanged(second, first, high, step, run);
            }
            __syncthreads();
        }
        for (unsigned i = threadIdx.x; i < size; i += blockDim.x) {
            Key key = keys[i];
            for (unsigned step = min(run / 2, 16u); step > 0; step /= 2) {
                key = exchanged(key, __shfl_xor_sync(~0u, key, step), i, step, run);
            }
            keys[i] = key;
        }
        __syncthreads();
    }
}

BOUNDED_KERNEL(selection_sort, SORT_THREADS, 1, SortArguments, arguments) {
    SHARED(Key, first_key);
    Key *keys = &first_key;
    const unsigned all = arguments.count_at ? *arguments.count_at : arguments.count;
    const unsigned start = blockIdx.x * arguments.size, count = min(all - start, arguments.size);
    for (unsigned i = threadIdx.x; i < arguments.size; i += blockDim.x) {
        keys[i] = i < count ? arguments.keys[start + i] : 0;
    }
    __syncthreads();
    sort_in_shared(keys, arguments.size);
    Key *best = arguments.best + static_cast<size_t>(blockIdx.x) * arguments.k;
    for (unsigned i = threadIdx.x; i < min(count, arguments.k); i += blockDim.x) best[i] = keys[i];
}

// The tree. Its lowest level, the keys, does not change: keys that were taken are greater than the one that is sought.

__device__ inline Key greatest_of_warp(Key key) {
    for (unsigned by = 16; by > 0; by /= 2) {
        const Key other = __shfl_xor_sync(~0u, key, by);
        key = other > key ? other : key;
    }
    return key;
}

// A warp per group.
BOUNDED_KERNEL(selection_tree_level, THREADS, 4, TreeArguments, arguments) {
    const unsigned level = arguments.count, group = blockIdx.x * WARPS + threadIdx.x / 32;
    const Key *below = arguments.levels[level - 1];
    Key key = 0;
    for (unsigned i = threadIdx.x & 31; i < GROUP; i += 32) {
        const unsigned position = group * GROUP + i;
        const Key other = position < arguments.lengths[level - 1] ? below[position] : 0;
        key = other > key ? other : key;
    }
    key = greatest_of_warp(key);
    if ((threadIdx.x & 31) == 0 && group < arguments.lengths[level]) arguments.levels[level][group] = key;
}

struct TreeShared {
    // Two buffers in turns: one may still be read while the other is written.
    Key greatest[2][GROUP / 32];
    unsigned positions[LEVELS];
};
static_assert(sizeof(TreeShared) == TREE_SHARED, "as selection.rs has it");

struct Extraction {
    TreeShared &shared;
    unsigned turn;

    // The greatest key of the thread block, with one barrier.
    __device__ Key greatest(Key key) {
        turn ^= 1;
        key = greatest_of_warp(key);
        if ((threadIdx.x & 31) == 0) shared.greatest[turn][threadIdx.x / 32] = key;
        __syncthreads();
        return greatest_of_warp(shared.greatest[turn][threadIdx.x & (GROUP / 32 - 1)]);
    }
};

// Takes the best keys. A thread holds one key of each level: of the top level, and below it of the group that the best
// key is from.
template <unsigned TOP> __device__ inline void extract(TreeShared &shared, const TreeArguments &arguments) {
    Extraction extraction{shared, 0};
    Key mine[TOP + 1];
    mine[TOP] = threadIdx.x < arguments.lengths[TOP] ? arguments.levels[TOP][threadIdx.x] : 0;
    for (unsigned taken = 0;; taken++) {
        const Key best = extraction.greatest(mine[TOP]);
        if (threadIdx.x == 0) arguments.best[taken] = best;
        if (taken + 1 == arguments.count) return;
        unsigned group = 0;
#pragma unroll
        for (unsigned level = TOP; level > 0; level--) {
            if (mine[level] == best) shared.positions[level] = group * GROUP + threadIdx.x;
            __syncthreads();
            group = shared.positions[level];
            const unsigned position = group * GROUP + threadIdx.x;
            mine[level - 1] = position < arguments.lengths[level - 1] ? arguments.levels[level - 1][position] : 0;
        }
        if (mine[0] >= best) mine[0] = 0;
#pragma unroll
        for (unsigned level = 1; level <= TOP; level++) {
            const Key greatest = extraction.greatest(mine[level - 1]);
            if (mine[level] == best) {
                mine[level] = greatest;
                arguments.levels[level][shared.positions[level]] = greatest;
            }
        }
    }
}

BOUNDED_KERNEL(selection_tree_extract, GROUP, 1, TreeArguments, arguments) {
    SHARED(TreeShared, shared);
    switch (arguments.top) {
    case 0: return extract<0>(shared, arguments);
    case 1: return extract<1>(shared, arguments);
    case 2: return extract<2>(shared, arguments);
    default: return extract<3>(shared, arguments);
    }
}

// Selection by buckets. A thread block counts in shared memory; the last one of a round chooses the bucket, and zeroes
// all counts for the next round.

struct SelectShared {
    unsigned counts[BUCKETS];
    unsigned sums[WARPS];
    unsigned is_last;
};
static_assert(sizeof(SelectShared) == ROUND_SHARED, "as selection.rs has it");

// Buckets by a digit of the key.
struct Digits {
    Key low;
    unsigned shift;
    __device__ Digits(const SelectionState &state, unsigned shift) : low(state.low), shift(shift) {}
    __device__ unsigned bucket(Key key) const { return min(static_cast<unsigned>((key - low) >> shift), BUCKETS - 1); }
};

// Buckets of equal width. However the product is rounded, a greater key has no lower bucket.
struct Widths {
    Key low;
    double scale;
    __device__ Widths(const SelectionState &state, unsigned)
        : low(state.low), scale(BUCKETS / (static_cast<double>(state.high - state.low) + 1.0)) {}
    __device__ unsigned bucket(Key key) const {
        return min(static_cast<unsigned>(static_cast<double>(key - low) * scale), BUCKETS - 1);
    }
};

// The first key of the range that is in the bucket or in a higher one. The last key of the range must be.
template <class Map> __device__ inline Key first_of(const Map &map, Key low, Key high, unsigned bucket) {
    while (low < high) {
        const Key middle = low + (high - low) / 2;
        if (map.bucket(middle) < bucket) low = middle + 1;
        else high = middle;
    }
    return low;
}

// Narrows the range to the bucket with the k-th key. A thread has eight buckets, the first thread the highest ones.
template <class Map>
__device__ inline void choose(SelectShared &shared, const SelectArguments &arguments, const Map &map) {
    constexpr unsigned OWN = BUCKETS / THREADS;
    SelectionState &state = *arguments.state;
    volatile unsigned *counts = arguments.counts + (BUCKETS - OWN - OWN * threadIdx.x);
    unsigned own[OWN], sum = 0, total;
    for (unsigned i = 0; i < OWN; i++) {
        own[i] = counts[i];
        sum += own[i];
        counts[i] = 0;
    }
    const unsigned wanted = arguments.k - state.above;
    unsigned before = scan_block(shared.sums, sum, total);
    if (wanted <= before || wanted > before + sum) return;
    unsigned last = OWN - 1;
    while (before + own[last] < wanted) before += own[last--];
    const unsigned bucket = BUCKETS - OWN - OWN * threadIdx.x + last;
    const Key low = first_of(map, state.low, state.high, bucket);
    if (bucket < map.bucket(state.high)) state.high = first_of(map, low, state.high, bucket + 1) - 1;
    state.low = low;
    state.above += before;
    state.inside = own[last];
    state.blocks_done = 0;
}

template <class Map> __device__ inline void select_round(SelectShared &shared, const SelectArguments &arguments) {
    SelectionState &state = *arguments.state;
    if (state.above + state.inside <= arguments.capacity) return;
    const Map map(state, arguments.shift);
    const Key low = state.low, high = state.high;
    for (unsigned i = threadIdx.x; i < BUCKETS; i += THREADS) shared.counts[i] = 0;
    __syncthreads();
    const unsigned lane = threadIdx.x & 31;
    const size_t first = blockIdx.x * THREADS + threadIdx.x - lane;
    for (size_t start = first; start < arguments.count; start += gridDim.x * THREADS) {
        const bool is_key = start + lane < arguments.count;
        const Key key = is_key ? arguments.keys[start + lane] : 0;
        const bool is_inside = is_key && key >= low && key <= high;
        const unsigned bucket = is_inside ? map.bucket(key) : BUCKETS;
        // Often all keys of a warp have the same digit: then one lane adds for all.
        if (__all_sync(~0u, bucket == __shfl_sync(~0u, bucket, 0))) {
            if (is_inside && lane == 0) atomicAdd(shared.counts + bucket, 32u);
        } else if (is_inside) {
            atomicAdd(shared.counts + bucket, 1u);
        }
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < BUCKETS; i += THREADS) {
        if (shared.counts[i] > 0) atomicAdd(arguments.counts + i, shared.counts[i]);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        // As in topk.cu: one fence after the barrier is for all threads.
        __threadfence();
        shared.is_last = atomicAdd(&state.blocks_done, 1u) == gridDim.x - 1;
        if (shared.is_last) __threadfence();
    }
    __syncthreads();
    if (!shared.is_last) return;
    choose(shared, arguments, map);
}

BOUNDED_KERNEL(selection_radix_round, THREADS, 4, SelectArguments, arguments) {
    SHARED(SelectShared, shared);
    select_round<Digits>(shared, arguments);
}

BOUNDED_KERNEL(selection_bucket_round, THREADS, 4, SelectArguments, arguments) {
    SHARED(SelectShared, shared);
    select_round<Widths>(shared, arguments);
}

// Finds the least and the greatest key; the state starts with the greatest and the least possible key.
BOUNDED_KERNEL(selection_bucket_range, THREADS, 4, SelectArguments, arguments) {
    Key least = ~0ull, greatest = 0;
    const size_t first = blockIdx.x * THREADS + threadIdx.x;
    for (size_t i = first; i < arguments.count; i += gridDim.x * THREADS) {
        const Key key = arguments.keys[i];
        least = key < least ? key : least;
        greatest = key > greatest ? key : greatest;
    }
    least = ~greatest_of_warp(~least);
    greatest = greatest_of_warp(greatest);
    if ((threadIdx.x & 31) == 0) {
        atomicMin(&arguments.state->low, least);
        atomicMax(&arguments.state->high, greatest);
    }
}

// Collects the keys that are not below the range, in any order.
BOUNDED_KERNEL(selection_collect, THREADS, 4, SelectArguments, arguments) {
    SelectionState &state = *arguments.state;
    const unsigned lane = threadIdx.x & 31;
    const Key low = state.low;
    const size_t first = blockIdx.x * THREADS + threadIdx.x - lane;
    for (size_t start = first; start < arguments.count; start += gridDim.x * THREADS) {
        const Key key = start + lane < arguments.count ? arguments.keys[start + lane] : 0;
        const bool is_kept = start + lane < arguments.count && key >= low;
        const unsigned kept = __ballot_sync(~0u, is_kept);
        if (kept == 0) continue;
        unsigned position = 0;
        if (lane == 0) position = atomicAdd(&state.collected, static_cast<unsigned>(__popc(kept)));
        position = __shfl_sync(~0u, position, 0) + __popc(kept & ((1u << lane) - 1));
        if (is_kept) arguments.collected[position] = key;
    }
}

// The radix sort, a digit of eight bits per pass, from the lowest on: counts of each tile, their scan, and the move. A
// warp has consecutive keys and its own counts in shared memory, so that the sort is stable.

struct RadixShared {
    unsigned counts[WARPS][DIGITS];
};
static_assert(sizeof(RadixShared) == RADIX_SHARED, "as selection.rs has it");

__device__ inline unsigned digit_of(Key key, unsigned shift) {
    return static_cast<unsigned>(~key >> shift) & (DIGITS - 1);
}

BOUNDED_KERNEL(selection_radix_count, THREADS, 4, RadixArguments, arguments) {
    SHARED(RadixShared, shared);
    unsigned *counts = shared.counts[0];
    counts[threadIdx.x] = 0;
    __syncthreads();
    for (unsigned row = 0; row < RADIX_ROWS; row++) {
        const size_t position = static_cast<size_t>(blockIdx.x) * RADIX_TILE + row * THREADS + threadIdx.x;
        if (position < arguments.count) atomicAdd(counts + digit_of(arguments.keys[position], arguments.shift), 1u);
    }
    __syncthreads();
    arguments.counts[threadIdx.x * arguments.tiles + blockIdx.x] = counts[threadIdx.x];
}

// Replaces each count by the sum of those before it.
BOUNDED_KERNEL(selection_radix_scan, THREADS, 4, RadixArguments, arguments) {
    SHARED(LookbackShared, shared);
    const unsigned tile = start_tile(shared, arguments.lookback), length = DIGITS * arguments.tiles;
    const unsigned first = (tile * THREADS + threadIdx.x) * SCANNED;
    unsigned counts[SCANNED], sum = 0, total;
    for (unsigned i = 0; i < SCANNED; i++) {
        counts[i] = first + i < length ? arguments.counts[first + i] : 0;
        sum += counts[i];
    }
    const unsigned before_thread = scan_block(shared.sums, sum, total);
    unsigned before = sum_before(shared, arguments.lookback, tile, total) + before_thread;
    for (unsigned i = 0; i < SCANNED; i++) {
        if (first + i < length) arguments.counts[first + i] = before;
        before += counts[i];
    }
}

// The lanes with the same digit, among those that have a key.
__device__ inline unsigned lanes_with(unsigned digit, bool is_key) {
    unsigned lanes = __ballot_sync(~0u, is_key);
    for (unsigned bit = 1; bit < DIGITS; bit *= 2) {
        const unsigned set = __ballot_sync(~0u, digit & bit);
        lanes &= digit & bit ? set : ~set;
    }
    return lanes;
}

BOUNDED_KERNEL(selection_radix_move, THREADS, 2, RadixArguments, arguments) {
    SHARED(RadixShared, shared);
    const unsigned lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    for (unsigned other = 0; other < WARPS; other++) shared.counts[other][threadIdx.x] = 0;
    __syncthreads();
    const size_t first = static_cast<size_t>(blockIdx.x) * RADIX_TILE + warp * 32 * RADIX_ROWS + lane;
    Key keys[RADIX_ROWS];
    unsigned ranks[RADIX_ROWS];
#pragma unroll
    for (unsigned row = 0; row < RADIX_ROWS; row++) {
        const bool is_key = first + 32 * row < arguments.count;
        keys[row] = is_key ? arguments.keys[first + 32 * row] : 0;
        const unsigned digit = digit_of(keys[row], arguments.shift);
        const unsigned lanes = lanes_with(digit, is_key), before = lanes & ((1u << lane) - 1);
        ranks[row] = shared.counts[warp][digit] + __popc(before);
        __syncwarp();
        if (is_key && before == 0) shared.counts[warp][digit] += __popc(lanes);
        __syncwarp();
    }
    __syncthreads();
    unsigned position = arguments.counts[threadIdx.x * arguments.tiles + blockIdx.x];
    for (unsigned other = 0; other < WARPS; other++) {
        const unsigned count = shared.counts[other][threadIdx.x];
        shared.counts[other][threadIdx.x] = position;
        position += count;
    }
    __syncthreads();
#pragma unroll
    for (unsigned row = 0; row < RADIX_ROWS; row++) {
        if (first + 32 * row >= arguments.count) continue;
        arguments.moved[shared.counts[warp][digit_of(keys[row], arguments.shift)] + ranks[row]] = keys[row];
    }
}

} // namespace papers
