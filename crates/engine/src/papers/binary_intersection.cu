// See binary_intersection.rs for the algorithm.
#pragma once
#include "papers/search.cu"

namespace papers {

struct BinaryArguments {
    const unsigned *shorter, *longer;
    const unsigned *lasts; // of the blocks of the longer list; null: it is searched directly
    unsigned *results;
    Origins origins;
    Order order;
    unsigned shorter_length, longer_length;
};
static_assert(sizeof(BinaryArguments) == 88, "as binary_intersection.rs has it");

// Documents of a block of the longer list.
constexpr unsigned SKIPPED = 128;

BOUNDED_KERNEL(binary_intersection, THREADS, 4, BinaryArguments, arguments) {
    SHARED(OrderShared, shared);
    const unsigned tile = start_tile(shared, arguments.order);
    const unsigned place = (tile * THREADS + threadIdx.x) * SEARCHED;
    unsigned targets[SEARCHED], first[SEARCHED], length[SEARCHED];
    const unsigned count = load(arguments.shorter, arguments.shorter_length, place, targets);
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
    write_in_order(shared, arguments.order, tile, arguments.results, targets, matches, arguments.origins, place, first);
}

} // namespace papers
