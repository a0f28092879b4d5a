// See transfer.rs: copies pieces of lists from host memory into device memory, a row per thread block.
#include "kernel.h"
#include "ptx/transfer.h"

// Every thread has all its loads in flight before the first store: the bus has a latency of a microsecond or two.
BOUNDED_KERNEL(transfer, TRANSFER_THREADS, 4, TransferArguments, arguments) {
    const TransferRow row = arguments.rows[blockIdx.x];
    constexpr unsigned EACH = TRANSFER_UNITS / TRANSFER_THREADS;
    uint4 units[EACH];
#pragma unroll
    for (unsigned i = 0; i < EACH; i++) {
        const unsigned unit = i * TRANSFER_THREADS + threadIdx.x;
        units[i] = unit < row.units ? __ldg(row.from + unit) : make_uint4(0, 0, 0, 0);
    }
#pragma unroll
    for (unsigned i = 0; i < EACH; i++) {
        const unsigned unit = i * TRANSFER_THREADS + threadIdx.x;
        if (unit < row.units) row.to[unit] = units[i];
    }
}
