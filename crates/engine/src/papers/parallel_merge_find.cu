// See parallel_merge_find.rs for the algorithm.
//
// A level is a launch: where its segments of B begin lies in global memory for the next one.
#pragma once
#include "papers/search.cu"

namespace papers {

struct MergeFindArguments {
    const unsigned *shorter, *longer;
    const unsigned *parents; // where the segments of the level above begin in the longer list, and the end; null: none
    unsigned *segments;      // where those of this level begin, and the end; the last launch has none
    unsigned *results;
    Origins origins;
    Order order;
    unsigned shorter_length, longer_length;
    unsigned segment;     // documents of the shorter list in a segment of this level; 1 at the last launch
    unsigned fan_out;     // segments of this level in one of the level above
    unsigned segment_count;
    unsigned reserved;
};
static_assert(sizeof(MergeFindArguments) == 112, "as parallel_merge_find.rs has it");

// Searches for documents of a level, each in the stretch of the longer list that belongs to its segment above.
template <unsigned ITEMS>
__device__ inline void find_in_parents(const MergeFindArguments &arguments, unsigned place, unsigned count,
                                       const unsigned (&targets)[ITEMS], unsigned (&first)[ITEMS]) {
    unsigned length[ITEMS];
#pragma unroll
    for (unsigned i = 0; i < ITEMS; i++) {
        first[i] = 0;
        length[i] = i < count ? arguments.longer_length : 0;
        if (i < count && arguments.parents) {
            const unsigned parent = (place + i) / arguments.fan_out;
            first[i] = arguments.parents[parent];
            // Of a list that is not sorted, as a damaged one may be, the next segment may begin earlier.
            length[i] = max(arguments.parents[parent + 1], first[i]) - first[i];
        }
    }
    find(arguments.longer, targets, first, length);
}

// One level: where the splitters, the first documents of the segments, stand in the longer list.
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

// Below the last level: every document of the shorter list.
BOUNDED_KERNEL(parallel_merge_find, THREADS, 4, MergeFindArguments, arguments) {
    SHARED(OrderShared, shared);
    const unsigned tile = start_tile(shared, arguments.order);
    const unsigned place = (tile * THREADS + threadIdx.x) * SEARCHED;
    unsigned targets[SEARCHED], first[SEARCHED];
    const unsigned count = load(arguments.shorter, arguments.shorter_length, place, targets);
    find_in_parents(arguments, place, count, targets, first);
    const unsigned matches = matches_at(arguments.longer, arguments.longer_length, targets, first, count);
    write_in_order(shared, arguments.order, tile, arguments.results, targets, matches, arguments.origins, place, first);
}

} // namespace papers
