// See parallel_merge_find.rs for the algorithm.
//
// Each level is a launch: it leaves in global memory where its segments of B begin, for the next level.
#pragma once
#include "kernel.h"
#include "papers/compaction.cu"
#include "papers/search.cu"
#include "ptx/compaction.h"
#include "ptx/parallel_merge_find.h"

namespace papers {

// Searches for documents of a level, each in the part of the longer list that belongs to its segment of the level
// above.
template <unsigned ITEMS>
__device__ inline void find_in_parents(const MergeFindArguments &arguments, unsigned position, unsigned count,
                                       const unsigned (&targets)[ITEMS], unsigned (&first)[ITEMS]) {
    unsigned length[ITEMS];
#pragma unroll
    for (unsigned i = 0; i < ITEMS; i++) {
        first[i] = 0;
        length[i] = i < count ? arguments.longer_length : 0;
        if (i < count && arguments.parents) {
            const unsigned parent = (position + i) / arguments.fan_out;
            first[i] = arguments.parents[parent];
            // In an unsorted list, as a damaged one may be, the next segment may begin earlier.
            length[i] = max(arguments.parents[parent + 1], first[i]) - first[i];
        }
    }
    find(arguments.longer, targets, first, length);
}

// One level: finds the positions of the splitters, the first documents of the segments, in the longer list.
BOUNDED_KERNEL(parallel_merge_find_split, THREADS, 4, MergeFindArguments, arguments) {
    const unsigned number = blockIdx.x * THREADS + threadIdx.x;
    if (number > arguments.segment_count) return;
    unsigned first[1] = {arguments.longer_length};
    if (number < arguments.segment_count) {
        const unsigned targets[1] = {arguments.shorter[static_cast<size_t>(number) * arguments.segment]};
        find_in_parents(arguments, number, 1, targets, first);
    }
    arguments.segments[number] = first[0];
}

// After the last level: searches for every document of the shorter list.
BOUNDED_KERNEL(parallel_merge_find, THREADS, 4, MergeFindArguments, arguments) {
    SHARED(LookbackShared, shared);
    const unsigned tile = start_tile(shared, arguments.lookback);
    const unsigned position = (tile * THREADS + threadIdx.x) * SEARCHED;
    unsigned targets[SEARCHED], first[SEARCHED];
    const unsigned count = load(arguments.shorter, arguments.shorter_length, position, targets);
    find_in_parents(arguments, position, count, targets, first);
    const unsigned matches = matches_at(arguments.longer, arguments.longer_length, targets, first, count);
    write_in_order(shared, arguments.lookback, tile, arguments.results, targets, matches, arguments.origins, position,
                   first);
}

} // namespace papers
