// See binary_intersection.rs for the algorithm.
#pragma once
#include "kernel.h"
#include "papers/compaction.cu"
#include "papers/search.cu"
#include "ptx/binary_intersection.h"
#include "ptx/compaction.h"

namespace papers {

BOUNDED_KERNEL(binary_intersection, THREADS, 4, BinaryArguments, arguments) {
    SHARED(LookbackShared, shared);
    const unsigned tile = start_tile(shared, arguments.lookback);
    const unsigned position = (tile * THREADS + threadIdx.x) * SEARCHED;
    unsigned targets[SEARCHED], first[SEARCHED], length[SEARCHED];
    const unsigned count = load(arguments.shorter, arguments.shorter_length, position, targets);
    const unsigned blocks = (arguments.longer_length + SKIPPED - 1) / SKIPPED;
#pragma unroll
    for (unsigned i = 0; i < SEARCHED; i++) {
        first[i] = 0;
        length[i] = i >= count ? 0 : arguments.lasts ? blocks : arguments.longer_length;
    }
    if (arguments.lasts) {
        find(arguments.lasts, targets, first, length);
#pragma unroll
        for (unsigned i = 0; i < SEARCHED; i++) {
            const bool is_in_block = i < count && first[i] < blocks;
            first[i] *= SKIPPED;
            length[i] = is_in_block ? min(arguments.longer_length - first[i], SKIPPED) : 0;
        }
    }
    find(arguments.longer, targets, first, length);
    const unsigned matches = matches_at(arguments.longer, arguments.longer_length, targets, first, count);
    write_in_order(shared, arguments.lookback, tile, arguments.results, targets, matches, arguments.origins, position,
                   first);
}

} // namespace papers
