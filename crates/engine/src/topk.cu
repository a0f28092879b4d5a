// See topk.rs: the best k of a thread block's hits, as keys, in shared memory, or in the arena where k is large.
//
// Between two calls of `settle`, which all threads of the block make together, each thread pushes at most once. Ties are
// settled by the key itself, the greater the better.
#pragma once
#include "plan.cu"

// Keys in shared memory. More would be no faster: thread blocks that live on a processor at the same time matter more.
constexpr unsigned SHARED_KEYS = 256;

struct TopShared {
    uint64_t floor; // only keys above enter
    unsigned count;
    unsigned is_last;
    // What a selection finds out.
    unsigned bin, above, kept;
    unsigned reserved;
    uint64_t least;
    uint64_t keys[SHARED_KEYS];
};

// Where a selection counts: memory of the block that is free while it settles.
constexpr unsigned BINS = 256;

struct Top {
    TopShared &shared;
    uint64_t *keys;
    unsigned *bins;
    unsigned room; // a power of two, at least k and a push of every thread
    unsigned k;
    uint64_t *floor_of_all;

    __device__ Top(TopShared &given, unsigned *given_bins, const QueryRow &query, const PartRow &part,
                   const BatchArguments &arguments)
        : shared(given), keys(given.keys), bins(given_bins), room(SHARED_KEYS), k(query.k),
          floor_of_all(arguments.floors + part.query) {
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

    // Keeps the best k, of which there are more, and raises the floor to the last of them. Starts behind a barrier and
    // ends with one.
    __device__ void cut() {
        if (shared.count > 2 * BINS) {
            select();
        } else {
            sort();
        }
        if (threadIdx.x == 0) {
            const uint64_t floor = shared.least;
            if (floor > shared.floor) shared.floor = floor;
            atomicMax(reinterpret_cast<unsigned long long *>(floor_of_all), static_cast<unsigned long long>(floor));
        }
        __syncthreads();
    }

    // Sorts, best first, and forgets what lies behind the k-th, `least`. A bitonic sort (Batcher 1968).
    __device__ void sort() {
        const unsigned count = shared.count;
        unsigned size = 2;
        while (size < count) size *= 2;
        for (unsigned i = count + threadIdx.x; i < size; i += blockDim.x) keys[i] = 0;
        __syncthreads();
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
            shared.least = count >= k ? keys[k - 1] : 0;
        }
        __syncthreads();
    }

    // Finds the k-th key, `least`, byte by byte from the highest on, and moves it and those above to the front: radix
    // selection (Alabi et al. 2012).
    __device__ void select() {
        const unsigned count = shared.count;
        uint64_t prefix = 0;   // the bytes of the k-th key that are known
        unsigned wanted = k;   // its place among the keys with these bytes
        for (int shift = 56; shift >= 0; shift -= 8) {
            for (unsigned i = threadIdx.x; i < BINS; i += blockDim.x) bins[i] = 0;
            __syncthreads();
            for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
                const uint64_t key = keys[i];
                if (shift == 56 || key >> (shift + 8) == prefix) atomicAdd(&bins[key >> shift & (BINS - 1)], 1u);
            }
            __syncthreads();
            if (threadIdx.x < 32) find_bin(wanted);
            __syncthreads();
            const unsigned bin = shared.bin, in_bin = bins[bin];
            prefix = prefix << 8 | bin;
            wanted -= shared.above;
            // All keys with these bytes are wanted.
            if (in_bin == wanted || shift == 0) {
                keep(prefix << shift, count);
                return;
            }
            __syncthreads();
        }
    }

    // By the first warp: the bin of the key at a place, counted from the highest bin on, and the keys above the bin.
    __device__ void find_bin(unsigned wanted) {
        const unsigned lane = threadIdx.x, each = BINS / 32;
        // Lane 0 has the highest bins.
        const unsigned first = BINS - each * (lane + 1);
        unsigned own = 0;
        for (unsigned i = 0; i < each; i++) own += bins[first + i];
        unsigned sum = own;
        for (unsigned by = 1; by < 32; by <<= 1) {
            const unsigned before = __shfl_up_sync(~0u, sum, by);
            if (lane >= by) sum += before;
        }
        unsigned above = sum - own;
        if (above >= wanted || sum < wanted) return;
        for (unsigned i = each; i-- > 0;) {
            const unsigned here = bins[first + i];
            if (above + here >= wanted) {
                shared.bin = first + i;
                shared.above = above;
                return;
            }
            above += here;
        }
    }

    // Moves the keys from `least` on to the front; `least` becomes the smallest of them.
    __device__ void keep(uint64_t least, unsigned count) {
        __syncthreads();
        if (threadIdx.x == 0) {
            shared.kept = 0;
            shared.least = ~uint64_t(0);
        }
        __syncthreads();
        for (unsigned start = 0; start < count; start += blockDim.x) {
            const unsigned i = start + threadIdx.x;
            const uint64_t key = i < count ? keys[i] : 0;
            // What is written lies before what is still to be read.
            __syncthreads();
            if (key >= least && i < count) {
                keys[atomicAdd(&shared.kept, 1u)] = key;
                atomicMin(reinterpret_cast<unsigned long long *>(&shared.least), static_cast<unsigned long long>(key));
            }
        }
        __syncthreads();
        if (threadIdx.x == 0) shared.count = shared.kept;
        __syncthreads();
    }

    // Leaves the hits of the part; the last part of a query to come here leaves the query's. Starts behind a barrier.
    __device__ void finish(const QueryRow &query, const PartRow &part, const BatchArguments &arguments) {
        if (shared.count > k) cut();
        sort();
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
        const unsigned count = shared.count;
        if (own != keys) {
            for (unsigned i = threadIdx.x; i < count; i += blockDim.x) own[i] = keys[i];
        }
        for (unsigned i = count + threadIdx.x; i < k; i += blockDim.x) own[i] = 0;
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) shared.is_last = atomicAdd(arguments.done + part.query, 1u) == query.parts - 1;
        __syncthreads();
        if (!shared.is_last) return false;
        __threadfence();
        if (threadIdx.x == 0) look_around();
        __syncthreads();
        take_over(query, arguments);
        if (shared.count > k) cut();
        sort();
        return true;
    }

    // The keys of a part in the arena; null for this part, whose keys are here, and for none.
    __device__ const uint64_t *keys_of(unsigned number, const QueryRow &query, const BatchArguments &arguments) const {
        const unsigned part = query.first_part + number;
        if (number >= query.parts || part == blockIdx.x) return nullptr;
        return arguments.arena + (arguments.is_alone ? part * arguments.alone.keys : arguments.parts[part].keys);
    }

    // Pushes the hits of the other parts, which are sorted: thread by thread a part, best keys first, or, where there are
    // few parts, a part after the other, thread by thread a key. Starts and ends behind a barrier.
    __device__ void take_over(const QueryRow &query, const BatchArguments &arguments) {
        const bool is_many = query.parts > blockDim.x / 4;
        const unsigned step = is_many ? 1 : blockDim.x;
        // The best keys of four parts are sent for together.
        const unsigned parts = is_many ? 4 * blockDim.x : 4;
        for (unsigned start = 0; start < query.parts; start += parts) {
            const uint64_t *theirs[4];
            uint64_t next[4];
#pragma unroll
            for (unsigned j = 0; j < 4; j++) {
                const unsigned i = is_many ? 0 : threadIdx.x;
                theirs[j] = keys_of(start + (is_many ? j * blockDim.x + threadIdx.x : j), query, arguments);
                next[j] = theirs[j] && i < k ? key_at(theirs[j], i) : 0;
            }
#pragma unroll
            for (unsigned j = 0; j < 4; j++) take_over_part(theirs[j], next[j], is_many ? 0 : threadIdx.x, step);
        }
    }

    // Pushes a part's keys from the `i`-th on, which is `key`, every `step`-th, until they fall below the floor.
    __device__ void take_over_part(const uint64_t *theirs, uint64_t key, unsigned i, unsigned step) {
        bool is_more = true;
        while (is_more) {
            settle();
            // The floor may be the key itself: its part made it known.
            const bool enters = key != 0 && key >= shared.floor;
            if (enters) keys[atomicAdd(&shared.count, 1u)] = key;
            i += step;
            key = enters && i < k ? key_at(theirs, i) : 0;
            is_more = __syncthreads_or(key != 0);
        }
    }

    // A key of a part, one of k; 0 behind the last.
    __device__ static uint64_t key_at(const uint64_t *theirs, unsigned i) {
        return *const_cast<const volatile uint64_t *>(theirs + i);
    }
};
