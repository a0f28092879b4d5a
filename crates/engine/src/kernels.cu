// Every kernel of the engine, one translation unit: the module of kernels.rs.
#include "algorithms/conjunction.cu"
#include "algorithms/scatter.cu"
#include "codec/decode.cu"
