// See scatter.rs for the algorithm: scatter the sparse, look up the dense. Here a thread block answers a part of a query.
//
// It passes its documents a window at a time. Accumulators are a hash table in shared memory, whose size depends on the
// postings of a window and not on its documents: sparse lists leave most documents alone, so windows can be wide, and
// clearing and scanning cost little. Where a window has no more documents than the table has slots, every document has
// its own slot; a window that does not fit is halved until it does.
//
// Who owns what: the block owns the table, the bounds of the window's chunks and the best keys (shared memory). A warp
// owns its scratch, which is its queue of candidates later. Between barriers, in this order: bounds of chunks (a thread
// a chunk); blocks to decode (a warp a list); scattering (a warp a block, atomic operations on the table); candidates
// (a warp a stretch of the table, then of the chunks), which all warps push in rounds.
#pragma once
#include "../topk.cu"
#include "dense_list.cu"
#include "sparse_list.cu"

constexpr unsigned SCATTER_THREADS = 256, SCATTER_WARPS = SCATTER_THREADS / 32;
// Slots of the table, and what an empty one holds.
constexpr unsigned SLOTS = 4096, EMPTY = ~0u;
// A document that finds no slot so far from its own does not fit.
constexpr unsigned LONGEST_PROBE = 64;
// The most documents of a window, and chunks of 64 documents in it.
constexpr unsigned WIDEST_WINDOW = 65536, WIDEST_CHUNKS = WIDEST_WINDOW / 64;
// Blocks that are handed out to warps at once.
constexpr unsigned WORK = 128;

struct Candidate {
    unsigned document, score;
};

struct ScatterShared {
    TopShared top;
    alignas(16) unsigned documents[SLOTS]; // within the window
    alignas(16) unsigned scores[SLOTS];
    alignas(16) union {
        Scratch scratch;
        Candidate queue[64];
    } of_warp[SCATTER_WARPS];
    unsigned bounds[WIDEST_CHUNKS];        // the most that the dense lists add in a chunk
    uint2 work[WORK];                      // list and block
    float norms[256];
    unsigned dense_bound;                  // the largest of `bounds`
    unsigned work_count, work_valid;
    unsigned is_overfull;
    // Behind the struct: for each sparse list the block that its next window starts with, the next to be handed out,
    // and the first behind the window.
};
static_assert(sizeof(Scratch) == sizeof(Candidate[64]), "one room for both");
static_assert(sizeof(ScatterShared) == 51232, "as kernels.rs has it");

template <unsigned TAG, Stream STREAM> struct Scatter {
    ScatterShared &shared;
    const BatchArguments &arguments;
    const QueryRow &query;
    const PartRow &part;
    const SparseRow *sparse;
    const DenseRow *dense;
    unsigned *cursor, *next, *stop;
    Top top;
    unsigned lane, warp;

    __device__ Scatter(ScatterShared &given, const BatchArguments &given_arguments, const QueryRow &given_query,
                       const PartRow &given_part)
        : shared(given), arguments(given_arguments), query(given_query), part(given_part),
          sparse(given_arguments.sparse + given_query.sparse), dense(given_arguments.dense + given_query.dense),
          cursor(reinterpret_cast<unsigned *>(&given + 1)), next(cursor + given_query.sparse_count),
          stop(next + given_query.sparse_count), top(given.top, given_query, given_part, given_arguments),
          lane(threadIdx.x & 31), warp(threadIdx.x / 32) {}

    __device__ void run() {
        clear_table();
        for (unsigned i = threadIdx.x; i < 256; i += SCATTER_THREADS) shared.norms[i] = __ldg(arguments.norms + i);
        for (unsigned list = warp; list < query.sparse_count; list += SCATTER_WARPS) {
            const unsigned first = find_block(sparse[list], 0, sparse[list].blocks, part.first, lane);
            if (lane == 0) cursor[list] = first;
        }
        __syncthreads();
        // Windows start with a chunk; documents before the part's first are left out.
        unsigned start = part.first / 64 * 64, width = query.window;
        while (start < part.end) {
            const unsigned end = part.end - start > width ? start + width : part.end;
            if (!pass(start, end)) {
                width = max(width / 2 / 64 * 64, 64u);
                continue;
            }
            if (end == part.end) break;
            start += width;
            width = query.window;
        }
        top.finish(query, part, arguments);
    }

    __device__ void clear_table() {
        for (unsigned i = threadIdx.x; i < SLOTS / 4; i += SCATTER_THREADS) {
            reinterpret_cast<uint4 *>(shared.documents)[i] = make_uint4(EMPTY, EMPTY, EMPTY, EMPTY);
            reinterpret_cast<uint4 *>(shared.scores)[i] = make_uint4(0, 0, 0, 0);
        }
    }

    // Looks at the documents of a window; whether it fitted. Starts and ends behind a barrier.
    __device__ bool pass(unsigned start, unsigned end) {
        if (threadIdx.x == 0) {
            top.look_around();
            shared.dense_bound = 0;
            shared.is_overfull = 0;
            shared.work_count = 0;
            shared.work_valid = WORK;
        }
        __syncthreads();
        const unsigned threshold = top.threshold();
        add_bounds(start, end);
        for (unsigned list = warp; list < query.sparse_count; list += SCATTER_WARPS) find_blocks(list, start, end);
        __syncthreads();
        const unsigned dense_bound = shared.dense_bound;
        bool has_postings = false;
        if (query.sum + dense_bound >= threshold) has_postings = scatter(start, end, dense_bound, threshold);
        const bool fits = !shared.is_overfull;
        if (fits) {
            for (unsigned list = threadIdx.x; list < query.sparse_count; list += SCATTER_THREADS) {
                // The window's last block may reach into the next window.
                cursor[list] = stop[list] > cursor[list] ? stop[list] - 1 : cursor[list];
            }
            if (has_postings || (dense_bound >= threshold && query.dense_count > 0)) collect(start, end, threshold);
        }
        __syncthreads();
        if (has_postings) clear_table();
        return fits;
    }

    // Sums up the bounds of the dense lists in each chunk of the window.
    __device__ void add_bounds(unsigned start, unsigned end) {
        const unsigned first = start / 64, chunks = (end - start + 63) / 64;
        unsigned largest = 0;
        for (unsigned i = threadIdx.x; i < chunks; i += SCATTER_THREADS) {
            unsigned bound = 0;
            for (unsigned list = 0; list < query.dense_count; list++) bound += bound_in(dense[list], first + i);
            shared.bounds[i] = bound;
            largest = max(largest, bound);
        }
        largest = __reduce_max_sync(~0u, largest);
        if (lane == 0 && largest > 0) atomicMax(&shared.dense_bound, largest);
    }

    // Finds the blocks of a list that can have a document of the window.
    __device__ void find_blocks(unsigned list, unsigned start, unsigned end) {
        const SparseRow &row = sparse[list];
        const unsigned first = find_block(row, cursor[list], row.blocks, start, lane);
        const unsigned last = find_block(row, first, row.blocks, end - 1, lane);
        __syncwarp();
        if (lane == 0) {
            next[list] = first;
            stop[list] = min(last + 1, row.blocks);
        }
    }

    // Scatters all blocks of the window that can bring a document in; whether there are any.
    __device__ bool scatter(unsigned start, unsigned end, unsigned dense_bound, unsigned threshold) {
        bool has_postings = false, is_more = true;
        while (is_more) {
            bool is_pending = false;
            for (unsigned list = warp; list < query.sparse_count; list += SCATTER_WARPS) {
                is_pending = !hand_out(list, dense_bound, threshold) || is_pending;
            }
            is_more = __syncthreads_or(is_pending);
            const unsigned count = min(shared.work_count, shared.work_valid);
            has_postings = has_postings || count > 0;
            for (unsigned i = warp; i < count; i += SCATTER_WARPS) scatter_block(shared.work[i], start, end);
            __syncthreads();
            if (is_more) {
                if (threadIdx.x == 0) {
                    shared.work_count = 0;
                    shared.work_valid = WORK;
                }
                __syncthreads();
            }
        }
        return has_postings;
    }

    // Hands out blocks of a list whose bound, with all that the others can add, reaches the threshold; whether that
    // were all of the window.
    __device__ bool hand_out(unsigned list, unsigned dense_bound, unsigned threshold) {
        const SparseRow &row = sparse[list];
        const unsigned others = query.sum - row.bound + dense_bound;
        unsigned block = next[list];
        const unsigned end = stop[list];
        __syncwarp();
        while (block < end) {
            const unsigned mine = block + lane;
            const bool can_enter = mine < end && block_bound<STREAM>(row, mine) + others >= threshold;
            const unsigned entering = __ballot_sync(~0u, can_enter), count = __popc(entering);
            unsigned place = 0;
            if (lane == 0 && count > 0) place = atomicAdd(&shared.work_count, count);
            place = __shfl_sync(~0u, place, 0);
            if (place + count > WORK) {
                // What lies behind the first that found no place is not to be read.
                if (lane == 0) {
                    atomicMin(&shared.work_valid, place);
                    next[list] = block;
                }
                return false;
            }
            if (can_enter) shared.work[place + __popc(entering & ((1u << lane) - 1))] = make_uint2(list, mine);
            block += 32;
        }
        if (lane == 0) next[list] = end;
        return true;
    }

    __device__ void scatter_block(uint2 work, unsigned start, unsigned end) {
        const SparseRow &row = sparse[work.x];
        Scratch &scratch = shared.of_warp[warp].scratch;
        Streams streams = streams_of(row, work.y);
        __syncwarp();
        const uint4 documents = decode_documents<TAG>(row, streams, arguments, lane, scratch);
        const uint4 values = decode_values<TAG>(row, streams, arguments, lane, scratch);
        const unsigned mine = 4 * lane;
        const unsigned count = streams.count > mine ? streams.count - mine : 0;
        const unsigned first = max(start, part.first);
        if (count > 0) add(row, documents.x, values.x, first, start, end);
        if (count > 1) add(row, documents.y, values.y, first, start, end);
        if (count > 2) add(row, documents.z, values.z, first, start, end);
        if (count > 3) add(row, documents.w, values.w, first, start, end);
    }

    __device__ float norm_of(unsigned document) const {
        return STREAM == IMPACT ? 0.0f : shared.norms[__ldg(arguments.length_codes + document)];
    }

    // Adds the weight of a posting, if its document lies in the window, to the document's slot.
    __device__ void add(const SparseRow &row, unsigned document, unsigned value, unsigned first, unsigned start,
                        unsigned end) {
        if (document < first || document >= end) return;
        const unsigned weight = weigh<STREAM>(row.multiplier, value, norm_of(document));
        const unsigned wanted = document - start;
        unsigned slot = wanted % SLOTS;
        for (unsigned probe = 0; probe < LONGEST_PROBE; probe++) {
            const unsigned found = atomicCAS(&shared.documents[slot], EMPTY, wanted);
            if (found == EMPTY || found == wanted) {
                atomicAdd(&shared.scores[slot], weight);
                return;
            }
            slot = (slot + 1) % SLOTS;
        }
        shared.is_overfull = 1;
    }

    // Whether a document of the window has a slot.
    __device__ bool is_in_table(unsigned wanted) const {
        unsigned slot = wanted % SLOTS;
        for (unsigned probe = 0; probe < LONGEST_PROBE; probe++) {
            const unsigned found = shared.documents[slot];
            if (found == wanted) return true;
            if (found == EMPTY) return false;
            slot = (slot + 1) % SLOTS;
        }
        return false;
    }

    // Pushes the documents of the window that can enter. Rounds of a push a thread, all warps together.
    __device__ void collect(unsigned start, unsigned end, unsigned threshold) {
        Candidate *queue = shared.of_warp[warp].queue;
        unsigned queued = 0;
        unsigned slot = warp * 32;
        const unsigned chunks = (end - start + 63) / 64;
        unsigned chunk = shared.dense_bound >= threshold ? warp * 32 : chunks;
        unsigned hot = 0; // which of 32 chunks have bounds that alone reach the threshold
        unsigned half = 0; // of the first of these
        bool is_more = true;
        while (is_more) {
            __syncwarp();
            while (queued < 32 && slot < SLOTS) {
                queued = take_from_table(queue, queued, slot + lane, start, threshold);
                slot += SCATTER_THREADS;
            }
            while (queued < 32 && (hot != 0 || chunk < chunks)) {
                if (hot == 0) {
                    const unsigned mine = chunk + lane;
                    hot = __ballot_sync(~0u, mine < chunks && shared.bounds[mine] >= threshold);
                    chunk += SCATTER_THREADS;
                    continue;
                }
                const unsigned first = start + 64 * (chunk - SCATTER_THREADS + __ffs(hot) - 1) + 32 * half;
                queued = take_from_dense(queue, queued, first + lane, start, end, threshold);
                if (half == 1) hot &= hot - 1;
                half ^= 1;
            }
            const unsigned taken = min(queued, 32u);
            queued -= taken;
            __syncwarp();
            if (lane < taken) finish(queue[queued + lane], threshold);
            is_more = __syncthreads_or(queued > 0 || slot < SLOTS || hot != 0 || chunk < chunks);
            top.settle();
        }
    }

    // Puts the lane's candidate into the warp's queue; the new length of the queue.
    __device__ unsigned enqueue(Candidate *queue, unsigned queued, bool is_candidate, Candidate candidate) {
        const unsigned all = __ballot_sync(~0u, is_candidate);
        if (is_candidate) queue[queued + __popc(all & ((1u << lane) - 1))] = candidate;
        return queued + __popc(all);
    }

    __device__ unsigned take_from_table(Candidate *queue, unsigned queued, unsigned slot, unsigned start,
                                        unsigned threshold) {
        const unsigned found = shared.documents[slot], score = shared.scores[slot];
        const bool is_candidate = found != EMPTY && score + shared.bounds[found / 64] >= threshold;
        return enqueue(queue, queued, is_candidate, Candidate{start + found, score});
    }

    // Documents that no sparse list has, of a chunk in which the dense lists may suffice.
    __device__ unsigned take_from_dense(Candidate *queue, unsigned queued, unsigned document, unsigned start,
                                        unsigned end, unsigned threshold) {
        const unsigned chunk = document / 64, bit = document % 64;
        unsigned bound = 0; // the most that the document can have
        for (unsigned list = 0; list < query.dense_count; list++) {
            if (has_bit(word_of(dense[list], chunk), bit)) bound += bound_in(dense[list], chunk);
        }
        const bool is_inside = document >= part.first && document < end;
        const bool is_candidate = is_inside && bound >= max(threshold, 1u) && !is_in_table(document - start);
        return enqueue(queue, queued, is_candidate, Candidate{document, 0});
    }

    // Looks a candidate up in the dense lists and pushes it if it can enter.
    __device__ void finish(Candidate candidate, unsigned threshold) {
        const unsigned chunk = candidate.document / 64, bit = candidate.document % 64;
        unsigned bound = candidate.score; // the most that the document can have
        for (unsigned list = 0; list < query.dense_count; list++) {
            if (has_bit(word_of(dense[list], chunk), bit)) bound += bound_in(dense[list], chunk);
        }
        if (bound < threshold) return;
        const float norm = norm_of(candidate.document);
        unsigned score = candidate.score;
        for (unsigned list = 0; list < query.dense_count && bound >= threshold; list++) {
            const uint2 word = word_of(dense[list], chunk);
            if (!has_bit(word, bit)) continue;
            const unsigned weight = weigh_dense<STREAM>(dense[list], chunk, word, bit, norm);
            bound = bound - bound_in(dense[list], chunk) + weight;
            score += weight;
        }
        if (bound >= threshold) top.push(candidate.document, score);
    }
};

template <unsigned TAG, Stream STREAM> __device__ inline void scatter(const BatchArguments &arguments) {
    SHARED(ScatterShared, shared);
    const PartRow &part = arguments.parts[blockIdx.x];
    const QueryRow &query = arguments.queries[part.query];
    if (query.after != NONE && arguments.answer_counts[query.after] >= query.k) return;
    Scatter<TAG, STREAM>(shared, arguments, query, part).run();
}

KERNEL(scatter_bitpack_frequency, BatchArguments, arguments) { scatter<BITPACK, FREQUENCY>(arguments); }
KERNEL(scatter_bitpack_impact, BatchArguments, arguments) { scatter<BITPACK, IMPACT>(arguments); }
KERNEL(scatter_any_frequency, BatchArguments, arguments) { scatter<ANY, FREQUENCY>(arguments); }
KERNEL(scatter_any_impact, BatchArguments, arguments) { scatter<ANY, IMPACT>(arguments); }
