// See topk.rs: the best k of a thread block's hits, as keys, in shared memory for a small k and in the arena else.
//
// Between two calls of `settle`, which all threads of the block make together, each thread pushes at most once. Ties are settled by the key itself, the greater the better.
#pragma once
#include "plan.cu"

// Keys in shared memory.
constexpr unsigned SHARED_KEYS = 256;

struct TopShared {
    uint64_t floor;  // only keys above enter
    unsigned count;
    unsigned is_last;
    alignas(16) uint64_t keys[SHARED_KEYS];
};

struct Top {
    TopShared &shared;
    uint64_t *keys;
    unsigned room; // a power of two, at least k and a push of every thread
    unsigned k;
    uint64_t *floor_of_all;

    __device__ Top(TopShared &given, const QueryRow &query, const PartRow &part, const BatchArguments &arguments)
        : shared(given), keys(given.keys), room(SHARED_KEYS), k(query.k), floor_of_all(arguments.floors + part.query) {
        if (part.room > 0) {
            keys = arguments.arena + part.keys;
            room = part.room;
        }
        if (threadIdx.x == 0) {
            shared.count = 0;
            shared.floor = static_cast<uint64_t>(query.seed) << 32;
        }
    }

    // Takes over what other blocks have found, by one thread, before a barrier.
    __device__ void look_around() {
        const uint64_t found = *const_cast<volatile uint64_t *>(floor_of_all);
        if (found > shared.floor) shared.floor = found;
    }

    // The least score that can still enter.
    __device__ unsigned threshold() const { return static_cast<unsigned>(shared.floor >> 32); }

    __device__ void push(unsigned document, unsigned score) {
        const uint64_t key = static_cast<uint64_t>(score) << 32 | static_cast<uint64_t>(~document);
        if (key > shared.floor) keys[atomicAdd(&shared.count, 1u)] = key;
    }

    // After a barrier behind the last push: sees that there is room for a push of every thread. Ends with a barrier.
    __device__ void settle() {
        const bool is_full = shared.count + blockDim.x > room;
        __syncthreads();
        if (is_full) cut();
    }

    // Keeps the best k, sorted, best first. Starts behind a barrier and ends with one.
    __device__ void cut() {
        const unsigned count = shared.count;
        unsigned size = 2;
        while (size < count) size *= 2;
        for (unsigned i = count + threadIdx.x; i < size; i += blockDim.x) keys[i] = 0;
        __syncthreads();
        // A bitonic sort (Batcher 1968).
        for (unsigned run = 2; run <= size; run *= 2) {
            for (unsigned step = run / 2; step > 0; step /= 2) {
                for (unsigned i = threadIdx.x; i < size / 2; i += blockDim.x) {
                    const unsigned low = 2 * i - (i & (step - 1)), high = low + step;
                    const bool is_descending = (low & run) == 0;
                    const uint64_t a = keys[low], b = keys[high];
                    if ((a < b) == is_descending) {
                        keys[low] = b;
                        keys[high] = a;
                    }
                }
                __syncthreads();
            }
        }
        if (threadIdx.x == 0) {
            shared.count = min(count, k);
            if (count >= k) {
                const uint64_t floor = keys[k - 1];
                if (floor > shared.floor) shared.floor = floor;
                atomicMax(reinterpret_cast<unsigned long long *>(floor_of_all), static_cast<unsigned long long>(floor));
            }
        }
        __syncthreads();
    }

    // Leaves the hits of the part; the last part of a query to come here leaves the query's. Starts behind a barrier.
    __device__ void finish(const QueryRow &query, const PartRow &part, const BatchArguments &arguments) {
        cut();
        if (query.parts > 1 && !is_last_part(query, part, arguments)) return;
        if (arguments.is_alone && threadIdx.x == 0) {
            *floor_of_all = 0;
            arguments.done[0] = 0;
        }
        uint64_t *answer = arguments.answers + query.answer;
        for (unsigned i = threadIdx.x; i < shared.count; i += blockDim.x) answer[i] = keys[i];
        if (threadIdx.x == 0) arguments.answer_counts[part.query] = shared.count;
    }

    // Whether all other parts are done; then their hits are here too.
    __device__ bool is_last_part(const QueryRow &query, const PartRow &part, const BatchArguments &arguments) {
        uint64_t *own = arguments.arena + part.keys;
        if (own != keys) {
            for (unsigned i = threadIdx.x; i < shared.count; i += blockDim.x) own[i] = keys[i];
        }
        const unsigned this_part = blockIdx.x;
        if (threadIdx.x == 0) arguments.counts[this_part] = shared.count;
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) shared.is_last = atomicAdd(arguments.done + part.query, 1u) == query.parts - 1;
        __syncthreads();
        if (!shared.is_last) return false;
        __threadfence();
        // Parts of a query stand side by side.
        unsigned first = this_part;
        if (arguments.is_alone) first = 0;
        else while (first > 0 && arguments.parts[first - 1].query == part.query) first--;
        take_over(first, query.parts, this_part, arguments);
        cut();
        return true;
    }

    // Where the keys of a part begin in the arena.
    __device__ static uint64_t keys_of(unsigned part, const BatchArguments &arguments) {
        return arguments.is_alone ? part * arguments.alone.keys : arguments.parts[part].keys;
    }

    // Pushes the hits of the other parts. Each part's are sorted: thread by thread a part, best keys first, or, where
    // there are few parts, a part after the other, thread by thread a key. Starts and ends behind a barrier.
    __device__ void take_over(unsigned first, unsigned parts, unsigned this_part, const BatchArguments &arguments) {
        const bool is_many = parts > blockDim.x / 4;
        const unsigned step = is_many ? blockDim.x : 1;
        for (unsigned start = 0; start < parts; start += step) {
            const unsigned other = first + start + (is_many ? threadIdx.x : 0);
            const bool is_other = other < first + parts && other != this_part;
            const uint64_t *theirs = is_other ? arguments.arena + keys_of(other, arguments) : nullptr;
            const unsigned count = is_other ? *const_cast<volatile unsigned *>(arguments.counts + other) : 0;
            unsigned i = is_many ? 0 : threadIdx.x;
            bool is_more = true;
            while (is_more) {
                settle();
                const uint64_t key = i < count ? theirs[i] : 0;
                // The floor may be the key itself: its part made it known.
                const bool enters = key != 0 && key >= shared.floor;
                if (enters) keys[atomicAdd(&shared.count, 1u)] = key;
                i += is_many ? 1 : blockDim.x;
                is_more = __syncthreads_or(enters && i < count);
            }
        }
    }
};
