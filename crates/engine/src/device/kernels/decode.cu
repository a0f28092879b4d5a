// Decoding alone: a module of kernels.rs.
#include "codec/decode.cu"
