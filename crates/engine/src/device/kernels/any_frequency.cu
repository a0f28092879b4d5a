// OR and AND by frequencies, over lists packed by any codec that has a GPU decoder: a module of kernels.rs.
#include "device/kernels/answering.cu"

ANSWERING_KERNELS(any_frequency, ANY, FREQUENCY, OR_BLOCKS_PER_SM_ANY)
