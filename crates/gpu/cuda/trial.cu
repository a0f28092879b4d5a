// Kernels that try a device out: some are right, some are wrong in a way that must show.
#include "kernel.h"

struct TrialArguments {
    const unsigned *in;
    unsigned *out;
    unsigned *total;
    unsigned n;
    unsigned reserved;
};
static_assert(sizeof(TrialArguments) == 32, "as trial.rs has it");

struct TrialShared {
    unsigned of_warps[32];
};

// Sums numbers up: by shuffles in a warp, by shared memory in a block, by an atomic operation among blocks.
KERNEL(trial_sum, TrialArguments, arguments) {
    SHARED(TrialShared, shared);
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned x = i < arguments.n ? arguments.in[i] : 0;
    for (int o = 16; o; o >>= 1) x += __shfl_xor_sync(~0u, x, o);
    if ((threadIdx.x & 31) == 0) shared.of_warps[threadIdx.x / 32] = x;
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned sum = 0;
        for (unsigned w = 0; w < blockDim.x / 32; w++) sum += shared.of_warps[w];
        arguments.out[blockIdx.x] = sum;
        atomicAdd(arguments.total, sum);
    }
}

// Some lanes of a warp meet apart from the others.
KERNEL(trial_partial, TrialArguments, arguments) {
    unsigned lane = threadIdx.x & 31, x = lane;
    if (lane < 16) x += __shfl_xor_sync(0xFFFFu, x, 1);
    x += __shfl_xor_sync(~0u, x, 16);
    arguments.out[threadIdx.x] = x + __popc(__ballot_sync(~0u, lane < arguments.n));
}

// Numbers for the host, and behind them how many there are: the host may read the numbers when it sees that.
KERNEL(trial_tell, TrialArguments, arguments) {
    for (unsigned i = threadIdx.x; i < arguments.n; i += blockDim.x) arguments.out[i] = arguments.in[i] + 1;
    __syncthreads();
    if (threadIdx.x > 0) return;
    __threadfence_system();
    *const_cast<volatile unsigned *>(arguments.total) = arguments.n;
}

// A lost update between blocks: read, others, write.
KERNEL(trial_race, TrialArguments, arguments) {
    unsigned old = *arguments.total;
    atomicAdd(arguments.out, 1u);
    *arguments.total = old + 1;
}

// A barrier is missing between writing and reading.
KERNEL(trial_no_barrier, TrialArguments, arguments) {
    SHARED(TrialShared, shared);
    shared.of_warps[threadIdx.x % 32] = threadIdx.x;
    arguments.out[threadIdx.x] = shared.of_warps[31 - threadIdx.x % 32];
}

// Half of the threads never come to the barrier.
KERNEL(trial_half_barrier, TrialArguments, arguments) {
    if (threadIdx.x < arguments.n) __syncthreads();
}

// All threads wait, but at two places.
KERNEL(trial_two_barriers, TrialArguments, arguments) {
    if (threadIdx.x < arguments.n) {
        __syncthreads();
    } else {
        __syncthreads();
    }
}

// Half of a warp never comes to the shuffle.
KERNEL(trial_half_shuffle, TrialArguments, arguments) {
    if ((threadIdx.x & 31) < 16) arguments.out[threadIdx.x] = __shfl_sync(~0u, threadIdx.x, 0);
}

// Writes where nothing is: on a real device an illegal access.
KERNEL(trial_fault, TrialArguments, arguments) {
    if (threadIdx.x == 0) *reinterpret_cast<unsigned *>(16) = arguments.n;
}
