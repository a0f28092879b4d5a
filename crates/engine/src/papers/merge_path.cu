// See merge_path.rs for the algorithm.
//
// Two warps of a thread block find where the path enters its partition and where it leaves it, with 32 probes of a
// diagonal at a time. The partition is held in shared memory: the last number of A before it, its numbers of A, its
// numbers of B. A partition with few numbers of A is not merged step by step: its threads search for them among those
// of B.
#pragma once
#include "kernel.h"
#include "papers/compaction.cu"
#include "ptx/compaction.h"
#include "ptx/merge_path.h"

namespace papers {

// How long partitions are.
template <unsigned STEPS_OF_A_THREAD, unsigned MOST_LOOKED_FOR> struct PartitionSize {
    // Steps of a thread.
    static constexpr unsigned STEPS = STEPS_OF_A_THREAD;
    // Steps of a partition.
    static constexpr unsigned PARTITION = THREADS * STEPS;
    // The most numbers of A that a thread searches for.
    static constexpr unsigned LOOKED_FOR = MOST_LOOKED_FOR;
};
using ShortPartitions = PartitionSize<SHORT_STEPS, 3>;
using LongPartitions = PartitionSize<LONG_STEPS, 4>;

template <typename Size> struct MergePathShared {
    LookbackShared lookback;
    unsigned points[2]; // how many numbers of A are before the partition, and before the next
    unsigned numbers[Size::PARTITION + 1];
};
static_assert(sizeof(MergePathShared<ShortPartitions>) == SHORT_SHARED, "as merge_path.rs has it");
static_assert(sizeof(MergePathShared<LongPartitions>) == LONG_SHARED, "as merge_path.rs has it");

// How many of the first `diagonal` numbers of the merged lists are from A; of equal numbers A's comes first.
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

// The distance of a lane's first probe from the estimated crossing; distances double on both sides.
__device__ inline int distance_from_even(unsigned lane) {
    return lane < 16 ? -(1 << (15 - lane)) : (1 << (lane - 16)) - 1;
}

// The same for long lists in global memory, by a warp. The first probes are around the crossing that evenly spread
// lists would have: little is left after them, and neighbouring thread blocks probe the same memory. Then each round
// leaves one of 32 shares.
__device__ inline unsigned cross_by_warp(const unsigned *a, unsigned a_length, const unsigned *b, unsigned b_length,
                                         unsigned diagonal) {
    const unsigned lane = threadIdx.x & 31;
    // Positions before `low` are passed before the diagonal, those from `high` on are not.
    int64_t low = diagonal > b_length ? diagonal - b_length : 0, high = min(diagonal, a_length);
    const auto is_passed = [&](int64_t position) {
        return position < low || (position < high && __ldg(a + position) <= __ldg(b + (diagonal - 1 - position)));
    };
    const float share = __uint2float_rn(a_length) / __uint2float_rn(a_length + b_length);
    const int64_t even = min(static_cast<int64_t>(__uint2float_rn(diagonal) * share), high);
    const unsigned passed = __popc(__ballot_sync(~0u, is_passed(even + distance_from_even(lane))));
    if (passed > 0) low = max(low, even + distance_from_even(passed - 1) + 1);
    if (passed < 32) high = min(high, even + distance_from_even(passed));
    while (low < high) {
        const unsigned step = static_cast<unsigned>(high - low + 31) / 32;
        // Each lane probes the last position of its share.
        const int64_t probe = low + static_cast<int64_t>(step) * (lane + 1) - 1;
        const unsigned shares = __popc(__ballot_sync(~0u, is_passed(probe)));
        low += static_cast<int64_t>(step) * shares;
        high = min(high, low + step - 1);
    }
    return static_cast<unsigned>(low);
}

// The matches of a thread: a bit for each step.
template <typename Size> struct Matches {
    unsigned bits;
    unsigned steps_of_a;                       // a bit for each step that passed a number of A
    unsigned first_of_a;                       // the first of these, where 0 is the last before the partition
    unsigned positions_of_b[Size::LOOKED_FOR]; // for each step, where numbers of A are searched for
};

// Merges a thread's share, from `diagonal` on. A match is found where its number of B is passed: the step before passed
// that of A, maybe in another thread or partition.
template <typename Size>
__device__ inline Matches<Size> merge(const unsigned *before_a, unsigned a_count, unsigned b_count, bool has_before,
                                      unsigned diagonal) {
    const unsigned *a = before_a + 1, *b = a + a_count;
    unsigned i = cross(a, a_count, b, b_count, diagonal), j = diagonal - i;
    bool has_previous = has_before || i > 0;
    unsigned previous = has_previous ? before_a[i] : 0;
    unsigned of_a = i < a_count ? a[i] : 0, of_b = j < b_count ? b[j] : 0;
    Matches<Size> matches;
    matches.bits = 0;
    matches.steps_of_a = 0;
    matches.first_of_a = i;
#pragma unroll
    for (unsigned step = 0; step < Size::STEPS; step++) {
        const bool has_b = j < b_count;
        if (i < a_count && (!has_b || of_a <= of_b)) {
            previous = of_a;
            has_previous = true;
            matches.steps_of_a |= 1u << step;
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

// Searches for `each` numbers of A among those of B, from `first` on, where 0 is the last before the partition.
template <typename Size>
__device__ inline Matches<Size> look_for(const unsigned *before_a, unsigned a_count, unsigned b_count, bool has_before,
                                         unsigned first, unsigned each) {
    const unsigned *b = before_a + 1 + a_count;
    Matches<Size> matches;
    matches.bits = 0;
    matches.steps_of_a = ~0u;
    matches.first_of_a = first;
#pragma unroll
    for (unsigned step = 0; step < Size::LOOKED_FOR; step++) {
        const unsigned i = first + step;
        if (step >= each || i > a_count || (i == 0 && !has_before)) continue;
        const unsigned document = before_a[i];
        unsigned position = 0, length = b_count;
        while (length > 0) {
            const unsigned half = length / 2;
            const bool is_before = b[position + half] < document;
            position += is_before ? half + 1 : 0;
            length = is_before ? length - half - 1 : half;
        }
        matches.positions_of_b[step] = position;
        matches.bits |= static_cast<unsigned>(position < b_count && b[position] == document) << step;
    }
    return matches;
}

// The numbers of a partition. Partitions of unsorted lists, as damaged ones may be, overlap or lack numbers.
template <typename Size> struct Partition {
    unsigned a_first, a_count, b_first, b_count;

    __device__ Partition(const MergePathArguments &arguments, unsigned tile, const unsigned (&points)[2]) {
        const unsigned diagonal = tile * Size::PARTITION, most = Size::PARTITION;
        const unsigned count = min(arguments.a_length + arguments.b_length - diagonal, most);
        a_first = points[0];
        a_count = min(max(points[1], a_first) - a_first, count);
        b_first = diagonal - a_first;
        b_count = min(count - a_count, arguments.b_length - b_first);
    }
};

// Writes a match and its positions in the lists, if it fits; matches of sorted lists always do.
template <typename Size>
__device__ inline void write(const MergePathArguments &arguments, const Partition<Size> &part, unsigned position,
                             unsigned of_a, unsigned of_b, unsigned document) {
    if (position >= min(arguments.a_length, arguments.b_length)) return;
    arguments.results[position] = document;
    if (!arguments.origins.shorter) return;
    arguments.origins.shorter[position] = part.a_first + of_a - 1;
    arguments.origins.longer[position] = part.b_first + of_b;
}

// Writes the matches of a thread that searched for numbers of A. `b` are the numbers of B.
template <typename Size>
__device__ inline void write_looked_for(const MergePathArguments &arguments, const Partition<Size> &part,
                                        const Matches<Size> &matches, const unsigned *b, unsigned position) {
#pragma unroll
    for (unsigned step = 0; step < Size::LOOKED_FOR; step++) {
        const unsigned of_b = matches.positions_of_b[step];
        if (matches.bits >> step & 1) write(arguments, part, position++, matches.first_of_a + step, of_b, b[of_b]);
    }
}

// Writes the matches of a thread that merged its share, which begins at `diagonal`.
template <typename Size>
__device__ inline void write_merged(const MergePathArguments &arguments, const Partition<Size> &part,
                                    const Matches<Size> &matches, const unsigned *b, unsigned diagonal,
                                    unsigned position) {
    for (unsigned bits = matches.bits; bits != 0; bits &= bits - 1) {
        const unsigned step = __ffs(bits) - 1;
        // The numbers of A that were passed; the match is the last of them.
        const unsigned passed = matches.first_of_a + __popc(matches.steps_of_a & ((1u << step) - 1));
        const unsigned of_b = diagonal + step - passed;
        write(arguments, part, position++, passed, of_b, b[of_b]);
    }
}

// Finds where the path enters a partition and where it leaves it, each by a warp. Ends with a barrier.
template <typename Size>
__device__ inline void find_points(const MergePathArguments &arguments, unsigned tile, unsigned (&points)[2]) {
    const unsigned warp = threadIdx.x / 32;
    if (warp < 2) {
        const unsigned a_length = arguments.a_length, b_length = arguments.b_length;
        const unsigned diagonal = min((tile + warp) * Size::PARTITION, a_length + b_length);
        const unsigned point = cross_by_warp(arguments.a, a_length, arguments.b, b_length, diagonal);
        if ((threadIdx.x & 31) == 0) points[warp] = point;
    }
    __syncthreads();
}

// Loads the last number of A before a partition, its numbers of A and its numbers of B. Ends with a barrier.
template <typename Size>
__device__ inline void load_numbers(const MergePathArguments &arguments, const Partition<Size> &part,
                                    unsigned *numbers) {
    const unsigned *a = arguments.a + part.a_first, *b = arguments.b + part.b_first - part.a_count;
    if (threadIdx.x == 0) numbers[0] = part.a_first > 0 ? arguments.a[part.a_first - 1] : 0;
    for (unsigned i = threadIdx.x; i < part.a_count + part.b_count; i += THREADS) {
        COPY_NUMBER(numbers + 1 + i, (i < part.a_count ? a : b) + i);
    }
    WAIT_FOR_COPIES();
    __syncthreads();
}

template <typename Size>
__device__ inline void intersect(const MergePathArguments &arguments, MergePathShared<Size> &shared) {
    const unsigned tile = start_tile(shared.lookback, arguments.lookback);
    find_points<Size>(arguments, tile, shared.points);
    const Partition<Size> part(arguments, tile, shared.points);
    load_numbers(arguments, part, shared.numbers);
    const unsigned diagonal = min(threadIdx.x * Size::STEPS, part.a_count + part.b_count);
    const unsigned each = part.a_count / THREADS + 1;
    const bool has_before = part.a_first > 0, is_looked_for = each <= Size::LOOKED_FOR;
    Matches<Size> matches;
    if (is_looked_for) {
        matches = look_for<Size>(shared.numbers, part.a_count, part.b_count, has_before, threadIdx.x * each, each);
    } else {
        matches = merge<Size>(shared.numbers, part.a_count, part.b_count, has_before, diagonal);
    }
    unsigned total;
    const unsigned first = scan_block(shared.lookback.sums, __popc(matches.bits), total);
    const unsigned position = sum_before(shared.lookback, arguments.lookback, tile, total) + first;
    const unsigned *b = shared.numbers + 1 + part.a_count;
    if (is_looked_for) {
        write_looked_for(arguments, part, matches, b, position);
    } else {
        write_merged(arguments, part, matches, b, diagonal, position);
    }
}

// Launch bounds limit registers: with 256 threads, 4 thread blocks per SM leave 64 for each thread, and 8 leave 32.
// Short partitions are for short lists, which give an SM only a few thread blocks, so each may have all the registers
// that it can use. Long lists give many thread blocks, of which more run at once with fewer registers.
BOUNDED_KERNEL(merge_path_short, THREADS, 4, MergePathArguments, arguments) {
    SHARED(MergePathShared<ShortPartitions>, shared);
    intersect(arguments, shared);
}

BOUNDED_KERNEL(merge_path_long, THREADS, 8, MergePathArguments, arguments) {
    SHARED(MergePathShared<LongPartitions>, shared);
    intersect(arguments, shared);
}

} // namespace papers
