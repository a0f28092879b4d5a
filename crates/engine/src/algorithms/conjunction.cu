// See conjunction.rs for the algorithm: the shortest list drives. Here a thread block answers a part of a query: blocks
// of the shortest list or, where all lists are dense, a range of documents.
//
// A warp takes a block of the shortest list, four documents per lane. Where there are more warps than blocks, several
// warps share a block: each decodes it and continues with the documents of some lanes, its slice, because every
// document may cost a block of another list. The filter and dense lists come first, by bit tests. Of another sparse list, only blocks
// that can hold one of the remaining documents are decoded, into the warp's scratch, and searched there. Documents that
// are in all lists wait in a queue of the warp until there are 32, one per lane; then the weights of dense lists are
// looked up, which is bound by memory latency. Documents that can enter wait in a second queue; all warps push
// together, at most one push per thread and round.
#pragma once
#include "algorithms/dense_list.cu"
#include "algorithms/sparse_list.cu"
#include "algorithms/topk.cu"
#include "algorithms/weigher.cu"
#include "codec/constants.h"
#include "codec/packed.cu"
#include "device/part.cu"
#include "format/dense.h"
#include "kernel.h"
#include "ptx/kernels.h"
#include "weight.h"

struct Match {
    unsigned document, score;
};

struct ConjunctionShared {
    TopShared top;
    Scratch scratch[AND_WARPS];
    Match waiting[AND_WARPS][32 + BLOCK]; // without static ranks and the weights of dense lists
    Match found[AND_WARPS][64];
    float norms[LENGTH_CODES];
};
static_assert(sizeof(ConjunctionShared) == CONJUNCTION_SHARED, "as kernels.rs has it");

// Four postings of a lane; those alive are in all lists so far.
struct Lane {
    unsigned documents[4], scores[4];
    unsigned alive; // a bit for each posting
};

template <unsigned TAG, Column COLUMN, bool IS_SINGLE> struct Conjunction {
    ConjunctionShared &shared;
    const BatchArguments &arguments;
    const Part<IS_SINGLE> &part;
    const QueryRow &query;
    const SparseRow *sparse;
    const DenseRow *dense;
    Top<IS_SINGLE> top;
    unsigned lane, warp;
    Match *waiting, *found;                 // of the warp
    unsigned waiting_count, found_count;

    __device__ Conjunction(ConjunctionShared &given, const BatchArguments &given_arguments, const Part<IS_SINGLE> &own)
        : shared(given), arguments(given_arguments), part(own), query(own.query),
          sparse(own.sparse), dense(own.dense), top(given.top, given.scratch[0].numbers, own, given_arguments),
          lane(threadIdx.x & 31), warp(threadIdx.x / 32),
          waiting(given.waiting[threadIdx.x / 32]), found(given.found[threadIdx.x / 32]),
          waiting_count(0), found_count(0) {}

    __device__ void run() {
        for (unsigned i = threadIdx.x; i < LENGTH_CODES; i += AND_THREADS) shared.norms[i] = __ldg(arguments.norms + i);
        __syncthreads();
        if (query.sparse_count > 0) {
            by_blocks();
        } else {
            by_chunks();
        }
        constexpr unsigned SPARE = sizeof(shared.scratch) + sizeof(shared.waiting) + sizeof(shared.found);
        static_assert(SPARE >= 8 * 1024, "spare memory holds the keys of a k of 1000");
        uint64_t *spare = reinterpret_cast<uint64_t *>(shared.scratch);
        top.finish(part, arguments, Spare{spare, 1024, reinterpret_cast<unsigned *>(shared.norms)});
    }

    // Ends a round: pushes the matches found, one per thread. Returns whether any warp has more to do.
    __device__ bool push(bool has_more) {
        const unsigned taken = min(found_count, 32u);
        found_count -= taken;
        __syncwarp();
        const Match match = lane < taken ? found[found_count + lane] : Match{0, 0};
        top.push(lane < taken, match.document, match.score);
        __syncwarp();
        const bool is_more = __syncthreads_or(has_more || found_count > 0);
        if (is_more && warp == 0) top.read_shared_floor();
        top.make_space();
        return is_more;
    }

    // Puts the matches of the lanes that have one into a queue of the warp.
    __device__ void enqueue(Match *queue, unsigned &count, bool is_match, Match match) {
        const unsigned all = __ballot_sync(~0u, is_match);
        if (is_match) queue[count + __popc(all & ((1u << lane) - 1))] = match;
        count += __popc(all);
    }

    // Adds the part of the static rank and the weights of dense lists to up to 32 waiting documents.
    __device__ void weigh_waiting() {
        const unsigned taken = min(waiting_count, 32u);
        waiting_count -= taken;
        __syncwarp();
        Match match{0, 0};
        if (lane < taken) {
            match = waiting[waiting_count + lane];
            match.score += part.static_part(arguments, match.document);
            match.score = with_dense(match.document, match.score, norm_of(match.document));
        }
        __syncwarp();
        enqueue(found, found_count, match.score >= max(top.threshold_for(match.document), 1u), match);
    }

    __device__ float norm_of(unsigned document) const {
        return COLUMN == IMPACT ? 0.0f : shared.norms[__ldg(arguments.length_codes + document)];
    }

    // The shortest list drives.
    __device__ void by_blocks() {
        unsigned others = query.static_bound; // the most that other lists and the static rank can add
        for (unsigned list = 1; list < query.sparse_count; list++) others += sparse[list].bound;
        for (unsigned list = 0; list < query.dense_count; list++) others += dense[list].bound;
        unsigned slice = part.first + warp;
        bool is_more = true;
        while (is_more) {
            while (found_count < 32 && (slice < part.end || waiting_count > 0)) {
                if (waiting_count >= 32 || slice >= part.end) {
                    weigh_waiting();
                    continue;
                }
                const unsigned block = slice >> query.slices;
                if (block_bound<COLUMN>(sparse[0], block) + others >= top.threshold()) match_slice(slice, block);
                slice += AND_WARPS;
            }
            is_more = push(slice < part.end || waiting_count > 0);
        }
    }

    __device__ void match_slice(unsigned slice, unsigned block) {
        const unsigned slice_in_block = slice & ((1u << query.slices) - 1);
        if (slice_in_block * (BLOCK >> query.slices) >= postings_in_block(sparse[0], block)) return;
        Scratch &scratch = shared.scratch[warp];
        BlockColumns columns = columns_of(sparse[0], block_row(sparse[0], 0, block));
        const uint4 documents = decode_documents<TAG>(sparse[0], columns, arguments.codecs, lane, scratch);
        if (lane == 0) top.note_block(columns.count);
        Lane mine{{documents.x, documents.y, documents.z, documents.w}, {0, 0, 0, 0}, 0};
        const bool is_own = lane >> (5 - query.slices) == slice_in_block;
#pragma unroll
        for (unsigned i = 0; i < 4; i++) {
            const unsigned document = mine.documents[i];
            const bool is_there = is_own && 4 * lane + i < columns.count;
            const bool is_inside = is_there && document >= query.first && document < query.end;
            // Before all other lists, since every document may cost a block of one.
            if (is_inside && part.passes(document)) mine.alive |= 1u << i;
        }
        ask_dense(mine);
        for (unsigned list = 1; list < query.sparse_count; list++) intersect(mine, sparse[list]);
        if (!__any_sync(~0u, mine.alive)) return;
        const uint4 values = decode_values<TAG>(sparse[0], columns, arguments.codecs.weights, lane, scratch);
        const unsigned of_lane[4] = {values.x, values.y, values.z, values.w};
#pragma unroll
        for (unsigned i = 0; i < 4; i++) {
            const bool is_alive = mine.alive >> i & 1;
            Match match{mine.documents[i], mine.scores[i]};
            if (is_alive) match.score += weigh<COLUMN>(sparse[0].multiplier, of_lane[i], norm_of(match.document));
            enqueue(waiting, waiting_count, is_alive, match);
        }
    }

    // Keeps alive the postings whose documents are in all dense lists. The words of several lists are loaded together,
    // without waiting for the bit test of one.
    __device__ void ask_dense(Lane &mine) const {
        unsigned absent = 0;
#pragma unroll 2
        for (unsigned list = 0; list < query.dense_count; list++) {
#pragma unroll
            for (unsigned i = 0; i < 4; i++) {
                const unsigned document = mine.documents[i];
                const bool is_alive = mine.alive >> i & 1;
                if (is_alive && !has_bit(word_of(dense[list], document / CHUNK), document % CHUNK)) absent |= 1u << i;
            }
        }
        mine.alive &= ~absent;
    }

    // The score of a document that is in all dense lists and has `score` without their weights; 0 where it cannot enter.
    __device__ unsigned with_dense(unsigned document, unsigned score, float norm) const {
        const unsigned chunk = document / CHUNK, bit = document % CHUNK, threshold = top.threshold_for(document);
        unsigned bound = score; // the most that it can have
#pragma unroll 4
        for (unsigned list = 0; list < query.dense_count; list++) bound += bound_in(dense[list], chunk);
        for (unsigned list = 0; list < query.dense_count; list++) {
            if (bound < threshold) return 0;
            const unsigned weight = weigh_dense<COLUMN>(dense[list], chunk, word_of(dense[list], chunk), bit, norm);
            bound = bound - bound_in(dense[list], chunk) + weight;
        }
        return bound;
    }

    // Keeps alive the postings whose documents are in another list too, and adds its weights. First every lane finds
    // the blocks of its documents and prefetches them; then the warp decodes one block after the other.
    __device__ void intersect(Lane &mine, const SparseRow &list) {
        Scratch &scratch = shared.scratch[warp];
        unsigned blocks[4]; // that can have the lane's documents
        find_blocks(mine, list, blocks);
        unsigned unknown = mine.alive;
        for (;;) {
            // The first document that has not been looked up yet: lanes hold documents in order.
            const unsigned lanes = __ballot_sync(~0u, unknown != 0);
            if (lanes == 0) return;
            const unsigned block = __shfl_sync(~0u, at_first(unknown, blocks), __ffs(lanes) - 1);
            BlockColumns columns = columns_of(list, block_row(list, 0, block));
            const uint4 documents = decode_documents<TAG>(list, columns, arguments.codecs, lane, scratch);
            if (lane == 0) top.note_block(columns.count);
            __syncwarp();
            reinterpret_cast<uint4 *>(scratch.numbers)[lane] = documents;
            __syncwarp();
#pragma unroll
            for (unsigned i = 0; i < 4; i++) {
                if (!(unknown >> i & 1) || blocks[i] != block) continue;
                unknown &= ~(1u << i);
                const unsigned position = position_of(scratch, columns.count, mine.documents[i]);
                if (position == NONE) {
                    mine.alive &= ~(1u << i);
                } else {
                    const unsigned value = value_at<TAG>(list, columns, arguments.codecs.weights, position);
                    mine.scores[i] += weigh<COLUMN>(list.multiplier, value, norm_of(mine.documents[i]));
                }
            }
        }
    }

    // The number at the lowest set bit. Without indexing, so that the numbers stay in registers.
    __device__ static unsigned at_first(unsigned bits, const unsigned (&numbers)[4]) {
        return bits & 1 ? numbers[0] : bits & 2 ? numbers[1] : bits & 4 ? numbers[2] : numbers[3];
    }

    // The number at the highest set bit.
    __device__ static unsigned at_last(unsigned bits, const unsigned (&numbers)[4]) {
        return bits & 8 ? numbers[3] : bits & 4 ? numbers[2] : bits & 2 ? numbers[1] : numbers[0];
    }

    // Finds the blocks of a list that can have the lane's documents; documents after the last block are dead.
    __device__ void find_blocks(Lane &mine, const SparseRow &list, unsigned (&blocks)[4]) {
        // The warp's first and last document bound the search.
        const unsigned lanes = __ballot_sync(~0u, mine.alive != 0);
        if (lanes == 0) return;
        const unsigned target = __shfl_sync(~0u, at_first(mine.alive, mine.documents), __ffs(lanes) - 1);
        const unsigned last_target = __shfl_sync(~0u, at_last(mine.alive, mine.documents), 31 - __clz(lanes));
        const unsigned first = find_block(list, 0, target, arguments.inverse_documents, lane);
        const unsigned end = find_block(list, first, last_target, arguments.inverse_documents, lane);
#pragma unroll
        for (unsigned i = 0; i < 4; i++) {
            blocks[i] = NONE;
            if (!(mine.alive >> i & 1)) continue;
            unsigned low = first, high = end;
            while (low < high) {
                const unsigned middle = (low + high) / 2;
                if (last_document(list, middle) < mine.documents[i]) low = middle + 1;
                else high = middle;
            }
            if (low >= list.blocks) {
                mine.alive &= ~(1u << i);
                continue;
            }
            blocks[i] = low;
            if (list.is_short) continue;
            PREFETCH(block_at(list, min(number_in(list, list.offset, low), list.end)));
        }
    }

    // The position of a document among the `count` in scratch; NONE if it is not there.
    __device__ static unsigned position_of(const Scratch &scratch, unsigned count, unsigned document) {
        unsigned low = 0, high = count;
        while (low < high) {
            const unsigned middle = (low + high) / 2;
            if (scratch.numbers[middle] < document) low = middle + 1;
            else high = middle;
        }
        return low < count && scratch.numbers[low] == document ? low : NONE;
    }

    // All lists are dense: a warp intersects their words, 32 chunks at a time.
    __device__ void by_chunks() {
        const unsigned end = (part.end - 1) / CHUNK + 1;
        unsigned chunk = part.first / CHUNK + 32 * warp;
        unsigned pending = 0, mine = 0; // lanes whose chunk was not matched yet, and the lane's chunk
        uint2 word = make_uint2(0, 0);
        bool is_more = true;
        while (is_more) {
            while (found_count < 32 && (pending != 0 || chunk < end || waiting_count > 0)) {
                const bool is_all = pending == 0 && chunk >= end;
                if (waiting_count >= 32 || is_all) {
                    weigh_waiting();
                    continue;
                }
                if (pending != 0) {
                    const unsigned source = __ffs(pending) - 1;
                    pending &= pending - 1;
                    const unsigned x = __shfl_sync(~0u, word.x, source), y = __shfl_sync(~0u, word.y, source);
                    match_chunk(__shfl_sync(~0u, mine, source), make_uint2(x, y));
                    continue;
                }
                mine = chunk + lane;
                word = mine < end ? common_word(mine) : make_uint2(0, 0);
                pending = __ballot_sync(~0u, (word.x | word.y) != 0);
                chunk += AND_THREADS;
            }
            is_more = push(pending != 0 || chunk < end || waiting_count > 0);
        }
    }

    // The documents of a chunk that pass the filter and are in all lists; none where the bounds do not reach the
    // threshold.
    __device__ uint2 common_word(unsigned chunk) const {
        uint2 word = query.filter ? __ldg(query.filter + chunk) : make_uint2(~0u, ~0u);
        unsigned bound = query.static_bound;
        for (unsigned list = 0; list < query.dense_count; list++) {
            const uint2 other = word_of(dense[list], chunk);
            word = make_uint2(word.x & other.x, word.y & other.y);
            bound += bound_in(dense[list], chunk);
        }
        return bound >= top.threshold_for(CHUNK * chunk) ? word : make_uint2(0, 0);
    }

    // Queues the documents of a chunk that are in all lists: the first half, then the second.
    __device__ void match_chunk(unsigned chunk, uint2 word) {
        for (unsigned half = 0; half < 2; half++) {
            const unsigned document = CHUNK * chunk + 32 * half + lane;
            const bool is_common = (half == 0 ? word.x : word.y) >> lane & 1;
            const bool is_match = is_common && document >= query.first && document < part.end;
            enqueue(waiting, waiting_count, is_match, Match{document, 0});
        }
    }
};

template <unsigned TAG, Column COLUMN, bool IS_SINGLE>
__device__ inline void conjunction(const BatchArguments &arguments) {
    SHARED(ConjunctionShared, shared);
    const Part<IS_SINGLE> part(arguments);
    Conjunction<TAG, COLUMN, IS_SINGLE>(shared, arguments, part).run();
}
