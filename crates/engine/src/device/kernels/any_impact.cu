// OR and AND by impacts, over lists packed by any codec that has a GPU decoder: a module of kernels.rs.
#include "device/kernels/answering.cu"

ANSWERING_KERNELS(any_impact, ANY, IMPACT, OR_BLOCKS_PER_SM_ANY)
