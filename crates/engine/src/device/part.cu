// The part of a query that a thread block answers.
#pragma once
#include "algorithms/dense_list.cu"
#include "algorithms/weigher.cu"
#include "format/dense.h"
#include "kernel.h"
#include "ptx/kernels.h"

// IS_SINGLE: a single query, whose rows are in `single`; its kernel also resets its state before it exits. Kernels are
// compiled for both cases, because rows in the argument are read from constant memory, with other instructions than
// rows in global memory.
template <bool IS_SINGLE> struct Part {
    const QueryRow &query;
    const SparseRow *sparse;
    const DenseRow *dense;
    unsigned number;     // the position of the query in the batch
    unsigned position;   // the position of the part in the query
    unsigned first, end; // the range of the part

    __device__ Part(const BatchArguments &arguments, unsigned given)
        : query(IS_SINGLE ? arguments.single.query : arguments.queries[given]),
          sparse(IS_SINGLE ? arguments.single.sparse : arguments.sparse + query.sparse),
          dense(IS_SINGLE ? arguments.single.dense : arguments.dense + query.dense),
          number(given), position(blockIdx.x - query.first_part),
          first(query.parts_first + position * query.part_length),
          end(query.parts_end - first > query.part_length ? first + query.part_length : query.parts_end) {}

    __device__ explicit Part(const BatchArguments &arguments)
        : Part(arguments, IS_SINGLE ? 0 : arguments.parts[blockIdx.x]) {}

    // Whether the filter lets a document of the collection pass.
    __device__ bool passes(unsigned document) const {
        return !query.filter || has_bit(__ldg(query.filter + document / CHUNK), document % CHUNK);
    }

    // What the static rank adds to the score of a document.
    __device__ unsigned static_part(const BatchArguments &arguments, unsigned document) const {
        if (query.static_bound == 0) return 0;
        return static_units(query.alpha, __ldg(arguments.ranks + document));
    }

    // The part's keys in the arena, where shared memory does not hold them.
    __device__ uint64_t *keys(const BatchArguments &arguments) const {
        const uint64_t left = static_cast<uint64_t>(query.parts) * query.k;
        return arguments.arena + query.keys + left + static_cast<uint64_t>(position) * query.capacity;
    }
};
