// The modules of kernels.rs together, for the simulator.
#include "kernels/any_frequency.cu"
#include "kernels/any_impact.cu"
#include "kernels/bitpack_frequency.cu"
#include "kernels/bitpack_impact.cu"
#include "kernels/decode.cu"
#include "kernels/steps.cu"
