// See topk.rs: the best k hits of a thread block, as keys, in shared memory, or in the arena where k is large.
//
// Each thread pushes at most once between two calls of `make_space`, which all threads of the thread block make
// together. Ties are part of the key; the greater key is the better one.
#pragma once
#include "codec/constants.h"
#include "device/part.cu"
#include "kernel.h"
#include "ptx/kernels.h"

// Keys are cut early only if there are at least this many more than k.
constexpr unsigned MANY_MORE = 32;
// Bins of a radix selection: the values of a byte.
constexpr unsigned BINS = 256;

struct TopShared {
    uint64_t floor; // only keys above this enter
    unsigned count;
    unsigned is_last;
    unsigned left; // keys that all parts have left in the arena
    // Results of a selection.
    unsigned bin, above, kept;
    // The work of the part, as in WorkRow.
    unsigned blocks, documents, missing;
    uint64_t kth_key;
    uint64_t keys[SHARED_KEYS];
};

// Shared memory that is free once all documents are processed: `count` keys, a power of two, and bins.
struct Spare {
    uint64_t *keys;
    unsigned count;
    unsigned *bins;
};

template <bool IS_SINGLE> struct Top {
    TopShared &shared;
    uint64_t *keys;
    unsigned *bins; // counts of a selection, in shared memory that is free during `make_space`
    const QueryRow &query;
    QueryState &state;

    __device__ Top(TopShared &given, unsigned *given_bins, const Part<IS_SINGLE> &part, const BatchArguments &arguments)
        : shared(given), keys(given.keys), bins(given_bins), query(part.query), state(arguments.states[part.number]) {
        if (query.capacity > 0) keys = part.keys(arguments);
        if (threadIdx.x == 0) {
            shared.count = 0;
            shared.blocks = shared.documents = shared.missing = 0;
            shared.floor = static_cast<uint64_t>(part.query.seed) << 32;
        }
    }

    // Counts a decoded block, by one lane of the warp that decoded it.
    __device__ void note_block(unsigned postings) {
        atomicAdd(&shared.blocks, 1u);
        if (postings < BLOCK) atomicAdd(&shared.missing, BLOCK - postings);
    }

    // Raises the floor of this part to the one that all parts together have reached. Called by the first warp, before a
    // barrier.
    __device__ void read_shared_floor() { take_over_floor(shared, query, state); }

    // The least score that can still enter.
    __device__ unsigned threshold() const { return static_cast<unsigned>(shared.floor >> 32); }

    // The least score with which this document, and any after it, can still enter. Of equal scores the smaller document
    // wins, so a document after the floor's needs more than the floor's score.
    __device__ unsigned threshold_for(unsigned document) const {
        const uint64_t floor = shared.floor;
        return static_cast<unsigned>(floor >> 32) + (~static_cast<unsigned>(floor) < document);
    }

    // Takes the documents of the lanes that have a hit, with their whole scores. All lanes of a warp must call it;
    // additions to the same counter are combined, because all parts add to few bins where many documents enter.
    __device__ void push(bool is_hit, unsigned document, unsigned score) {
        const unsigned lane = threadIdx.x & 31, hits = __ballot_sync(~0u, is_hit);
        const uint64_t key = static_cast<uint64_t>(score) << 32 | static_cast<uint64_t>(~document);
        const bool enters = is_hit && key > shared.floor;
        const unsigned entering = __ballot_sync(~0u, enters);
        if (lane == 0 && hits != 0) atomicAdd(&shared.documents, static_cast<unsigned>(__popc(hits)));
        if (entering == 0) return;
        unsigned position = 0;
        if (lane == 0) position = atomicAdd(&shared.count, static_cast<unsigned>(__popc(entering)));
        position = __shfl_sync(~0u, position, 0) + __popc(entering & ((1u << lane) - 1));
        if (enters) keys[position] = key;
        const unsigned bin = enters ? min((score - query.seed) >> query.shift, SCORE_BINS - 1) : NONE;
        const unsigned alike = __match_any_sync(~0u, bin);
        if (enters && lane + 1 == __ffs(alike)) {
            atomicAdd(&state.scores[bin], static_cast<unsigned>(__popc(alike)));
            atomicAdd(&state.groups[bin / 32], static_cast<unsigned>(__popc(alike)));
        }
    }

    // The most keys that fit.
    __device__ unsigned capacity() const { return query.capacity > 0 ? query.capacity : SHARED_KEYS; }

    // Makes space for a push of every thread. Must follow a barrier after the last push; ends with a barrier. It also
    // cuts where there are 2 k keys, or k + MANY_MORE if that is more, because a higher floor excludes more documents.
    __device__ void make_space() {
        const unsigned count = shared.count, many = query.k + max(query.k, MANY_MORE);
        const bool is_full = count + blockDim.x > capacity() || count >= many;
        __syncthreads();
        if (is_full) cut();
    }

    // Keeps the best k of more than k keys, and raises the floor to the last of them. Starts after a barrier and ends
    // with one.
    __device__ void cut() {
        if (shared.count > 2 * BINS) {
            select();
        } else {
            sort();
        }
        if (threadIdx.x == 0) {
            const uint64_t floor = shared.kth_key;
            if (floor > shared.floor) shared.floor = floor;
            atomicMax(&state.floor, static_cast<unsigned long long>(floor));
        }
        __syncthreads();
    }

    // Sorts, best first, drops everything after the k-th, and sets `kth_key` to it.
    __device__ void sort() {
        if (shared.count <= 2 * blockDim.x) {
            sort_few();
        } else {
            sort_many();
        }
    }

    // Up to two keys per thread: the rank of a key is the number of greater ones, since no two are equal. Damaged lists
    // may give equal keys; then there may be no k-th.
    __device__ void sort_few() {
        const unsigned count = shared.count, first = threadIdx.x, second = threadIdx.x + blockDim.x;
        const uint64_t a = first < count ? keys[first] : 0, b = second < count ? keys[second] : 0;
        unsigned rank_of_a = 0, rank_of_b = 0;
        if (first < count) {
#pragma unroll 4
            for (unsigned i = 0; i < count; i++) {
                const uint64_t key = keys[i];
                rank_of_a += key > a;
                rank_of_b += key > b;
            }
        }
        if (threadIdx.x == 0) shared.kth_key = 0;
        __syncthreads();
        if (first < count) put(rank_of_a, a);
        if (second < count) put(rank_of_b, b);
        if (threadIdx.x == 0) shared.count = min(count, query.k);
        __syncthreads();
    }

    __device__ void put(unsigned position, uint64_t key) {
        if (position < query.k) keys[position] = key;
        if (position == query.k - 1) shared.kth_key = key;
    }

    // A bitonic sort (Batcher 1968).
    __device__ void sort_many() {
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
            shared.count = min(count, query.k);
            shared.kth_key = count >= query.k ? keys[query.k - 1] : 0;
        }
        __syncthreads();
    }

    // Finds the k-th key, `kth_key`, byte by byte from the highest on, and moves it and those above it to the front:
    // radix selection (Alabi et al. 2012).
    __device__ void select() {
        const unsigned count = shared.count;
        uint64_t prefix = 0;   // the known bytes of the k-th key
        unsigned wanted = query.k;   // its rank among the keys with these bytes
        for (int shift = 56; shift >= 0; shift -= 8) {
            for (unsigned i = threadIdx.x; i < BINS; i += blockDim.x) bins[i] = 0;
            __syncthreads();
            for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
                const uint64_t key = keys[i];
                if (shift == 56 || key >> (shift + 8) == prefix) atomicAdd(&bins[key >> shift & (BINS - 1)], 1u);
            }
            __syncthreads();
            if (threadIdx.x < 32) {
                unsigned above;
                const unsigned bin = find_bin(bins, wanted, above);
                if (bin != NONE) {
                    shared.bin = bin;
                    shared.above = above;
                }
            }
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

    // Raises the floor to a score that k documents reach, whatever parts they are in. By one warp. Not inlined, because
    // it has several callers.
    __device__ __noinline__ static void take_over_floor(TopShared &shared, const QueryRow &query,
                                                        const QueryState &state) {
        const Found group = find_of_32(state.groups, query.k);
        uint64_t reached = 0;
        if (group.position != NONE) {
            // A document may be counted in its group but not yet in its bin.
            const Found bin = find_of_32(state.scores + 32 * group.position, query.k - group.above);
            const unsigned first = 32 * group.position + (bin.position != NONE ? bin.position : 0);
            reached = static_cast<uint64_t>(query.seed + (first << query.shift)) << 32;
        }
        if (threadIdx.x > 0) return;
        const uint64_t floor = *const_cast<const volatile unsigned long long *>(&state.floor);
        const uint64_t found = reached > floor ? reached : floor;
        if (found > shared.floor) shared.floor = found;
    }

    // A count among 32, which are summed up from the last to the first.
    struct Found {
        unsigned position; // of the count in which the sum reaches a number; NONE if it never does
        unsigned above;    // the sum of the counts after it
    };

    // By the first warp, all lanes of which get the same result.
    __device__ static Found find_of_32(const unsigned *counts, unsigned wanted) {
        const unsigned lane = threadIdx.x, own = *const_cast<const volatile unsigned *>(counts + 31 - lane);
        unsigned sum = own;
#pragma unroll
        for (unsigned by = 1; by < 32; by <<= 1) {
            const unsigned before = __shfl_up_sync(~0u, sum, by);
            if (lane >= by) sum += before;
        }
        const unsigned reaching = __ballot_sync(~0u, sum >= wanted);
        if (reaching == 0) return Found{NONE, 0};
        const unsigned first = __ffs(reaching) - 1;
        return Found{31 - first, __shfl_sync(~0u, sum - own, first)};
    }

    // By the first warp: the bin that contains rank `wanted`, counted from the highest bin, and the count of the
    // bins above it, in the lane that finds it. NONE in all other lanes, and in all where there is no such rank.
    __device__ static unsigned find_bin(const unsigned *counts, unsigned wanted, unsigned &above) {
        const unsigned lane = threadIdx.x;
        constexpr unsigned EACH = BINS / 32;
        // Lane 0 has the highest bins.
        const unsigned first = BINS - EACH * (lane + 1);
        unsigned own[EACH], sum = 0;
#pragma unroll
        for (unsigned i = 0; i < EACH; i++) sum += own[i] = counts[first + i];
        const unsigned all = sum;
        for (unsigned by = 1; by < 32; by <<= 1) {
            const unsigned before = __shfl_up_sync(~0u, sum, by);
            if (lane >= by) sum += before;
        }
        above = sum - all;
        if (above >= wanted || sum < wanted) return NONE;
        unsigned bin = NONE;
#pragma unroll
        for (unsigned i = EACH; i-- > 0;) {
            if (bin == NONE) {
                if (above + own[i] >= wanted) bin = first + i;
                else above += own[i];
            }
        }
        return bin;
    }

    // Moves the keys that are at least `smallest` to the front, and sets `shared.kth_key` to the smallest of them.
    __device__ void keep(uint64_t smallest, unsigned count) {
        __syncthreads();
        if (threadIdx.x == 0) {
            shared.kept = 0;
            shared.kth_key = ~uint64_t(0);
        }
        __syncthreads();
        for (unsigned start = 0; start < count; start += blockDim.x) {
            const unsigned i = start + threadIdx.x;
            const uint64_t key = i < count ? keys[i] : 0;
            // Positions that are written come before those that are still to be read.
            __syncthreads();
            if (key >= smallest && i < count) {
                keys[atomicAdd(&shared.kept, 1u)] = key;
                atomicMin(reinterpret_cast<unsigned long long *>(&shared.kth_key), static_cast<unsigned long long>(key));
            }
        }
        __syncthreads();
        if (threadIdx.x == 0) shared.count = shared.kept;
        __syncthreads();
    }

    // Writes the hits of the part to the arena; the last part of the query to get here writes the query's answer.
    // `spare` is shared memory that is free by now. Starts after a barrier.
    __device__ void finish(const Part<IS_SINGLE> &part, const BatchArguments &arguments, Spare spare) {
        if (shared.count > query.k) cut();
        if (threadIdx.x == 0) add_work();
        if (query.parts > 1 && !is_last_part(arguments, spare)) return;
        move_to_shared(spare);
        if (shared.count > max(query.k, 2 * BINS)) select();
        sort();
        answer(part.number, arguments);
    }

    // Writes the answer of the query: hits, work, and last their count.
    __device__ void answer(unsigned number, const BatchArguments &arguments) {
        uint64_t *hits = arguments.answers + query.answer;
        for (unsigned i = threadIdx.x; i < shared.count; i += blockDim.x) hits[i] = keys[i];
        if (threadIdx.x == 0) {
            const volatile WorkRow &work = state.work;
            arguments.answer_work[number] = WorkRow{work.blocks, work.documents, work.missing};
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            // The host polls the count of a single query, and then reads the rest. The fence of one thread orders what
            // all threads have written before the barrier.
            if (IS_SINGLE) __threadfence_system();
            *const_cast<volatile unsigned *>(arguments.answer_counts + number) = shared.count;
        }
        if (IS_SINGLE) {
            __syncthreads();
            clear_state();
        }
    }

    // Zeroes the state for the next single query.
    __device__ void clear_state() {
        for (unsigned i = threadIdx.x; i < SCORE_BINS; i += blockDim.x) state.scores[i] = 0;
        if (threadIdx.x < SCORE_GROUPS) state.groups[threadIdx.x] = 0;
        if (threadIdx.x > 0) return;
        state.floor = 0;
        state.work = WorkRow{0, 0, 0};
        state.left = state.done = 0;
    }

    // Adds two counts by one atomic operation, and the third if it is not zero: all parts add to the same address.
    __device__ void add_work() {
        const unsigned long long counts = static_cast<unsigned long long>(shared.documents) << 32 | shared.blocks;
        atomicAdd(reinterpret_cast<unsigned long long *>(&state.work), counts);
        if (shared.missing > 0) atomicAdd(&state.work.missing, static_cast<unsigned long long>(shared.missing));
    }

    // Writes the part's keys to the arena. Returns whether all other parts are done; then this part has taken over the
    // keys of all parts that can still be hits.
    __device__ bool is_last_part(const BatchArguments &arguments, Spare spare) {
        uint64_t *left = arguments.arena + query.keys;
        // If this part has many hits, others probably do too, and most of them are no hits of the query.
        if (shared.count > query.k / 2) {
            if (threadIdx.x < 32) read_shared_floor();
            __syncthreads();
        }
        leave_keys(left);
        __syncthreads();
        if (threadIdx.x == 0) {
            // The fence of one thread orders what all threads have written before the barrier; the second one orders
            // what the last part reads after what the others have written. Both counts are one number of 64 bits.
            __threadfence();
            const unsigned long long before =
                atomicAdd(reinterpret_cast<unsigned long long *>(&state.left), 1ull << 32);
            shared.is_last = before >> 32 == query.parts - 1;
            shared.left = static_cast<unsigned>(before);
            if (shared.is_last) __threadfence();
        }
        __syncthreads();
        if (!shared.is_last) return false;
        take_over(left, shared.left, spare);
        return true;
    }

    // Writes the keys that can still be hits of the query; the floor may be one of them.
    __device__ void leave_keys(uint64_t *left) {
        // Damaged lists may give equal keys, and with them more than k.
        const unsigned count = min(shared.count, query.k), lane = threadIdx.x & 31;
        for (unsigned start = threadIdx.x - lane; start < count; start += blockDim.x) {
            const uint64_t key = start + lane < count ? keys[start + lane] : 0;
            const bool stays = start + lane < count && key >= shared.floor;
            const unsigned staying = __ballot_sync(~0u, stays);
            if (staying == 0) continue;
            unsigned position = 0;
            if (lane == 0) position = atomicAdd(&state.left, static_cast<unsigned>(__popc(staying)));
            position = __shfl_sync(~0u, position, 0) + __popc(staying & ((1u << lane) - 1));
            if (stays) left[position] = key;
        }
    }

    // Replaces the keys of this part by those that all parts have left. Starts and ends after a barrier.
    __device__ void take_over(const uint64_t *left, unsigned count, Spare spare) {
        unsigned most = capacity();
        if (spare.count >= min(count, most)) {
            most = spare.count;
            use(spare);
        }
        if (threadIdx.x == 0) shared.count = 0;
        // Sorting few keys is faster than finding the floor.
        if (count > 2 * blockDim.x && threadIdx.x < 32) read_shared_floor();
        __syncthreads();
        // If not all keys fit, as many at a time as fit beside k.
        const bool is_much = count > most;
        const unsigned step = is_much ? (most - query.k) / blockDim.x * blockDim.x : most;
        for (unsigned start = 0; start < count; start += step) {
            const unsigned end = min(count, start + step);
            const bool is_full = shared.count + step > most;
            __syncthreads();
            if (is_much && is_full) cut();
#pragma unroll 4
            for (unsigned i = start + threadIdx.x; i < end; i += blockDim.x) {
                const uint64_t key = *const_cast<const volatile uint64_t *>(left + i);
                if (key >= shared.floor) keys[atomicAdd(&shared.count, 1u)] = key;
            }
            __syncthreads();
        }
    }

    // Uses other memory for keys and bins from now on.
    __device__ void use(Spare spare) {
        keys = spare.keys;
        bins = spare.bins;
    }

    // Moves keys from the arena into shared memory before they are sorted, if they fit.
    __device__ void move_to_shared(Spare spare) {
        const unsigned count = shared.count;
        if (query.capacity == 0 || keys == spare.keys || count > spare.count) return;
        for (unsigned i = threadIdx.x; i < count; i += blockDim.x) spare.keys[i] = keys[i];
        __syncthreads();
        use(spare);
    }
};
