// Kernels that exercise a device: some are correct, others have a bug that a device must report.
#include "kernel.h"
#include "trial.h"

struct TrialShared {
    unsigned of_warps[32];
};

// Sums up numbers: by shuffles in a warp, in shared memory in a thread block, by an atomic operation across blocks.
KERNEL(trial_sum, TrialArguments, arguments) {
    SHARED(TrialShared, shared);
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned x = i < arguments.n ? arguments.input[i] : 0;
    for (int o = 16; o; o >>= 1) x += __shfl_xor_sync(~0u, x, o);
    if ((threadIdx.x & 31) == 0) shared.of_warps[threadIdx.x / 32] = x;
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned sum = 0;
        for (unsigned w = 0; w < blockDim.x / 32; w++) sum += shared.of_warps[w];
        arguments.output[blockIdx.x] = sum;
        atomicAdd(arguments.total, sum);
    }
}

// Some lanes of a warp synchronize without the others.
KERNEL(trial_partial, TrialArguments, arguments) {
    unsigned lane = threadIdx.x & 31, x = lane;
    if (lane < 16) x += __shfl_xor_sync(0xFFFFu, x, 1);
    x += __shfl_xor_sync(~0u, x, 16);
    arguments.output[threadIdx.x] = x + __popc(__ballot_sync(~0u, lane < arguments.n));
}

// Writes numbers for the host, then their count, which tells the host that the numbers can be read.
KERNEL(trial_tell, TrialArguments, arguments) {
    for (unsigned i = threadIdx.x; i < arguments.n; i += blockDim.x) arguments.output[i] = arguments.input[i] + 1;
    __syncthreads();
    if (threadIdx.x > 0) return;
    __threadfence_system();
    *const_cast<volatile unsigned *>(arguments.total) = arguments.n;
}

// A lost update: other thread blocks run between the read and the write.
KERNEL(trial_race, TrialArguments, arguments) {
    unsigned old = *arguments.total;
    atomicAdd(arguments.output, 1u);
    *arguments.total = old + 1;
}

// A barrier is missing between writing and reading.
KERNEL(trial_no_barrier, TrialArguments, arguments) {
    SHARED(TrialShared, shared);
    shared.of_warps[threadIdx.x % 32] = threadIdx.x;
    arguments.output[threadIdx.x] = shared.of_warps[31 - threadIdx.x % 32];
}

// Half of the threads never reach the barrier.
KERNEL(trial_half_barrier, TrialArguments, arguments) {
    if (threadIdx.x < arguments.n) __syncthreads();
}

// All threads wait, but at two different barriers.
KERNEL(trial_two_barriers, TrialArguments, arguments) {
    if (threadIdx.x < arguments.n) {
        __syncthreads();
    } else {
        __syncthreads();
    }
}

// Half of a warp never reaches the shuffle.
KERNEL(trial_half_shuffle, TrialArguments, arguments) {
    if ((threadIdx.x & 31) < 16) arguments.output[threadIdx.x] = __shfl_sync(~0u, threadIdx.x, 0);
}

// Ends with a trap, as a kernel does for an argument that it cannot handle.
KERNEL(trial_trap, TrialArguments, arguments) {
    if (threadIdx.x == arguments.n) __trap();
}

// Writes to an address that was never allocated: on a real device an illegal access.
KERNEL(trial_fault, TrialArguments, arguments) {
    if (threadIdx.x == 0) *reinterpret_cast<unsigned *>(16) = arguments.n;
}
