// What a kernel is written with: CUDA's own words, and five of ours that mean the same to nvcc and to the simulator.
#pragma once
#ifdef __CUDACC__
#include <cstdint>
#define KERNEL(name, Arguments, arguments) extern "C" __global__ void name(const __grid_constant__ Arguments arguments)
// At most so many threads a block, and registers for so many blocks a processor.
#define BOUNDED_KERNEL(name, threads, blocks, Arguments, arguments)                                                     \
    extern "C" __global__ void __launch_bounds__(threads, blocks) name(const __grid_constant__ Arguments arguments)
// Sends for the memory at an address, which is going to be read.
#define PREFETCH(address) asm volatile("prefetch.global.L2 [%0];" ::"l"(address))
// Copies a number of 32 bits from global to shared memory without a register in between; the second waits for all such
// copies of the thread.
#define COPY_NUMBER(to, from)                                                                                           \
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(                                                       \
                     static_cast<unsigned>(__cvta_generic_to_shared(to))),                                               \
                 "l"(from)                                                                                               \
                 : "memory")
#define WAIT_FOR_COPIES() asm volatile("cp.async.wait_all;" ::: "memory")
// Adds to the `sum` of a lane that of the one so many lanes before it, if there is one. All lanes come. The shuffle itself
// tells which lanes have one; what is compiled from CUDA's own words compares and selects.
#define ADD_LANE_BEFORE(sum, by)                                                                                        \
    asm volatile("{ .reg .pred has; .reg .u32 before; shfl.sync.up.b32 before|has, %0, %1, 0, -1;"                      \
                 " @has add.u32 %0, %0, before; }"                                                                      \
                 : "+r"(sum)                                                                                            \
                 : "r"(by))
#define SHARED(Type, name)                                                                                              \
    extern __shared__ __align__(128) unsigned char shared_bytes[];                                                      \
    Type &name = *reinterpret_cast<Type *>(shared_bytes)
#else
#include "simulator.h"
#endif
