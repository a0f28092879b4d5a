// OR and AND by impacts, over lists packed by any codec that has a GPU decoder: a module of kernels.rs.
#include "algorithms/weigher.cu"
#include "codec/codec.cu"
#include "device/kernels/answering.cu"
#include "ptx/kernels.h"

ANSWERING_KERNELS(any_impact, ANY, IMPACT, OR_BLOCKS_PER_SM_ANY)
