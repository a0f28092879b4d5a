// OR and AND by frequencies, of lists packed by bitpack, the default: a module of kernels.rs.
#include "device/kernels/answering.cu"

ANSWERING_KERNELS(bitpack_frequency, BITPACK, FREQUENCY, 4)
