// OR and AND by frequencies, of lists packed by bitpack, the default: a module of kernels.rs. Of each kernel there are
// two, for batches and for a query alone, whose rows lie in other memory.
#include "algorithms/conjunction.cu"
#include "algorithms/scatter.cu"

BOUNDED_KERNEL(scatter_bitpack_frequency, OR_THREADS, 4, BatchArguments, arguments) {
    scatter<BITPACK, FREQUENCY, false>(arguments);
}

BOUNDED_KERNEL(scatter_bitpack_frequency_alone, OR_THREADS, 4, BatchArguments, arguments) {
    scatter<BITPACK, FREQUENCY, true>(arguments);
}

BOUNDED_KERNEL(conjunction_bitpack_frequency, AND_THREADS, 6, BatchArguments, arguments) {
    conjunction<BITPACK, FREQUENCY, false>(arguments);
}

BOUNDED_KERNEL(conjunction_bitpack_frequency_alone, AND_THREADS, 6, BatchArguments, arguments) {
    conjunction<BITPACK, FREQUENCY, true>(arguments);
}
