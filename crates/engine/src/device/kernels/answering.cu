// The four kernels of a module that answers queries: OR and AND, for batches and for a query alone, whose rows lie in other
// memory. `places` are the thread blocks of an OR that a processor runs at once, as batch.rs has them.
#pragma once
#include "algorithms/conjunction.cu"
#include "algorithms/scatter.cu"

#define ANSWERING_KERNELS(name, TAG, STREAM, places)                                                                   \
    BOUNDED_KERNEL(scatter_##name, OR_THREADS, places, BatchArguments, arguments) {                                    \
        scatter<TAG, STREAM, false>(arguments);                                                                        \
    }                                                                                                                  \
    BOUNDED_KERNEL(scatter_##name##_alone, OR_THREADS, places, BatchArguments, arguments) {                            \
        scatter<TAG, STREAM, true>(arguments);                                                                         \
    }                                                                                                                  \
    BOUNDED_KERNEL(conjunction_##name, AND_THREADS, 6, BatchArguments, arguments) {                                    \
        conjunction<TAG, STREAM, false>(arguments);                                                                    \
    }                                                                                                                  \
    BOUNDED_KERNEL(conjunction_##name##_alone, AND_THREADS, 6, BatchArguments, arguments) {                            \
        conjunction<TAG, STREAM, true>(arguments);                                                                     \
    }
