// See term_at_a_time.rs for the algorithm. Each step is a launch, which leaves its results in global memory for the
// next.
//
// A warp decodes a block, as in all kernels. A thread has four candidates where it searches, and one where it weighs.
// The candidates of a step are in order, and so are those that it keeps (compaction.cu).
#pragma once
#include "algorithms/dense_list.cu"
#include "algorithms/sparse_list.cu"
#include "algorithms/weigher.cu"
#include "codec/codec.cu"
#include "codec/constants.h"
#include "codec/packed.cu"
#include "format/dense.h"
#include "format/list.h"
#include "kernel.h"
#include "papers/compaction.cu"
#include "papers/search.cu"
#include "ptx/compaction.h"
#include "ptx/kernels.h"
#include "ptx/step_kernels.h"

namespace papers {

using Key = unsigned long long;

// The key of a document with its score: the greater key is better.
__device__ inline Key key_of(unsigned document, unsigned score) {
    return static_cast<Key>(score) << 32 | static_cast<Key>(~document);
}

// The columns of one of the decoded blocks.
__device__ inline BlockColumns columns_in(const SparseRow &list, const DecodedBlocks &decoded, unsigned number) {
    BlockColumns columns = columns_of(list, block_row(list, 0, decoded.blocks ? decoded.blocks[number] : number));
    if (decoded.uploaded) {
        const uint8_t *uploaded = reinterpret_cast<const uint8_t *>(decoded.uploaded);
        columns.documents.bytes = uploaded + uint64_t(UNIT) * decoded.uploaded[number];
    }
    return columns;
}

struct StepShared {
    Scratch scratch[WARPS];
};
static_assert(sizeof(StepShared) == STEP_SHARED, "as step_kernels.rs has it");

// Decodes the documents of blocks, a warp per block.
BOUNDED_KERNEL(term_at_a_time_decode, THREADS, 4, BlocksArguments, arguments) {
    SHARED(StepShared, shared);
    const SparseRow &list = arguments.list;
    const DecodedBlocks &decoded = arguments.decoded;
    const unsigned lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const unsigned count = min(decoded.blocks ? *decoded.count : list.blocks, decoded.capacity);
    for (unsigned number = blockIdx.x * WARPS + warp; number < count; number += gridDim.x * WARPS) {
        BlockColumns columns = columns_in(list, decoded, number);
        uint4 documents = decode_documents<ANY>(list, columns, arguments.codecs, lane, shared.scratch[warp]);
        if (4 * lane >= columns.count) documents.x = NONE;
        if (4 * lane + 1 >= columns.count) documents.y = NONE;
        if (4 * lane + 2 >= columns.count) documents.z = NONE;
        if (4 * lane + 3 >= columns.count) documents.w = NONE;
        reinterpret_cast<uint4 *>(decoded.documents)[BLOCK / 4 * number + lane] = documents;
        if (lane == 0 && !list.is_short) {
            decoded.weights_at[number] = static_cast<unsigned>(columns.weights.bytes - columns.documents.bytes);
        }
    }
}

// Finds the blocks of a list that can have one of the candidates, each once, and for each candidate its block among
// these.
BOUNDED_KERNEL(term_at_a_time_find_blocks, THREADS, 4, BlocksArguments, arguments) {
    SHARED(LookbackShared, shared);
    const SparseRow &list = arguments.list;
    const DecodedBlocks &decoded = arguments.decoded;
    const unsigned tile = start_tile(shared, arguments.lookback);
    const unsigned position = (tile * THREADS + threadIdx.x) * SEARCHED;
    unsigned targets[SEARCHED], blocks[SEARCHED], length[SEARCHED];
    const unsigned count = load(arguments.candidates, arguments.count, position, targets);
#pragma unroll
    for (unsigned i = 0; i < SEARCHED; i++) {
        blocks[i] = list.is_short && targets[i] > list.last;
        length[i] = i < count && !list.is_short ? list.blocks : 0;
    }
    find(reinterpret_cast<const unsigned *>(list.directory + list.last), targets, blocks, length);
    // A candidate opens its block, unless the candidate before it is in the same block.
    unsigned opened = 0;
#pragma unroll
    for (unsigned i = 0; i < SEARCHED; i++) {
        bool is_first = position + i == 0;
        if (i > 0) is_first = blocks[i] != blocks[i - 1];
        else if (count > 0 && position > 0 && blocks[0] > 0 && blocks[0] < list.blocks) {
            is_first = arguments.candidates[position - 1] <= last_document(list, blocks[0] - 1);
        }
        opened |= static_cast<unsigned>(is_first && i < count && blocks[i] < list.blocks) << i;
    }
    unsigned before;
    unsigned next = position_in_order(shared, arguments.lookback, tile, __popc(opened), before);
#pragma unroll
    for (unsigned i = 0; i < SEARCHED; i++) {
        if (opened >> i & 1) {
            if (next < decoded.capacity) decoded.blocks[next] = blocks[i];
            next++;
        }
        const bool has_block = blocks[i] < list.blocks && next - 1 < decoded.capacity;
        if (i < count) arguments.candidate_blocks[position + i] = has_block ? next - 1 : NONE;
    }
}

// Searches for each candidate in the block that can have it.
BOUNDED_KERNEL(term_at_a_time_search_blocks, THREADS, 4, BlocksArguments, arguments) {
    SHARED(LookbackShared, shared);
    const unsigned *documents = arguments.decoded.documents;
    const unsigned tile = start_tile(shared, arguments.lookback);
    const unsigned position = (tile * THREADS + threadIdx.x) * SEARCHED;
    unsigned targets[SEARCHED], first[SEARCHED], length[SEARCHED], ends[SEARCHED];
    const unsigned count = load(arguments.candidates, arguments.count, position, targets);
#pragma unroll
    for (unsigned i = 0; i < SEARCHED; i++) {
        const unsigned number = i < count ? arguments.candidate_blocks[position + i] : NONE;
        first[i] = number == NONE ? 0 : number * BLOCK;
        length[i] = number == NONE ? 0 : BLOCK;
        ends[i] = first[i] + length[i];
    }
    find(documents, targets, first, length);
    unsigned matches = 0;
#pragma unroll
    for (unsigned i = 0; i < SEARCHED; i++) {
        const bool is_match = first[i] < ends[i] && documents[first[i]] == targets[i];
        matches |= static_cast<unsigned>(is_match) << i;
    }
    write_in_order(shared, arguments.lookback, tile, arguments.results, targets, matches, arguments.origins, position,
                   first);
}

// Whether a filter, or none, lets a document pass.
__device__ inline bool passes(const uint2 *filter, unsigned document) {
    return !filter || has_bit(__ldg(filter + document / CHUNK), document % CHUNK);
}

// What the static rank, if it counts, adds to the score of a document.
__device__ inline unsigned static_part(const float *ranks, float alpha, unsigned document) {
    return ranks ? static_units(alpha, __ldg(ranks + document)) : 0;
}

// Keeps the candidates of the range whose bits are set.
BOUNDED_KERNEL(term_at_a_time_filter, THREADS, 4, BitsArguments, arguments) {
    SHARED(LookbackShared, shared);
    const DenseRow &list = arguments.list;
    const unsigned tile = start_tile(shared, arguments.lookback);
    const unsigned position = (tile * THREADS + threadIdx.x) * SEARCHED;
    unsigned targets[SEARCHED], positions[SEARCHED], matches = 0;
    const unsigned count = load(arguments.candidates, arguments.count, position, targets);
#pragma unroll
    for (unsigned i = 0; i < SEARCHED; i++) {
        const unsigned document = targets[i];
        bool is_kept = i < count && document >= arguments.first && document < arguments.end;
        if (is_kept && list.words) is_kept = has_bit(word_of(list, document / CHUNK), document % CHUNK);
        if (is_kept) is_kept = passes(arguments.filter, document);
        matches |= static_cast<unsigned>(is_kept) << i;
        positions[i] = position + i;
    }
    write_in_order(shared, arguments.lookback, tile, arguments.results, targets, matches, arguments.origins, position,
                   positions);
}

// The bits of a word from `first` on.
__device__ inline uint2 bits_from(unsigned first) {
    if (first >= CHUNK) return make_uint2(0, 0);
    return first >= 32 ? make_uint2(0, ~0u << (first - 32)) : make_uint2(~0u << first, ~0u);
}

// Writes the documents of a bitmap within the range that pass the filter, a chunk per thread.
BOUNDED_KERNEL(term_at_a_time_expand, THREADS, 4, BitsArguments, arguments) {
    SHARED(LookbackShared, shared);
    const unsigned tile = start_tile(shared, arguments.lookback);
    const unsigned chunk = arguments.first / CHUNK + tile * (EXPANDED_TILE / CHUNK) + threadIdx.x;
    uint2 word = make_uint2(0, 0);
    if (chunk <= (arguments.end - 1) / CHUNK) {
        word = word_of(arguments.list, chunk);
        const uint2 from = bits_from(max(arguments.first, CHUNK * chunk) - CHUNK * chunk);
        const uint2 behind = bits_from(min(arguments.end - CHUNK * chunk, CHUNK));
        const uint2 passing = arguments.filter ? __ldg(arguments.filter + chunk) : make_uint2(~0u, ~0u);
        word = make_uint2(word.x & passing.x & from.x & ~behind.x, word.y & passing.y & from.y & ~behind.y);
    }
    unsigned before;
    unsigned position = position_in_order(shared, arguments.lookback, tile, __popc(word.x) + __popc(word.y), before);
    for (unsigned half = 0; half < 2; half++) {
        for (unsigned bits = half == 0 ? word.x : word.y; bits != 0; bits &= bits - 1, position++) {
            if (position < arguments.count) arguments.results[position] = CHUNK * chunk + 32 * half + __ffs(bits) - 1;
        }
    }
}

// The frequency or impact of a posting, given by its position among the decoded ones: fetches a single value of its
// block.
__device__ inline unsigned value_at_position(const WeighArguments &arguments, unsigned position) {
    const SparseRow &list = arguments.sparse;
    const unsigned number = position / BLOCK;
    BlockColumns columns = columns_in(list, arguments.decoded, number);
    if (!list.is_short) columns.weights.bytes = columns.documents.bytes + arguments.decoded.weights_at[number];
    return value_at<ANY>(list, columns, arguments.weights_codec, position % BLOCK);
}

// Adds the weights of a list to the scores of candidates, all of which it has; with the last list, makes keys of them
// and of the parts of the static rank.
template <Column COLUMN> __device__ inline void weigh_candidates(const WeighArguments &arguments) {
    for (unsigned i = blockIdx.x * THREADS + threadIdx.x; i < arguments.count; i += gridDim.x * THREADS) {
        const unsigned document = arguments.candidates[i], chunk = document / CHUNK;
        const float norm = COLUMN == IMPACT ? 0.0f : __ldg(arguments.norms + __ldg(arguments.length_codes + document));
        unsigned weight;
        if (arguments.dense.words) {
            const uint2 word = word_of(arguments.dense, chunk);
            weight = weigh_dense<COLUMN>(arguments.dense, chunk, word, document % CHUNK, norm);
        } else {
            const unsigned value = value_at_position(arguments, arguments.origins.longer[i]);
            weight = weigh<COLUMN>(arguments.sparse.multiplier, value, norm);
        }
        const unsigned score = weight + (arguments.before ? arguments.before[arguments.origins.shorter[i]] : 0);
        arguments.scores[i] = score;
        if (!arguments.keys) continue;
        arguments.keys[i] = key_of(document, score + static_part(arguments.ranks, arguments.alpha, document));
    }
}

BOUNDED_KERNEL(term_at_a_time_weigh_frequency, THREADS, 4, WeighArguments, arguments) {
    weigh_candidates<FREQUENCY>(arguments);
}

BOUNDED_KERNEL(term_at_a_time_weigh_impact, THREADS, 4, WeighArguments, arguments) {
    weigh_candidates<IMPACT>(arguments);
}

} // namespace papers
