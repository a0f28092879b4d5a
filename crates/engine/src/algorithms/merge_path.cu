// See merge_path.rs for the algorithm.
//
// A block holds its partition in shared memory: the last number of A before it, its numbers of A, its numbers of B. Its
// matches take their place once all threads have merged, and leave for global memory side by side.
#pragma once
#include "compaction.cu"

namespace papers {

// Steps of a thread. Odd, so that the threads of a warp start in different banks.
constexpr unsigned STEPS = 15;
// Steps of a partition.
constexpr unsigned PARTITION = THREADS * STEPS;

struct MergePathArguments {
    const unsigned *a, *b;
    unsigned *points; // how many of A lie before each partition, and all of A
    unsigned *results;
    Order order;
    unsigned a_length, b_length;
};
static_assert(sizeof(MergePathArguments) == 72, "as merge_path.rs has it");

struct MergePathShared {
    OrderShared order;
    unsigned numbers[PARTITION + 1];
};

// How many of the first `diagonal` numbers of the merged lists are of A; of equal numbers A's comes first.
__device__ inline unsigned cross(const unsigned *a, unsigned a_length, const unsigned *b, unsigned b_length,
                                 unsigned diagonal) {
    unsigned low = diagonal > b_length ? diagonal - b_length : 0, high = min(diagonal, a_length);
    while (low < high) {
        const unsigned middle = low + (high - low) / 2;
        if (a[middle] <= b[diagonal - 1 - middle]) low = middle + 1;
        else high = middle;
    }
    return low;
}

// One thread a diagonal.
BOUNDED_KERNEL(merge_path_partition, THREADS, 4, MergePathArguments, arguments) {
    const unsigned number = blockIdx.x * THREADS + threadIdx.x;
    if (number > arguments.order.tiles) return;
    const unsigned diagonal = min(number * PARTITION, arguments.a_length + arguments.b_length);
    arguments.points[number] = cross(arguments.a, arguments.a_length, arguments.b, arguments.b_length, diagonal);
}

// What a thread has found: at each step a match or not.
struct Matches {
    unsigned bits;
    unsigned documents[STEPS];
};

// Merges a thread's share, from `diagonal` on. A match is found where its number of B is passed: that of A was the step
// before, be it another thread's or of another partition.
__device__ inline Matches merge(const unsigned *before_a, unsigned a_count, unsigned b_count, bool has_before,
                                unsigned diagonal) {
    const unsigned *a = before_a + 1, *b = a + a_count;
    unsigned i = cross(a, a_count, b, b_count, diagonal), j = diagonal - i;
    bool has_previous = has_before || i > 0;
    unsigned previous = has_previous ? before_a[i] : 0;
    unsigned of_a = i < a_count ? a[i] : 0, of_b = j < b_count ? b[j] : 0;
    Matches matches;
    matches.bits = 0;
#pragma unroll
    for (unsigned step = 0; step < STEPS; step++) {
        matches.documents[step] = of_b;
        const bool has_b = j < b_count;
        if (i < a_count && (!has_b || of_a <= of_b)) {
            previous = of_a;
            has_previous = true;
            i++;
            of_a = i < a_count ? a[i] : 0;
        } else if (has_b) {
            matches.bits |= static_cast<unsigned>(has_previous && previous == of_b) << step;
            j++;
            of_b = j < b_count ? b[j] : 0;
        }
    }
    return matches;
}

BOUNDED_KERNEL(merge_path_intersect, THREADS, 4, MergePathArguments, arguments) {
    SHARED(MergePathShared, shared);
    const unsigned tile = start_tile(shared.order, arguments.order);
    const unsigned diagonal = tile * PARTITION;
    const unsigned count = min(arguments.a_length + arguments.b_length - diagonal, PARTITION);
    const unsigned a_first = arguments.points[tile], a_count = arguments.points[tile + 1] - a_first;
    const unsigned b_first = diagonal - a_first, b_count = count - a_count;
    if (threadIdx.x == 0) shared.numbers[0] = a_first > 0 ? arguments.a[a_first - 1] : 0;
    for (unsigned i = threadIdx.x; i < count; i += THREADS) {
        shared.numbers[1 + i] = i < a_count ? arguments.a[a_first + i] : arguments.b[b_first + (i - a_count)];
    }
    __syncthreads();
    const unsigned share = min(threadIdx.x * STEPS, count);
    const Matches matches = merge(shared.numbers, a_count, b_count, a_first > 0, share);
    unsigned total;
    unsigned place = scan_block(shared.order.sums, __popc(matches.bits), total);
    // All threads have read the partition.
#pragma unroll
    for (unsigned step = 0; step < STEPS; step++) {
        if (matches.bits >> step & 1) shared.numbers[place++] = matches.documents[step];
    }
    unsigned *results = arguments.results + sum_before(shared.order, arguments.order, tile, total);
    for (unsigned i = threadIdx.x; i < total; i += THREADS) results[i] = shared.numbers[i];
}

} // namespace papers
