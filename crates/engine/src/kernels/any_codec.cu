// OR and AND of lists packed by any codec that a GPU reads: a module of kernels.rs.
#include "algorithms/conjunction.cu"
#include "algorithms/scatter.cu"

BOUNDED_KERNEL(scatter_any_frequency, THREADS, 6, BatchArguments, arguments) {
    scatter<ANY, FREQUENCY>(arguments);
}

BOUNDED_KERNEL(scatter_any_impact, THREADS, 6, BatchArguments, arguments) {
    scatter<ANY, IMPACT>(arguments);
}

BOUNDED_KERNEL(conjunction_any_frequency, THREADS, 6, BatchArguments, arguments) {
    conjunction<ANY, FREQUENCY>(arguments);
}

BOUNDED_KERNEL(conjunction_any_impact, THREADS, 6, BatchArguments, arguments) {
    conjunction<ANY, IMPACT>(arguments);
}
