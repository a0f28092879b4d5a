// OR and AND by frequencies, of lists packed by any codec that a GPU reads: a module of kernels.rs.
#include "device/kernels/answering.cu"

ANSWERING_KERNELS(any_frequency, ANY, FREQUENCY, 3)
