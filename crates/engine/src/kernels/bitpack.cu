// OR and AND of lists packed by bitpack, the default: a module of kernels.rs.
#include "algorithms/conjunction.cu"
#include "algorithms/scatter.cu"

BOUNDED_KERNEL(scatter_bitpack_frequency, THREADS, 8, BatchArguments, arguments) {
    scatter<BITPACK, FREQUENCY>(arguments);
}

BOUNDED_KERNEL(scatter_bitpack_impact, THREADS, 8, BatchArguments, arguments) {
    scatter<BITPACK, IMPACT>(arguments);
}

BOUNDED_KERNEL(conjunction_bitpack_frequency, THREADS, 6, BatchArguments, arguments) {
    conjunction<BITPACK, FREQUENCY>(arguments);
}

BOUNDED_KERNEL(conjunction_bitpack_impact, THREADS, 6, BatchArguments, arguments) {
    conjunction<BITPACK, IMPACT>(arguments);
}
