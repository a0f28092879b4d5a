// Included by every kernel: CUDA C++ for nvcc, the simulator's stand-in for it otherwise, and macros that both define.
#pragma once
#ifdef __CUDACC__
#include <cstdint>
#define KERNEL(name, Arguments, arguments) extern "C" __global__ void name(const __grid_constant__ Arguments arguments)
// A kernel of thread blocks with up to `threads` threads, with registers for `blocks` resident thread blocks per SM.
#define BOUNDED_KERNEL(name, threads, blocks, Arguments, arguments)                                                    \
    extern "C" __global__ void __launch_bounds__(threads, blocks) name(const __grid_constant__ Arguments arguments)
// Prefetches the cache line of an address into the L2.
#define PREFETCH(address) asm volatile("prefetch.global.L2 [%0];" ::"l"(address))
// Copies a 32-bit number from global to shared memory asynchronously; WAIT_FOR_COPIES waits for all such copies of the
// thread.
#define COPY_NUMBER(to, from)                                                                                          \
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(                                                     \
                     static_cast<unsigned>(__cvta_generic_to_shared(to))),                                             \
                 "l"(from)                                                                                             \
                 : "memory")
#define WAIT_FOR_COPIES() asm volatile("cp.async.wait_all;" ::: "memory")
// Adds the `sum` of the lane `by` lanes before, if there is one. All lanes must call it. The predicate of the shuffle
// says which lanes have one; plain CUDA C++ compiles to an additional compare and select.
#define ADD_LANE_BEFORE(sum, by)                                                                                       \
    asm volatile("{ .reg .pred has; .reg .u32 before; shfl.sync.up.b32 before|has, %0, %1, 0, -1;"                     \
                 " @has add.u32 %0, %0, before; }"                                                                     \
                 : "+r"(sum)                                                                                           \
                 : "r"(by))
// The shared memory of the thread block, as a struct.
#define SHARED(Type, name)                                                                                             \
    extern __shared__ __align__(128) unsigned char shared_bytes[];                                                     \
    Type &name = *reinterpret_cast<Type *>(shared_bytes)
#else
#include "simulator.h"
#endif
