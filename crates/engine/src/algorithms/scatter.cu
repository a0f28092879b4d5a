// See scatter.rs for the algorithm: scatter the sparse, look up the dense. Here a thread block answers a part of a query.
//
// It passes its documents a window at a time. Accumulators are a hash table in shared memory, whose size depends on the
// postings of a window and not on its documents: sparse lists leave most documents alone, so windows can be wide, and
// clearing and scanning cost little. Where a window has no more documents than the table has slots, every document has
// its own slot; a window that does not fit is halved until it does.
//
// Who owns what: the block owns the table, the bounds of the window's chunks, the blocks to decode and the best keys
// (shared memory). A warp owns its scratch and its queue of candidates, which it keeps from window to window, so that
// lookups, which wait for memory most, are made 32 at a time. Between barriers, in this order: bounds of chunks (a
// thread a chunk); blocks to decode (a warp a list, 32 rows of its directory at once); scattering (a warp a block, atomic
// operations on the table); candidates (a warp a stretch of the table, then of the chunks).
#pragma once
#include "algorithms/topk.cu"
#include "algorithms/dense_list.cu"
#include "algorithms/sparse_list.cu"

// Slots of the table, and what an empty one holds.
constexpr unsigned SLOTS = 4096, EMPTY = ~0u;
// A document that finds no slot so far from its own does not fit.
constexpr unsigned LONGEST_PROBE = 64;
// The most chunks of 64 documents in a window.
constexpr unsigned WIDEST_CHUNKS = 1024;
// A part looks at what others have found once in so many windows.
constexpr unsigned LOOK_AROUND = 4;
// Blocks that are handed out to warps at once.
constexpr unsigned WORK = 64;
// Candidates of a warp: fewer than 32, and those of two slots a lane.
constexpr unsigned QUEUED = 96;

struct Candidate {
    unsigned document, score;
};

// Where a sparse list stands, in blocks.
struct ListSpan {
    unsigned cursor; // the first that can have a document of the window
    unsigned next;   // the next to be handed out; NONE behind the last
    unsigned after;  // the first that can have a document of the next window
};

struct ScatterShared {
    TopShared top;
    // The table: documents within the window, and their scores. Apart from each other, atomic operations find all banks.
    alignas(16) unsigned documents[SLOTS];
    unsigned scores[SLOTS];
    Scratch scratch[OR_WARPS];
    Candidate queue[OR_WARPS][QUEUED];
    unsigned bounds[WIDEST_CHUNKS];        // the most that the dense lists add in a chunk
    BlockRow work[WORK];
    float norms[256];
    unsigned dense_bound[2];               // the largest of `bounds`, of this window and of the next
    unsigned work_count, work_valid;
    unsigned is_overfull;
    // Behind the struct lie the places of the sparse lists.
};
static_assert(sizeof(ScatterShared) == 53600, "as kernels.rs has it");

template <unsigned TAG, Stream STREAM, bool IS_ALONE> struct Scatter {
    ScatterShared &shared;
    const BatchArguments &arguments;
    const Task<IS_ALONE> &part;
    const QueryRow &query;
    const SparseRow *sparse;
    const DenseRow *dense;
    ListSpan *places;
    Top<IS_ALONE> top;
    unsigned lane, warp;
    unsigned queued; // candidates of the warp
    unsigned turn;   // counts windows, which have the two bounds in turns

    __device__ Scatter(ScatterShared &given, const BatchArguments &given_arguments, const Task<IS_ALONE> &task)
        : shared(given), arguments(given_arguments), part(task), query(task.query),
          sparse(task.sparse), dense(task.dense),
          places(reinterpret_cast<ListSpan *>(&given + 1)),
          top(given.top, given.scratch[0].numbers, task, given_arguments),
          lane(threadIdx.x & 31), warp(threadIdx.x / 32), queued(0), turn(0) {}

    __device__ void run() {
        if (IS_ALONE) send_for_dense();
        clear_table();
        for (unsigned i = threadIdx.x; i < WIDEST_CHUNKS; i += OR_THREADS) shared.bounds[i] = 0;
        for (unsigned i = threadIdx.x; i < 256; i += OR_THREADS) shared.norms[i] = __ldg(arguments.norms + i);
        for (unsigned list = warp; list < query.sparse_count; list += OR_WARPS) {
            if (IS_ALONE) {
                const unsigned even = even_block(sparse[list], part.first, arguments.blocks_a_document);
                send_for_directory(sparse[list], even, lane);
            }
            const unsigned first = find_block(sparse[list], 0, part.first, arguments.blocks_a_document, lane);
            if (lane == 0) places[list].cursor = first;
        }
        if (threadIdx.x == 0) shared.dense_bound[0] = 0;
        __syncthreads();
        // A part starts with a chunk; documents before the query's first are left out.
        unsigned start = part.first, width = query.window;
        for (;;) {
            const unsigned end = part.end - start > width ? start + width : part.end;
            if (!pass(start, end)) {
                width = max(width / 2 / 64 * 64, 64u);
                continue;
            }
            if (end == part.end) break;
            start += width;
            width = query.window;
        }
        finish(lane < queued ? shared.queue[warp][lane] : Candidate{0, 0}, lane < queued);
        __syncthreads();
        // Both halves of the table, which lie side by side.
        top.finish(part, arguments, Spare{reinterpret_cast<uint64_t *>(shared.documents), SLOTS, shared.bounds});
    }

    // Sends for what bounds and lookups read of the dense lists. A query alone has no other work while it waits.
    __device__ void send_for_dense() const {
        const unsigned chunk = part.first / 64, chunks = (part.end - part.first + 63) / 64;
        for (unsigned list = 0; list < query.dense_count; list++) {
            const DenseRow &row = dense[list];
            if (row.factor != 0) send_for(row.bytes + row.chunk_bound + chunk, chunks);
            send_for(row.bytes + 16ull * row.words + 8ull * chunk, 8 * chunks);
            send_for(row.bytes + row.chunk_rank + 2 * chunk, 2 * chunks);
        }
    }

    __device__ static void send_for(const uint8_t *bytes, unsigned count) {
        for (unsigned i = 128 * threadIdx.x; i < count; i += 128 * OR_THREADS) PREFETCH(bytes + i);
    }

    __device__ void clear_table() {
        for (unsigned i = threadIdx.x; i < SLOTS; i += OR_THREADS) {
            shared.documents[i] = EMPTY;
            shared.scores[i] = 0;
        }
    }

    // Where a document of the window is looked for first. Neighbours lie apart, so that clusters do not pile up; any
    // SLOTS documents in a row have slots of their own.
    __device__ static unsigned slot_of(unsigned wanted) { return (wanted * 1265 + wanted / SLOTS * 769) % SLOTS; }

    // Looks at the documents of a window; whether it fitted.
    __device__ bool pass(unsigned start, unsigned end) {
        // The parts of a query alone start together: nobody has found anything.
        if (warp == 0 && turn % LOOK_AROUND == 0 && !(IS_ALONE && turn == 0)) top.look_around();
        if (threadIdx.x == 0) {
            shared.dense_bound[(turn + 1) % 2] = 0;
            shared.is_overfull = 0;
            shared.work_count = 0;
            shared.work_valid = WORK;
        }
        if (query.dense_count > 0) add_bounds(start, end);
        for (unsigned list = warp; list < query.sparse_count; list += OR_WARPS) {
            if (lane == 0) places[list].next = places[list].cursor;
        }
        __syncthreads();
        const unsigned threshold = top.least(start), dense_bound = shared.dense_bound[turn % 2];
        turn++;
        if (query.sum + dense_bound < threshold) {
            __syncthreads();
            return true;
        }
        const bool has_postings = scatter(start, end, dense_bound, threshold);
        const bool is_overfull = shared.is_overfull, is_hot = query.dense_count > 0 && dense_bound >= threshold;
        if (is_overfull) {
            clear_table();
        } else {
            for (unsigned list = threadIdx.x; list < query.sparse_count; list += OR_THREADS) {
                places[list].cursor = places[list].after;
            }
            if (has_postings || is_hot) collect(start, end, threshold, is_hot);
            if (is_hot) clear_table();
        }
        __syncthreads();
        return !is_overfull;
    }

    // Sums up the bounds of the dense lists in each chunk of the window, four chunks a thread.
    __device__ void add_bounds(unsigned start, unsigned end) {
        const unsigned first = start / 64, chunks = (end - start + 63) / 64;
        unsigned largest = 0;
        for (unsigned i = 4 * threadIdx.x; i < chunks; i += 4 * OR_THREADS) {
            unsigned bounds[4] = {0, 0, 0, 0};
#pragma unroll 4
            for (unsigned list = 0; list < query.dense_count; list++) {
                const DenseRow &row = dense[list];
                // Codes behind the last chunk are anything; they bound nothing that is looked at.
                const unsigned codes = row.factor == 0 ? 0 : word_from(row.bytes + row.chunk_bound + first + i);
                for (unsigned j = 0; j < 4; j++) {
                    bounds[j] += row.factor == 0 ? row.bound : (codes >> 8 * j & 255) * row.factor;
                }
            }
            for (unsigned j = 0; j < 4 && i + j < chunks; j++) {
                shared.bounds[i + j] = bounds[j];
                largest = max(largest, bounds[j]);
            }
        }
        largest = __reduce_max_sync(~0u, largest);
        if (lane == 0) atomicMax(&shared.dense_bound[turn % 2], largest);
    }

    // Scatters all blocks of the window that can bring a document in; whether there are any.
    __device__ bool scatter(unsigned start, unsigned end, unsigned dense_bound, unsigned threshold) {
        bool has_postings = false, is_more = true;
        while (is_more) {
            bool is_pending = false;
            for (unsigned list = warp; list < query.sparse_count; list += OR_WARPS) {
                const unsigned others = query.sum - sparse[list].bound + dense_bound;
                const unsigned least = threshold > others ? threshold - others : 0;
                is_pending = !hand_out(list, start, end, least) || is_pending;
            }
            is_more = __syncthreads_or(is_pending);
            const unsigned count = min(shared.work_count, shared.work_valid);
            has_postings = has_postings || count > 0;
            for (unsigned i = warp; i < count; i += OR_WARPS) scatter_block(shared.work[i], start, end);
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

    // Hands out the blocks of a list with documents of the window and weights of `least` or more; whether there was
    // room for all. The lanes read 32 rows of the directory at once, all that decoding needs of them.
    __device__ bool hand_out(unsigned list, unsigned start, unsigned end, unsigned least) {
        const SparseRow &row = sparse[list];
        unsigned block = places[list].next;
        if (block == NONE) return true;
        __syncwarp();
        for (;;) {
            const unsigned mine = block + lane;
            const bool is_there = mine < row.blocks;
            BlockRow entry{list, mine, 0, 0, 0};
            unsigned last = ~0u, bound = 0;
            if (is_there) {
                entry = block_row(row, list, mine);
                last = last_document(row, mine);
                bound = block_bound<STREAM>(row, mine);
            }
            const unsigned first = first_document(row, entry);
            const bool is_inside = is_there && last >= start && first < end;
            const unsigned entering = __ballot_sync(~0u, is_inside && bound >= least);
            const unsigned count = __popc(entering);
            unsigned place = 0;
            if (lane == 0 && count > 0) place = atomicAdd(&shared.work_count, count);
            place = __shfl_sync(~0u, place, 0);
            if (place + count > WORK) {
                // What lies behind the first that found no place is not to be read.
                if (lane == 0) {
                    atomicMin(&shared.work_valid, place);
                    places[list].next = block;
                }
                return false;
            }
            // Blocks are sent for a window before they are needed, those of the first now.
            const bool is_next = first >= end && first - end < query.window;
            if (is_there && bound >= least && (is_next || (turn == 1 && is_inside))) send_for_block(row, entry);
            if (entering >> lane & 1) shared.work[place + __popc(entering & ((1u << lane) - 1))] = entry;
            // The first block that has a document of the next window ends the search.
            const unsigned later = __ballot_sync(~0u, !is_there || last >= end);
            if (later != 0) {
                if (lane == 0) {
                    places[list].after = min(block + __ffs(later) - 1, row.blocks);
                    places[list].next = NONE;
                }
                return true;
            }
            block += 32;
            // Windows may have been passed over.
            if (__ballot_sync(~0u, last >= start) == 0) {
                block = find_block(row, block, start, arguments.blocks_a_document, lane);
            }
        }
    }

    __device__ void scatter_block(const BlockRow &entry, unsigned start, unsigned end) {
        const SparseRow &row = sparse[entry.list];
        Scratch &scratch = shared.scratch[warp];
        Streams streams = streams_of(row, entry);
        const uint4 documents = decode_documents<TAG>(row, streams, arguments, lane, scratch);
        const uint4 values = decode_values<TAG>(row, streams, arguments, lane, scratch);
        const unsigned first = max(start, query.first), mine = 4 * lane, count = streams.count;
        if (lane == 0) top.note_block(count);
        const bool x = mine < count && documents.x >= first && documents.x < end;
        const bool y = mine + 1 < count && documents.y >= first && documents.y < end;
        const bool z = mine + 2 < count && documents.z >= first && documents.z < end;
        const bool w = mine + 3 < count && documents.w >= first && documents.w < end;
        // All four are on their way before the first is used.
        const unsigned code_x = x ? code_of(documents.x) : 0, code_y = y ? code_of(documents.y) : 0;
        const unsigned code_z = z ? code_of(documents.z) : 0, code_w = w ? code_of(documents.w) : 0;
        if (x) add(documents.x - start, weigh<STREAM>(row.multiplier, values.x, shared.norms[code_x]));
        if (y) add(documents.y - start, weigh<STREAM>(row.multiplier, values.y, shared.norms[code_y]));
        if (z) add(documents.z - start, weigh<STREAM>(row.multiplier, values.z, shared.norms[code_z]));
        if (w) add(documents.w - start, weigh<STREAM>(row.multiplier, values.w, shared.norms[code_w]));
    }

    // The length code of a document, where lengths count.
    __device__ unsigned code_of(unsigned document) const {
        return STREAM == IMPACT ? 0 : __ldg(arguments.length_codes + document);
    }

    // Adds a weight to the slot of a document of the window.
    __device__ void add(unsigned wanted, unsigned weight) {
        unsigned slot = slot_of(wanted);
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
        unsigned slot = slot_of(wanted);
        for (unsigned probe = 0; probe < LONGEST_PROBE; probe++) {
            const unsigned found = shared.documents[slot];
            if (found == wanted) return true;
            if (found == EMPTY) return false;
            slot = (slot + 1) % SLOTS;
        }
        return false;
    }

    // Finds the documents of the window that can enter, and looks up those that fill a queue. All warps push together,
    // a push a thread in each round. The table is emptied meanwhile, unless chunks are hot: then it is asked once more.
    __device__ void collect(unsigned start, unsigned end, unsigned threshold, bool is_hot) {
        Candidate *queue = shared.queue[warp];
        unsigned slot = warp * 64;
        const unsigned chunks = (end - start + 63) / 64;
        unsigned chunk = is_hot ? warp * 32 : chunks;
        unsigned hot = 0;  // which of 32 chunks have bounds that alone reach the threshold
        unsigned half = 0; // of the first of these
        bool is_more = true;
        while (is_more) {
            if (hot != 0) {
                // Others may have raised the threshold since.
                const unsigned still = __ballot_sync(~0u, shared.bounds[chunk - OR_THREADS + lane] >= threshold);
                if (!(still & hot & -hot)) half = 0;
                hot &= still;
            }
            while (queued < 32 && slot < SLOTS) {
                take_from_table(queue, slot + 2 * lane, start, threshold, !is_hot);
                slot += 2 * OR_THREADS;
            }
            while (queued < 32 && (hot != 0 || chunk < chunks)) {
                if (hot == 0) {
                    const unsigned mine = chunk + lane;
                    hot = __ballot_sync(~0u, mine < chunks && shared.bounds[mine] >= threshold);
                    chunk += OR_THREADS;
                    continue;
                }
                const unsigned first = start + 64 * (chunk - OR_THREADS + __ffs(hot) - 1) + 32 * half;
                take_from_dense(queue, first + lane, start, end, threshold);
                if (half == 1) hot &= hot - 1;
                half ^= 1;
            }
            if (queued >= 32) {
                queued -= 32;
                __syncwarp();
                finish(queue[queued + lane], true);
                __syncwarp();
            }
            is_more = __syncthreads_or(queued >= 32 || slot < SLOTS || hot != 0 || chunk < chunks);
            // The parts of a query alone come here at the same time, each with what others can learn from.
            if (IS_ALONE && is_more && warp == 0) top.look_around();
            top.settle();
            threshold = top.least(start);
        }
    }

    // Puts the lane's candidate into the warp's queue.
    __device__ void enqueue(Candidate *queue, bool is_candidate, Candidate candidate) {
        const unsigned all = __ballot_sync(~0u, is_candidate);
        if (is_candidate) queue[queued + __popc(all & ((1u << lane) - 1))] = candidate;
        queued += __popc(all);
    }

    // Puts those documents of two slots that can enter into the warp's queue.
    __device__ void take_from_table(Candidate *queue, unsigned slot, unsigned start, unsigned threshold, bool empties) {
        uint2 &documents = *reinterpret_cast<uint2 *>(&shared.documents[slot]);
        uint2 &scores = *reinterpret_cast<uint2 *>(&shared.scores[slot]);
        const uint2 found = documents, score = scores;
        if (empties) {
            documents = make_uint2(EMPTY, EMPTY);
            scores = make_uint2(0, 0);
        }
        const bool a = found.x != EMPTY && score.x + shared.bounds[found.x / 64] >= threshold;
        const bool b = found.y != EMPTY && score.y + shared.bounds[found.y / 64] >= threshold;
        if (!__any_sync(~0u, a || b)) return;
        enqueue(queue, a, Candidate{start + found.x, score.x});
        enqueue(queue, b, Candidate{start + found.y, score.y});
    }

    // Documents that no sparse list has, of a chunk in which the dense lists may suffice.
    __device__ void take_from_dense(Candidate *queue, unsigned document, unsigned start, unsigned end,
                                    unsigned threshold) {
        const unsigned chunk = document / 64, bit = document % 64;
        unsigned bound = 0; // the most that the document can have
#pragma unroll 4
        for (unsigned list = 0; list < query.dense_count; list++) {
            const unsigned in_chunk = bound_in(dense[list], chunk);
            if (has_bit(word_of(dense[list], chunk), bit)) bound += in_chunk;
        }
        const bool is_inside = document >= query.first && document < end;
        const bool is_candidate = is_inside && bound >= max(threshold, 1u) && !is_in_table(document - start);
        enqueue(queue, is_candidate, Candidate{document, 0});
    }

    // Pushes the lanes' candidates that can enter. All lanes of a warp come together.
    __device__ void finish(Candidate candidate, bool is_there) {
        const bool enters = is_there && look_up(candidate);
        top.push(enters, candidate.document, candidate.score);
    }

    // Adds what the dense lists have to a candidate; whether it can enter.
    __device__ bool look_up(Candidate &candidate) {
        // It may be of a window before.
        const unsigned threshold = top.least(candidate.document);
        const unsigned chunk = candidate.document / 64, bit = candidate.document % 64;
        const unsigned code = code_of(candidate.document);
        unsigned bound = candidate.score; // the most that the document can have
#pragma unroll 4
        for (unsigned list = 0; list < query.dense_count; list++) {
            if (has_bit(word_of(dense[list], chunk), bit)) bound += bound_in(dense[list], chunk);
        }
        if (bound < threshold) return false;
        const float norm = shared.norms[code];
        for (unsigned list = 0; list < query.dense_count && bound >= threshold; list++) {
            const uint2 word = word_of(dense[list], chunk);
            if (!has_bit(word, bit)) continue;
            const unsigned weight = weigh_dense<STREAM>(dense[list], chunk, word, bit, norm);
            bound = bound - bound_in(dense[list], chunk) + weight;
            candidate.score += weight;
        }
        return bound >= threshold;
    }
};

template <unsigned TAG, Stream STREAM, bool IS_ALONE> __device__ inline void scatter(const BatchArguments &arguments) {
    SHARED(ScatterShared, shared);
    const Task<IS_ALONE> task(arguments);
    const QueryRow &query = task.query;
    if (query.after != NONE && arguments.answer_counts[query.after] >= query.k) return;
    Scatter<TAG, STREAM, IS_ALONE>(shared, arguments, task).run();
}
