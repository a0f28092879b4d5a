// The modules of kernels.rs, decode.rs and transfer.rs in one translation unit, for the simulator.
#include "device/kernels/any_frequency.cu"
#include "device/kernels/any_impact.cu"
#include "device/kernels/bitpack_frequency.cu"
#include "device/kernels/bitpack_impact.cu"
#include "device/kernels/decode.cu"
#include "device/residency/transfer.cu"
