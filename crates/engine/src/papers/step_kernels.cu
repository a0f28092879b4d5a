// AND and OR of packed lists step by step, as the papers do it: the module of step_kernels.rs.
#include "papers/accumulators.cu"
#include "papers/term_at_a_time.cu"
