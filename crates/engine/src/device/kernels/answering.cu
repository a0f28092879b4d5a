// The four kernels of a module that answers queries: OR and AND, each for batches and for a single query, whose rows
// lie in other memory.
#pragma once
#include "algorithms/conjunction.cu"
#include "algorithms/scatter.cu"
#include "kernel.h"
#include "ptx/kernels.h"

#define ANSWERING_KERNELS(name, TAG, COLUMN, or_blocks_per_sm)                                                         \
    BOUNDED_KERNEL(scatter_##name, OR_THREADS, or_blocks_per_sm, BatchArguments, arguments) {                          \
        scatter<TAG, COLUMN, false>(arguments);                                                                        \
    }                                                                                                                  \
    BOUNDED_KERNEL(scatter_##name##_single, OR_THREADS, or_blocks_per_sm, BatchArguments, arguments) {                 \
        scatter<TAG, COLUMN, true>(arguments);                                                                         \
    }                                                                                                                  \
    BOUNDED_KERNEL(conjunction_##name, AND_THREADS, AND_BLOCKS_PER_SM, BatchArguments, arguments) {                    \
        conjunction<TAG, COLUMN, false>(arguments);                                                                    \
    }                                                                                                                  \
    BOUNDED_KERNEL(conjunction_##name##_single, AND_THREADS, AND_BLOCKS_PER_SM, BatchArguments, arguments) {           \
        conjunction<TAG, COLUMN, true>(arguments);                                                                     \
    }
