// See batched_intersection.rs for the algorithms.
//
// The 0-1 array of the paper is the one bit of each thread; it never leaves the registers.
#pragma once
#include "papers/binary_intersection.cu"

namespace papers {

struct BatchedList {
    const unsigned *documents;
    unsigned length, reserved;
};
static_assert(sizeof(BatchedList) == 16, "as batched_intersection.rs has it");

struct BatchedQuery {
    unsigned first_list, lists; // the shortest first
    unsigned first_block;       // PARA
    unsigned first_result;      // PART: as much room as the shortest list is long
};
static_assert(sizeof(BatchedQuery) == 16, "as batched_intersection.rs has it");

struct BatchedArguments {
    const BatchedQuery *queries;
    const BatchedList *lists;
    const unsigned *query_of_block; // PARA
    unsigned *results;
    unsigned *positions; // PARA: where each query's results begin. PART: how many there are
    Order order;         // PARA
};
static_assert(sizeof(BatchedArguments) == 72, "as batched_intersection.rs has it");

// Whether a document of the shortest list is in all others.
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

// A query, a thread block: stretch by stretch of the shortest list.
BOUNDED_KERNEL(batched_intersection_part, THREADS, 4, BatchedArguments, arguments) {
    SHARED(OrderShared, shared);
    const BatchedQuery query = arguments.queries[blockIdx.x];
    const BatchedList shortest = arguments.lists[query.first_list];
    unsigned *results = arguments.results + query.first_result;
    unsigned before = 0;
    for (unsigned start = 0; start < shortest.length; start += THREADS) {
        const unsigned place = start + threadIdx.x;
        const unsigned document = place < shortest.length ? shortest.documents[place] : 0;
        const bool is_match = place < shortest.length && is_in_others(arguments, query, document);
        unsigned total;
        const unsigned before_thread = scan_block(shared.sums, is_match, total);
        if (is_match) results[before + before_thread] = document;
        before += total;
        __syncthreads();
    }
    if (threadIdx.x == 0) arguments.positions[blockIdx.x] = before;
}

// A document of the shortest list, a thread: as many blocks a query as that takes.
BOUNDED_KERNEL(batched_intersection_para, THREADS, 4, BatchedArguments, arguments) {
    SHARED(OrderShared, shared);
    const unsigned tile = start_tile(shared, arguments.order);
    const unsigned number = arguments.query_of_block[tile];
    const BatchedQuery query = arguments.queries[number];
    const BatchedList shortest = arguments.lists[query.first_list];
    const unsigned place = (tile - query.first_block) * THREADS + threadIdx.x;
    unsigned documents[1];
    const unsigned count = load(shortest.documents, shortest.length, place, documents);
    const bool is_match = count > 0 && is_in_others(arguments, query, documents[0]);
    const unsigned before = write_in_order(shared, arguments.order, tile, arguments.results, documents, is_match);
    if (threadIdx.x == 0 && tile == query.first_block) arguments.positions[number] = before;
}

} // namespace papers
