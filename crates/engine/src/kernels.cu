// The modules of kernels.rs together, for the simulator.
#include "kernels/any_codec.cu"
#include "kernels/bitpack.cu"
#include "kernels/decode.cu"
#include "kernels/steps.cu"
