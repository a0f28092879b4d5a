// See scatter.rs: scatter sparse lists, look up dense lists. Here a thread block answers a part of a query.
//
// It goes through its documents one scatter window at a time. Accumulators are buckets of a hash table in shared
// memory, sized for the postings of a window, not for its documents: sparse lists touch few documents, so windows can
// be wide, and clearing and scanning the table costs little. Where a window has no more documents than the table has
// buckets, every document has its own bucket; a window that overflows the table is halved until it fits.
//
// Ownership: the thread block owns the table, the bounds of the window's chunks, the blocks to decode and the best
// keys, all in shared memory. A warp owns its scratch and its queue of candidates. The queue survives from window to
// window, so that lookups, which are bound by memory latency, are made 32 at a time. The phases of a window, with
// barriers in between: bounds of chunks (four chunks per thread), blocks to decode (a list per warp, 32 directory
// entries at once), scattering (a block per warp, with atomic operations on the table), candidates (each warp scans its
// share of the table, then of the chunks).
#pragma once
#include "algorithms/dense_list.cu"
#include "algorithms/sparse_list.cu"
#include "algorithms/topk.cu"
#include "algorithms/weigher.cu"
#include "codec/lanes.cu"
#include "codec/packed.cu"
#include "device/part.cu"
#include "format/dense.h"
#include "kernel.h"
#include "ptx/kernels.h"
#include "weight.h"

// The document of an empty bucket.
constexpr unsigned EMPTY = ~0u;
// The table overflows when a document finds no bucket within this distance of its own.
constexpr unsigned LONGEST_PROBE = 64;
// The most chunks in a window.
constexpr unsigned WIDEST_CHUNKS = WIDEST_WINDOW / CHUNK;
// Every this many windows, a part reads the floor that all parts of the query share.
constexpr unsigned WINDOWS_PER_FLOOR = 4;
// Blocks to decode that are handed out to warps at once.
constexpr unsigned BLOCKS_AT_ONCE = 64;
// Capacity of a warp's queue: up to 31 candidates that wait, and those of two buckets per lane.
constexpr unsigned QUEUED = 96;

struct Candidate {
    unsigned document, score;
};

// The hot chunks of a warp, whose bounds alone reach the threshold. The warp tests 32 chunks of the window at a time.
struct HotChunks {
    unsigned next;  // the first chunk to be tested next
    unsigned end;   // of the chunks of the window
    unsigned found; // which of the chunks tested last are hot
    unsigned half;  // the half of the first of these that comes next

    __device__ bool are_left() const { return found != 0 || next < end; }

    // Takes half a chunk of those found; returns its first document, relative to the start of the window.
    __device__ unsigned take_half() {
        const unsigned first = CHUNK * (next - OR_THREADS + __ffs(found) - 1) + 32 * half;
        if (half == 1) found &= found - 1;
        half ^= 1;
        return first;
    }
};

// Blocks of a sparse list.
struct ListCursor {
    unsigned first; // the first that can have a document of the window
    unsigned next;  // the next to be handed out; NONE after the last
    unsigned after; // the first that can have a document of the next window
};
static_assert(sizeof(ListCursor) == SCATTER_SHARED_PER_LIST, "as kernels.rs has it");

struct ScatterShared {
    TopShared top;
    // The table: documents, counted from the start of the window, and their scores. They are separate arrays so that
    // atomic operations spread over all banks.
    alignas(16) unsigned documents[TABLE_BUCKETS];
    unsigned scores[TABLE_BUCKETS];
    Scratch scratch[OR_WARPS];
    Candidate queue[OR_WARPS][QUEUED];
    unsigned bounds[WIDEST_CHUNKS];        // the most that the dense lists add to a document of a chunk
    BlockRow blocks[BLOCKS_AT_ONCE];       // to decode
    float norms[LENGTH_CODES];
    unsigned dense_bound[2];               // the largest of `bounds`, of this window and of the next
    unsigned blocks_reserved;              // entries of `blocks`, and more where they did not fit
    unsigned blocks_valid;                 // entries from here on are reserved but not filled
    unsigned is_overfull;
    // The cursors of the sparse lists follow the struct.
};
static_assert(sizeof(ScatterShared) == SCATTER_SHARED, "as kernels.rs has it");

template <unsigned TAG, Column COLUMN, bool IS_SINGLE> struct Scatter {
    ScatterShared &shared;
    const BatchArguments &arguments;
    const Part<IS_SINGLE> &part;
    const QueryRow &query;
    const SparseRow *sparse;
    const DenseRow *dense;
    ListCursor *cursors;
    Top<IS_SINGLE> top;
    unsigned lane, warp;
    unsigned queued; // candidates of the warp
    unsigned turn;   // counts windows, which use the two entries of `dense_bound` in turns

    __device__ Scatter(ScatterShared &given, const BatchArguments &given_arguments, const Part<IS_SINGLE> &own)
        : shared(given), arguments(given_arguments), part(own), query(own.query),
          sparse(own.sparse), dense(own.dense),
          cursors(reinterpret_cast<ListCursor *>(&given + 1)),
          top(given.top, given.scratch[0].numbers, own, given_arguments),
          lane(threadIdx.x & 31), warp(threadIdx.x / 32), queued(0), turn(0) {}

    __device__ void run() {
        if (IS_SINGLE) prefetch_dense();
        clear_table();
        for (unsigned i = threadIdx.x; i < WIDEST_CHUNKS; i += OR_THREADS) shared.bounds[i] = 0;
        for (unsigned i = threadIdx.x; i < LENGTH_CODES; i += OR_THREADS) shared.norms[i] = __ldg(arguments.norms + i);
        for (unsigned list = warp; list < query.sparse_count; list += OR_WARPS) {
            if (IS_SINGLE) {
                const unsigned even = even_block(sparse[list], part.first, arguments.inverse_documents);
                prefetch_directory(sparse[list], even, lane);
            }
            const unsigned first = find_block(sparse[list], 0, part.first, arguments.inverse_documents, lane);
            if (lane == 0) cursors[list].first = first;
        }
        if (threadIdx.x == 0) shared.dense_bound[0] = 0;
        __syncthreads();
        // A part starts at a multiple of CHUNK; documents before the query's first are left out.
        unsigned start = part.first, width = query.window;
        for (;;) {
            const unsigned end = part.end - start > width ? start + width : part.end;
            if (!pass(start, end)) {
                width = max(width / 2 / CHUNK * CHUNK, CHUNK);
                continue;
            }
            if (end == part.end) break;
            start += width;
            width = query.window;
        }
        finish(lane < queued ? shared.queue[warp][lane] : Candidate{0, 0}, lane < queued);
        __syncthreads();
        // Both arrays of the table, which are adjacent.
        uint64_t *spare = reinterpret_cast<uint64_t *>(shared.documents);
        top.finish(part, arguments, Spare{spare, TABLE_BUCKETS, shared.bounds});
    }

    // Prefetches bounds, words and ranks of the dense lists: nothing else hides the latency of a single query.
    __device__ void prefetch_dense() const {
        const unsigned chunk = part.first / CHUNK, chunks = (part.end - part.first + CHUNK - 1) / CHUNK;
        for (unsigned list = 0; list < query.dense_count; list++) {
            const DenseRow &row = dense[list];
            if (!row.is_prefetched) continue;
            if (row.factor != 0) prefetch(row.chunk_bound + chunk, chunks);
            prefetch(reinterpret_cast<const uint8_t *>(row.words + chunk), 8 * chunks);
            prefetch(reinterpret_cast<const uint8_t *>(row.chunk_rank + chunk), 2 * chunks);
        }
    }

    __device__ static void prefetch(const uint8_t *bytes, unsigned count) {
        for (unsigned i = 128 * threadIdx.x; i < count; i += 128 * OR_THREADS) PREFETCH(bytes + i);
    }

    __device__ void clear_table() {
        for (unsigned i = threadIdx.x; i < TABLE_BUCKETS; i += OR_THREADS) {
            shared.documents[i] = EMPTY;
            shared.scores[i] = 0;
        }
    }

    // The bucket where a search for a document of the window starts. Neighbours get distant buckets, so that probes do
    // not cluster; any TABLE_BUCKETS consecutive documents get buckets of their own.
    __device__ static unsigned bucket_of(unsigned wanted) {
        return (wanted * 1265 + wanted / TABLE_BUCKETS * 769) % TABLE_BUCKETS;
    }

    // The least score, without the static rank, with which this document and any after it can still enter; at least 1,
    // because a chunk whose bound is 0 has no posting, whatever the rank adds.
    __device__ unsigned least_for(unsigned document) const {
        return max(top.threshold_for(document), query.static_bound + 1) - query.static_bound;
    }

    // Processes a window; returns whether it fitted into the table.
    __device__ bool pass(unsigned start, unsigned end) {
        // The parts of a single query start together, when there is no floor yet.
        if (warp == 0 && turn % WINDOWS_PER_FLOOR == 0 && !(IS_SINGLE && turn == 0)) top.read_shared_floor();
        if (threadIdx.x == 0) {
            shared.dense_bound[(turn + 1) % 2] = 0;
            shared.is_overfull = 0;
            empty_blocks();
        }
        if (query.dense_count > 0) add_bounds(start, end);
        for (unsigned list = warp; list < query.sparse_count; list += OR_WARPS) {
            if (lane == 0) cursors[list].next = cursors[list].first;
        }
        __syncthreads();
        const unsigned threshold = least_for(start), dense_bound = shared.dense_bound[turn++ % 2];
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
                cursors[list].first = cursors[list].after;
            }
            if (has_postings || is_hot) collect(start, end, threshold, is_hot);
            if (is_hot) clear_table();
        }
        __syncthreads();
        return !is_overfull;
    }

    // Sums up the bounds of the dense lists in each chunk of the window, four chunks a thread.
    __device__ void add_bounds(unsigned start, unsigned end) {
        const unsigned first = start / CHUNK, chunks = (end - start + CHUNK - 1) / CHUNK;
        unsigned largest = 0;
        for (unsigned i = 4 * threadIdx.x; i < chunks; i += 4 * OR_THREADS) {
            unsigned bounds[4] = {0, 0, 0, 0};
#pragma unroll 4
            for (unsigned list = 0; list < query.dense_count; list++) {
                const DenseRow &row = dense[list];
                // Codes after the last chunk are undefined, and so are their bounds, which nobody reads.
                const unsigned codes = row.factor == 0 ? 0 : word_from(row.chunk_bound + first + i);
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

    // Scatters all blocks of the window that can contribute to a hit; returns whether there are any.
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
            const unsigned count = min(shared.blocks_reserved, shared.blocks_valid);
            has_postings = has_postings || count > 0;
            for (unsigned i = warp; i < count; i += OR_WARPS) scatter_block(shared.blocks[i], start, end);
            __syncthreads();
            if (is_more) {
                if (threadIdx.x == 0) empty_blocks();
                __syncthreads();
            }
        }
        return has_postings;
    }

    // Makes place for other blocks to decode; one thread calls it.
    __device__ void empty_blocks() {
        shared.blocks_reserved = 0;
        shared.blocks_valid = BLOCKS_AT_ONCE;
    }

    // The first of `count` entries for blocks to decode; NONE if they do not fit. All lanes of a warp must call it.
    __device__ unsigned reserve_blocks(unsigned count) {
        unsigned first = 0;
        if (lane == 0 && count > 0) first = atomicAdd(&shared.blocks_reserved, count);
        first = __shfl_sync(~0u, first, 0);
        if (first + count <= BLOCKS_AT_ONCE) return first;
        if (lane == 0) atomicMin(&shared.blocks_valid, first);
        return NONE;
    }

    // Hands out the blocks of a list with documents of the window and weights of at least `least`; returns whether all
    // of them fitted. The lanes read 32 directory entries at once, with all that decoding needs.
    __device__ bool hand_out(unsigned list, unsigned start, unsigned end, unsigned least) {
        const SparseRow &row = sparse[list];
        unsigned block = cursors[list].next;
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
                bound = block_bound<COLUMN>(row, mine);
            }
            const unsigned first = first_document(row, entry);
            const bool is_inside = is_there && last >= start && first < end;
            const unsigned entering = __ballot_sync(~0u, is_inside && bound >= least);
            const unsigned position = reserve_blocks(__popc(entering));
            if (position == NONE) {
                if (lane == 0) cursors[list].next = block;
                return false;
            }
            // Prefetch blocks one window ahead; those of the first window, now.
            const bool is_next = first >= end && first - end < query.window;
            if (is_there && bound >= least && (is_next || (turn == 1 && is_inside))) prefetch_block(row, entry);
            if (entering >> lane & 1) shared.blocks[position + __popc(entering & ((1u << lane) - 1))] = entry;
            // The first block that has a document of the next window ends the search.
            const unsigned later = __ballot_sync(~0u, !is_there || last >= end);
            if (later != 0) {
                if (lane == 0) {
                    cursors[list].after = min(block + __ffs(later) - 1, row.blocks);
                    cursors[list].next = NONE;
                }
                return true;
            }
            block += 32;
            // Windows may have been skipped.
            if (__ballot_sync(~0u, last >= start) == 0) {
                block = find_block(row, block, start, arguments.inverse_documents, lane);
            }
        }
    }

    __device__ void scatter_block(const BlockRow &entry, unsigned start, unsigned end) {
        const SparseRow &row = sparse[entry.list];
        Scratch &scratch = shared.scratch[warp];
        const unsigned first = max(start, query.first), mine = 4 * lane, count = postings_in_block(row, entry.block);
        uint4 documents, values;
        decode_block<TAG>(row, entry, arguments.codecs, lane, scratch, documents, values);
        if (lane == 0) top.note_block(count);
        const bool x = mine < count && documents.x >= first && documents.x < end;
        const bool y = mine + 1 < count && documents.y >= first && documents.y < end;
        const bool z = mine + 2 < count && documents.z >= first && documents.z < end;
        const bool w = mine + 3 < count && documents.w >= first && documents.w < end;
        // All four loads are issued before the first is used.
        const unsigned code_x = x ? code_of(documents.x) : 0, code_y = y ? code_of(documents.y) : 0;
        const unsigned code_z = z ? code_of(documents.z) : 0, code_w = w ? code_of(documents.w) : 0;
        if (x) add(documents.x - start, weigh<COLUMN>(row.multiplier, values.x, shared.norms[code_x]));
        if (y) add(documents.y - start, weigh<COLUMN>(row.multiplier, values.y, shared.norms[code_y]));
        if (z) add(documents.z - start, weigh<COLUMN>(row.multiplier, values.z, shared.norms[code_z]));
        if (w) add(documents.w - start, weigh<COLUMN>(row.multiplier, values.w, shared.norms[code_w]));
    }

    // The length code of a document, where the score depends on lengths.
    __device__ unsigned code_of(unsigned document) const {
        return COLUMN == IMPACT ? 0 : __ldg(arguments.length_codes + document);
    }

    // Adds a weight to the bucket of a document of the window.
    __device__ void add(unsigned wanted, unsigned weight) {
        unsigned bucket = bucket_of(wanted);
        for (unsigned probe = 0; probe < LONGEST_PROBE; probe++) {
            const unsigned found = atomicCAS(&shared.documents[bucket], EMPTY, wanted);
            if (found == EMPTY || found == wanted) {
                atomicAdd(&shared.scores[bucket], weight);
                return;
            }
            bucket = (bucket + 1) % TABLE_BUCKETS;
        }
        shared.is_overfull = 1;
    }

    // Whether a document of the window has a bucket.
    __device__ bool is_in_table(unsigned wanted) const {
        unsigned bucket = bucket_of(wanted);
        for (unsigned probe = 0; probe < LONGEST_PROBE; probe++) {
            const unsigned found = shared.documents[bucket];
            if (found == wanted) return true;
            if (found == EMPTY) return false;
            bucket = (bucket + 1) % TABLE_BUCKETS;
        }
        return false;
    }

    // Finds the documents of the window that can enter, and looks them up 32 at a time. All warps push together, at
    // most one push per thread and round. The table is emptied meanwhile, unless there are hot chunks: these still
    // search it.
    __device__ void collect(unsigned start, unsigned end, unsigned threshold, bool is_hot) {
        Candidate *queue = shared.queue[warp];
        unsigned bucket = warp * 64;
        const unsigned chunks = (end - start + CHUNK - 1) / CHUNK;
        HotChunks hot{is_hot ? warp * 32 : chunks, chunks, 0, 0};
        bool is_more = true;
        while (is_more) {
            test_again(hot, threshold);
            while (queued < 32 && bucket < TABLE_BUCKETS) {
                take_from_table(queue, bucket + 2 * lane, start, threshold, !is_hot);
                bucket += 2 * OR_THREADS;
            }
            while (queued < 32 && hot.are_left()) {
                if (hot.found == 0) {
                    test_next(hot, threshold);
                    continue;
                }
                take_from_dense(queue, start + hot.take_half() + lane, start, end, threshold);
            }
            if (queued >= 32) {
                queued -= 32;
                __syncwarp();
                finish(queue[queued + lane], true);
                __syncwarp();
            }
            is_more = __syncthreads_or(queued >= 32 || bucket < TABLE_BUCKETS || hot.are_left());
            // The parts of a single query get here at the same time, so each gains from the others' hits.
            if (IS_SINGLE && is_more && warp == 0) top.read_shared_floor();
            top.make_space();
            threshold = least_for(start);
        }
    }

    // Finds the hot ones among the warp's next 32 chunks.
    __device__ void test_next(HotChunks &hot, unsigned threshold) const {
        const unsigned mine = hot.next + lane;
        hot.found = __ballot_sync(~0u, mine < hot.end && shared.bounds[mine] >= threshold);
        hot.next += OR_THREADS;
    }

    // Drops chunks that are not hot any more: other warps may have raised the threshold.
    __device__ void test_again(HotChunks &hot, unsigned threshold) const {
        if (hot.found == 0) return;
        const unsigned still = __ballot_sync(~0u, shared.bounds[hot.next - OR_THREADS + lane] >= threshold);
        if (!(still & hot.found & -hot.found)) hot.half = 0;
        hot.found &= still;
    }

    // Puts the lane's candidate into the warp's queue.
    __device__ void enqueue(Candidate *queue, bool is_candidate, Candidate candidate) {
        const unsigned all = __ballot_sync(~0u, is_candidate);
        if (is_candidate) queue[queued + __popc(all & ((1u << lane) - 1))] = candidate;
        queued += __popc(all);
    }

    // Puts the documents of two buckets that can enter into the warp's queue.
    __device__ void take_from_table(Candidate *queue, unsigned bucket, unsigned start, unsigned threshold,
                                    bool empties) {
        uint2 &documents = *reinterpret_cast<uint2 *>(&shared.documents[bucket]);
        uint2 &scores = *reinterpret_cast<uint2 *>(&shared.scores[bucket]);
        const uint2 found = documents, score = scores;
        if (empties) {
            documents = make_uint2(EMPTY, EMPTY);
            scores = make_uint2(0, 0);
        }
        const bool a = found.x != EMPTY && score.x + shared.bounds[found.x / CHUNK] >= threshold;
        const bool b = found.y != EMPTY && score.y + shared.bounds[found.y / CHUNK] >= threshold;
        if (!__any_sync(~0u, a || b)) return;
        enqueue(queue, a && part.passes(start + found.x), Candidate{start + found.x, score.x});
        enqueue(queue, b && part.passes(start + found.y), Candidate{start + found.y, score.y});
    }

    // Queues documents that no sparse list has, of a chunk in which dense lists alone can reach the threshold.
    __device__ void take_from_dense(Candidate *queue, unsigned document, unsigned start, unsigned end,
                                    unsigned threshold) {
        const unsigned chunk = document / CHUNK, bit = document % CHUNK;
        const bool is_inside = document >= query.first && document < end && part.passes(document);
        if (!__any_sync(~0u, is_inside)) return;
        unsigned bound = 0; // the most that the document can have
#pragma unroll 4
        for (unsigned list = 0; list < query.dense_count; list++) {
            const unsigned in_chunk = bound_in(dense[list], chunk);
            if (has_bit(word_of(dense[list], chunk), bit)) bound += in_chunk;
        }
        enqueue(queue, is_inside && bound >= threshold && !is_in_table(document - start), Candidate{document, 0});
    }

    // Pushes the lanes' candidates that can enter. All lanes of a warp must call it.
    __device__ void finish(Candidate candidate, bool is_there) {
        const bool enters = is_there && look_up(candidate);
        top.push(enters, candidate.document, candidate.score);
    }

    // Adds the part of the static rank and the weights of the dense lists to a candidate; returns whether it can enter.
    __device__ bool look_up(Candidate &candidate) {
        // The candidate may come from an earlier window.
        const unsigned threshold = top.threshold_for(candidate.document);
        const unsigned chunk = candidate.document / CHUNK, bit = candidate.document % CHUNK;
        const unsigned code = code_of(candidate.document);
        candidate.score += part.static_part(arguments, candidate.document);
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
            const unsigned weight = weigh_dense<COLUMN>(dense[list], chunk, word, bit, norm);
            bound = bound - bound_in(dense[list], chunk) + weight;
            candidate.score += weight;
        }
        return bound >= threshold;
    }
};

template <unsigned TAG, Column COLUMN, bool IS_SINGLE> __device__ inline void scatter(const BatchArguments &arguments) {
    SHARED(ScatterShared, shared);
    const Part<IS_SINGLE> part(arguments);
    const QueryRow &query = part.query;
    if (query.after != NONE && arguments.answer_counts[query.after] >= query.k) return;
    Scatter<TAG, COLUMN, IS_SINGLE>(shared, arguments, part).run();
}
