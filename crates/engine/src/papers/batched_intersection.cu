// See batched_intersection.rs for the algorithms.
//
// The 0-1 array of the paper is one bit per thread, in a register.
#pragma once
#include "kernel.h"
#include "papers/compaction.cu"
#include "papers/search.cu"
#include "ptx/batched_intersection.h"
#include "ptx/compaction.h"

namespace papers {

// Whether a document of the shortest list is in all other lists.
__device__ inline bool is_in_others(const BatchedArguments &arguments, const BatchedQuery &query, unsigned document) {
    for (unsigned number = 1; number < query.lists; number++) {
        const BatchedList list = arguments.lists[query.first_list + number];
        const unsigned targets[1] = {document};
        unsigned first[1] = {0}, length[1] = {list.length};
        find(list.documents, targets, first, length);
        if (matches_at(list.documents, list.length, targets, first, 1) == 0) return false;
    }
    return true;
}

// PART: a thread block per query; it goes through the shortest list, one document per thread at a time.
BOUNDED_KERNEL(batched_intersection_part, THREADS, 4, BatchedArguments, arguments) {
    SHARED(LookbackShared, shared);
    const BatchedQuery query = arguments.queries[blockIdx.x];
    const BatchedList shortest = arguments.lists[query.first_list];
    unsigned *results = arguments.results + query.first_result;
    unsigned before = 0;
    for (unsigned start = 0; start < shortest.length; start += THREADS) {
        const unsigned position = start + threadIdx.x;
        const unsigned document = position < shortest.length ? shortest.documents[position] : 0;
        const bool is_match = position < shortest.length && is_in_others(arguments, query, document);
        unsigned total;
        const unsigned before_thread = scan_block(shared.sums, is_match, total);
        if (is_match) results[before + before_thread] = document;
        before += total;
        __syncthreads();
    }
    if (threadIdx.x == 0) arguments.positions[blockIdx.x] = before;
}

// PARA: a thread per document of the shortest list, with as many thread blocks per query as that takes.
BOUNDED_KERNEL(batched_intersection_para, THREADS, 4, BatchedArguments, arguments) {
    SHARED(LookbackShared, shared);
    const unsigned tile = start_tile(shared, arguments.lookback);
    const unsigned number = arguments.query_of_block[tile];
    const BatchedQuery query = arguments.queries[number];
    const BatchedList shortest = arguments.lists[query.first_list];
    const unsigned position = (tile - query.first_block) * THREADS + threadIdx.x;
    unsigned documents[1];
    const unsigned count = load(shortest.documents, shortest.length, position, documents);
    const bool is_match = count > 0 && is_in_others(arguments, query, documents[0]);
    const unsigned before = write_in_order(shared, arguments.lookback, tile, arguments.results, documents, is_match);
    if (threadIdx.x == 0 && tile == query.first_block) arguments.positions[number] = before;
}

} // namespace papers
