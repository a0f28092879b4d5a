// See topk.rs: the best k of a thread block's hits, as keys, in shared memory, or in the arena where k is large.
//
// Between two calls of `settle`, which all threads of the block make together, each thread pushes at most once. Ties are
// settled by the key itself, the greater the better.
#pragma once
#include "device/rows.cu"

// Keys in shared memory. More would be no faster: thread blocks that live on a processor at the same time matter more.
constexpr unsigned SHARED_KEYS = 512;
// Keys are cut early only if there are so many more than k.
constexpr unsigned MANY_MORE = 32;
// Bins of a selection: a byte of a key.
constexpr unsigned BINS = 256;

struct TopShared {
    uint64_t floor; // only keys above enter
    unsigned count;
    unsigned is_last;
    unsigned left; // keys that all parts have left
    // What a selection finds out.
    unsigned bin, above, kept;
    // What the part has done, as in WorkRow.
    unsigned blocks, documents, missing;
    uint64_t least;
    uint64_t keys[SHARED_KEYS];
};

// Shared memory that a block has once all its documents are looked at: for keys, a power of two of them, and for bins.
struct Spare {
    uint64_t *keys;
    unsigned count;
    unsigned *bins;
};

template <bool IS_ALONE> struct Top {
    TopShared &shared;
    uint64_t *keys;
    unsigned *bins; // where a selection counts: memory of the block that is free while it settles
    const QueryRow &query;
    QueryState &state;

    __device__ Top(TopShared &given, unsigned *given_bins, const Task<IS_ALONE> &task, const BatchArguments &arguments)
        : shared(given), keys(given.keys), bins(given_bins), query(task.query), state(arguments.states[task.number]) {
        if (query.room > 0) keys = task.room(arguments);
        if (threadIdx.x == 0) {
            shared.count = 0;
            shared.blocks = shared.documents = shared.missing = 0;
            shared.floor = static_cast<uint64_t>(task.query.seed) << 32;
        }
    }

    // Notes, by one lane, that a warp has decoded a block of so many postings.
    __device__ void note_block(unsigned postings) {
        atomicAdd(&shared.blocks, 1u);
        if (postings < BLOCK) atomicAdd(&shared.missing, BLOCK - postings);
    }

    // Takes over what all parts have found, by the first warp, before a barrier.
    __device__ void look_around() { take_over_floor(shared, query, state); }

    // The least score that can still enter.
    __device__ unsigned threshold() const { return static_cast<unsigned>(shared.floor >> 32); }

    // The least score with which this document, and any behind it, can still enter: of equal scores the smaller document
    // is better, so that it must be more than that of the floor behind the floor's document.
    __device__ unsigned least(unsigned document) const {
        const uint64_t floor = shared.floor;
        return static_cast<unsigned>(floor >> 32) + (~static_cast<unsigned>(floor) < document);
    }

    // Takes the documents of the lanes that have a hit, whose whole scores are known. All lanes of a warp come together, so
    // that what they add to the same number is added at once: where many documents enter, all parts add to few bins.
    __device__ void push(bool is_hit, unsigned document, unsigned score) {
        const unsigned lane = threadIdx.x & 31, hits = __ballot_sync(~0u, is_hit);
        const uint64_t key = static_cast<uint64_t>(score) << 32 | static_cast<uint64_t>(~document);
        const bool enters = is_hit && key > shared.floor;
        const unsigned entering = __ballot_sync(~0u, enters);
        if (lane == 0 && hits != 0) atomicAdd(&shared.documents, static_cast<unsigned>(__popc(hits)));
        if (entering == 0) return;
        unsigned place = 0;
        if (lane == 0) place = atomicAdd(&shared.count, static_cast<unsigned>(__popc(entering)));
        place = __shfl_sync(~0u, place, 0) + __popc(entering & ((1u << lane) - 1));
        if (enters) keys[place] = key;
        const unsigned bin = enters ? min((score - query.seed) >> query.shift, SCORE_BINS - 1) : NONE;
        const unsigned alike = __match_any_sync(~0u, bin);
        if (enters && lane + 1 == __ffs(alike)) {
            atomicAdd(&state.scores[bin], static_cast<unsigned>(__popc(alike)));
            atomicAdd(&state.groups[bin / 32], static_cast<unsigned>(__popc(alike)));
        }
    }

    // Keys that there is room for.
    __device__ unsigned room() const { return query.room > 0 ? query.room : SHARED_KEYS; }

    // After a barrier behind the last push: sees that there is room for a push of every thread. Ends with a barrier.
    // Twice k keys, or MANY_MORE than k, whichever is more, are cut too: documents behind the k-th then need more than its score.
    __device__ void settle() {
        const unsigned count = shared.count, many = query.k + max(query.k, MANY_MORE);
        const bool is_full = count + blockDim.x > room() || count >= many;
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
            atomicMax(&state.floor, static_cast<unsigned long long>(floor));
        }
        __syncthreads();
    }

    // Sorts, best first, and forgets what lies behind the k-th, `least`.
    __device__ void sort() {
        if (shared.count <= 2 * blockDim.x) {
            sort_few();
        } else {
            sort_many();
        }
    }

    // Up to two keys a thread: the place of a key is the number of greater ones, since no two are equal, but for lists that
    // are damaged: then there may be no k-th.
    __device__ void sort_few() {
        const unsigned count = shared.count, first = threadIdx.x, second = threadIdx.x + blockDim.x;
        const uint64_t a = first < count ? keys[first] : 0, b = second < count ? keys[second] : 0;
        unsigned place_of_a = 0, place_of_b = 0;
        if (first < count) {
#pragma unroll 4
            for (unsigned i = 0; i < count; i++) {
                const uint64_t key = keys[i];
                place_of_a += key > a;
                place_of_b += key > b;
            }
        }
        if (threadIdx.x == 0) shared.least = 0;
        __syncthreads();
        if (first < count) put(place_of_a, a);
        if (second < count) put(place_of_b, b);
        if (threadIdx.x == 0) shared.count = min(count, query.k);
        __syncthreads();
    }

    __device__ void put(unsigned place, uint64_t key) {
        if (place < query.k) keys[place] = key;
        if (place == query.k - 1) shared.least = key;
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
            shared.least = count >= query.k ? keys[query.k - 1] : 0;
        }
        __syncthreads();
    }

    // Finds the k-th key, `least`, byte by byte from the highest on, and moves it and those above to the front: radix
    // selection (Alabi et al. 2012).
    __device__ void select() {
        const unsigned count = shared.count;
        uint64_t prefix = 0;   // the bytes of the k-th key that are known
        unsigned wanted = query.k;   // its place among the keys with these bytes
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

    // A score that k documents reach, whatever parts they are in, is one that the last hit reaches. By one warp. A function
    // of its own, since it is needed in several places.
    __device__ __noinline__ static void take_over_floor(TopShared &shared, const QueryRow &query, const QueryState &state) {
        const Found group = find_of_32(state.groups, query.k);
        uint64_t reached = 0;
        if (group.place != NONE) {
            // Documents may have come to their group and not yet to their bin.
            const Found bin = find_of_32(state.scores + 32 * group.place, query.k - group.above);
            const unsigned first = 32 * group.place + (bin.place != NONE ? bin.place : 0);
            reached = static_cast<uint64_t>(query.seed + (first << query.shift)) << 32;
        }
        if (threadIdx.x > 0) return;
        const uint64_t floor = *const_cast<const volatile unsigned long long *>(&state.floor);
        const uint64_t found = reached > floor ? reached : floor;
        if (found > shared.floor) shared.floor = found;
    }

    // Among 32 counts, from the last on.
    struct Found {
        unsigned place; // of the count that a number lies in; NONE if they are less
        unsigned above; // the sum of those behind
    };

    // By the first warp, all lanes of which get the same.
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

    // By the first warp: the bin in which a place lies, counted from the highest bin on, for the lane that finds it, and
    // what lies in the bins above; NONE for the others, and for all where there is no such place.
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

    // Leaves the hits of the part; the last part of a query to come here leaves the query's. All other shared memory of
    // the block is free by now. Starts behind a barrier.
    __device__ void finish(const Task<IS_ALONE> &task, const BatchArguments &arguments, Spare spare) {
        if (shared.count > query.k) cut();
        if (threadIdx.x == 0) add_work();
        if (query.parts > 1 && !is_last_part(arguments, spare)) return;
        bring_near(spare);
        if (shared.count > max(query.k, 2 * BINS)) select();
        sort();
        leave(task.number, arguments);
    }

    // Leaves the query's hits, and what stands beside them.
    __device__ void leave(unsigned number, const BatchArguments &arguments) {
        uint64_t *answer = arguments.answers + query.answer;
        for (unsigned i = threadIdx.x; i < shared.count; i += blockDim.x) answer[i] = keys[i];
        if (threadIdx.x == 0) {
            const volatile WorkRow &work = state.work;
            arguments.answer_work[number] = WorkRow{work.blocks, work.documents, work.missing};
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            // The host waits for the count of a query alone, and reads the rest then. What all threads have written before
            // the barrier comes before the fence of one.
            if (IS_ALONE) __threadfence_system();
            *const_cast<volatile unsigned *>(arguments.answer_counts + number) = shared.count;
        }
        if (IS_ALONE) {
            __syncthreads();
            clear_state();
        }
    }

    // For the next query alone.
    __device__ void clear_state() {
        for (unsigned i = threadIdx.x; i < SCORE_BINS; i += blockDim.x) state.scores[i] = 0;
        if (threadIdx.x < SCORE_GROUPS) state.groups[threadIdx.x] = 0;
        if (threadIdx.x > 0) return;
        state.floor = 0;
        state.work = WorkRow{0, 0, 0};
        state.left = state.done = 0;
    }

    // Both counts at once, and the third where it counts: all parts come to the same address.
    __device__ void add_work() {
        const unsigned long long counts = static_cast<unsigned long long>(shared.documents) << 32 | shared.blocks;
        atomicAdd(reinterpret_cast<unsigned long long *>(&state.work), counts);
        if (shared.missing > 0) atomicAdd(&state.work.missing, static_cast<unsigned long long>(shared.missing));
    }

    // Leaves the part's keys with those of the others. Whether all other parts are done; then the query's best k are among
    // those here.
    __device__ bool is_last_part(const BatchArguments &arguments, Spare spare) {
        uint64_t *left = arguments.arena + query.keys;
        // A part with many hits is hardly the only one, and most of them are no hits of the query.
        if (shared.count > query.k / 2) {
            if (threadIdx.x < 32) look_around();
            __syncthreads();
        }
        leave_keys(left);
        __syncthreads();
        if (threadIdx.x == 0) {
            // What all threads have written before the barrier comes before the fence of one, and what the others did
            // before theirs comes before what is read behind the last. Both counts are one number.
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

    // Leaves the keys that can still be hits of the query; the floor may be one of them.
    __device__ void leave_keys(uint64_t *left) {
        // More than k are here where keys are equal, as those of damaged lists may be.
        const unsigned count = min(shared.count, query.k), lane = threadIdx.x & 31;
        for (unsigned start = threadIdx.x - lane; start < count; start += blockDim.x) {
            const uint64_t key = start + lane < count ? keys[start + lane] : 0;
            const bool stays = start + lane < count && key >= shared.floor;
            const unsigned staying = __ballot_sync(~0u, stays);
            if (staying == 0) continue;
            unsigned place = 0;
            if (lane == 0) place = atomicAdd(&state.left, static_cast<unsigned>(__popc(staying)));
            place = __shfl_sync(~0u, place, 0) + __popc(staying & ((1u << lane) - 1));
            if (stays) left[place] = key;
        }
    }

    // Takes what all parts have left, in the place of what this part has. Starts and ends behind a barrier.
    __device__ void take_over(const uint64_t *left, unsigned count, Spare spare) {
        unsigned capacity = room();
        if (spare.count >= min(count, capacity)) {
            capacity = spare.count;
            use(spare);
        }
        if (threadIdx.x == 0) shared.count = 0;
        // Few are sorted faster than the floor is found.
        if (count > 2 * blockDim.x && threadIdx.x < 32) look_around();
        __syncthreads();
        // As many at a time as there is room for beside k, unless there is room for all.
        const bool is_much = count > capacity;
        const unsigned step = is_much ? (capacity - query.k) / blockDim.x * blockDim.x : capacity;
        for (unsigned start = 0; start < count; start += step) {
            const unsigned end = min(count, start + step);
            const bool is_full = shared.count + step > capacity;
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

    // Keeps keys, and counts, in other memory from now on.
    __device__ void use(Spare spare) {
        keys = spare.keys;
        bins = spare.bins;
    }

    // Keys of the arena that are to be sorted are read and written often.
    __device__ void bring_near(Spare spare) {
        const unsigned count = shared.count;
        if (query.room == 0 || keys == spare.keys || count > spare.count) return;
        for (unsigned i = threadIdx.x; i < count; i += blockDim.x) spare.keys[i] = keys[i];
        __syncthreads();
        use(spare);
    }
};
