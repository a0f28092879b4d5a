// OR and AND by impacts, of lists packed by bitpack, the default: a module of kernels.rs.
#include "device/kernels/answering.cu"

ANSWERING_KERNELS(bitpack_impact, BITPACK, IMPACT, 4)
