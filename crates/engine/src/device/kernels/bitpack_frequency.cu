// OR and AND by frequencies, over lists packed by bitpack, the default: a module of kernels.rs.
#include "algorithms/weigher.cu"
#include "codec/codec.cu"
#include "device/kernels/answering.cu"
#include "ptx/kernels.h"

ANSWERING_KERNELS(bitpack_frequency, codec_tag::Bitpack, FREQUENCY, OR_BLOCKS_PER_SM)
