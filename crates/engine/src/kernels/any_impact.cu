// OR and AND by impacts, of lists packed by any codec that a GPU reads: a module of kernels.rs. Of each kernel there are
// two, for batches and for a query alone, whose rows lie in other memory.
#include "algorithms/conjunction.cu"
#include "algorithms/scatter.cu"

BOUNDED_KERNEL(scatter_any_impact, OR_THREADS, 3, BatchArguments, arguments) {
    scatter<ANY, IMPACT, false>(arguments);
}

BOUNDED_KERNEL(scatter_any_impact_alone, OR_THREADS, 3, BatchArguments, arguments) {
    scatter<ANY, IMPACT, true>(arguments);
}

BOUNDED_KERNEL(conjunction_any_impact, AND_THREADS, 6, BatchArguments, arguments) {
    conjunction<ANY, IMPACT, false>(arguments);
}

BOUNDED_KERNEL(conjunction_any_impact_alone, AND_THREADS, 6, BatchArguments, arguments) {
    conjunction<ANY, IMPACT, true>(arguments);
}
