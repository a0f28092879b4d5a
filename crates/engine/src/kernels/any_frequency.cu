// OR and AND by frequencies, of lists packed by any codec that a GPU reads: a module of kernels.rs. Of each kernel there are
// two, for batches and for a query alone, whose rows lie in other memory.
#include "algorithms/conjunction.cu"
#include "algorithms/scatter.cu"

BOUNDED_KERNEL(scatter_any_frequency, OR_THREADS, 3, BatchArguments, arguments) {
    scatter<ANY, FREQUENCY, false>(arguments);
}

BOUNDED_KERNEL(scatter_any_frequency_alone, OR_THREADS, 3, BatchArguments, arguments) {
    scatter<ANY, FREQUENCY, true>(arguments);
}

BOUNDED_KERNEL(conjunction_any_frequency, AND_THREADS, 6, BatchArguments, arguments) {
    conjunction<ANY, FREQUENCY, false>(arguments);
}

BOUNDED_KERNEL(conjunction_any_frequency_alone, AND_THREADS, 6, BatchArguments, arguments) {
    conjunction<ANY, FREQUENCY, true>(arguments);
}
