// OR and AND by impacts, of lists packed by bitpack, the default: a module of kernels.rs. Of each kernel there are
// two, for batches and for a query alone, whose rows lie in other memory.
#include "algorithms/conjunction.cu"
#include "algorithms/scatter.cu"

BOUNDED_KERNEL(scatter_bitpack_impact, OR_THREADS, 4, BatchArguments, arguments) {
    scatter<BITPACK, IMPACT, false>(arguments);
}

BOUNDED_KERNEL(scatter_bitpack_impact_alone, OR_THREADS, 4, BatchArguments, arguments) {
    scatter<BITPACK, IMPACT, true>(arguments);
}

BOUNDED_KERNEL(conjunction_bitpack_impact, AND_THREADS, 6, BatchArguments, arguments) {
    conjunction<BITPACK, IMPACT, false>(arguments);
}

BOUNDED_KERNEL(conjunction_bitpack_impact_alone, AND_THREADS, 6, BatchArguments, arguments) {
    conjunction<BITPACK, IMPACT, true>(arguments);
}
