// OR and AND by frequencies, over lists packed by bitpack, the default: a module of kernels.rs.
#include "device/kernels/answering.cu"

ANSWERING_KERNELS(bitpack_frequency, codec_tag::Bitpack, FREQUENCY, OR_BLOCKS_PER_SM)
