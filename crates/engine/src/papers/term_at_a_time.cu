// See term_at_a_time.rs for the algorithm. A step is a launch: what it leaves for the next lies in global memory.
//
// A warp decodes a block, as everywhere; of candidates a thread has four where it searches, and one where it weighs. The
// candidates of a step are in order, and so are those that it keeps (compaction.cu).
#pragma once
#include "algorithms/dense_list.cu"
#include "papers/search.cu"
#include "algorithms/sparse_list.cu"

namespace papers {

using Key = unsigned long long;

// A document with its score, the greater the better.
__device__ inline Key key_of(unsigned document, unsigned score) {
    return static_cast<Key>(score) << 32 | static_cast<Key>(~document);
}

// What reading a list needs besides its row.
__device__ inline BatchArguments codecs_of(unsigned documents_codec, unsigned weights_codec) {
    BatchArguments arguments; // of which decoding looks at these two alone
    arguments.documents_codec = documents_codec;
    arguments.weights_codec = weights_codec;
    return arguments;
}

// Blocks of a list whose documents are decoded, block behind block.
struct DecodedBlocks {
    unsigned *blocks;     // their numbers in the list; null: all of them are here
    unsigned *count;      // how many there are; not looked at if all are
    unsigned *documents;  // all bits set behind the last of an unfinished block
    unsigned *weights_at; // of each block: where its weights begin, in bytes from its first on
    const unsigned *sent; // of each block: where it lies, in units of 16 bytes from here on; null: in the list
    unsigned room;        // for so many blocks
    unsigned reserved;
};
static_assert(sizeof(DecodedBlocks) == 48, "as steps.rs has it");

// The streams of one of these blocks.
__device__ inline Streams streams_in(const SparseRow &list, const DecodedBlocks &decoded, unsigned slot) {
    Streams streams = streams_of(list, block_row(list, 0, decoded.blocks ? decoded.blocks[slot] : slot));
    if (decoded.sent) {
        streams.documents.bytes = reinterpret_cast<const uint8_t *>(decoded.sent) + 16ull * decoded.sent[slot];
    }
    return streams;
}

struct BlocksArguments {
    SparseRow list;
    DecodedBlocks decoded;
    const unsigned *candidates;
    unsigned *slots; // for each candidate the one of the decoded blocks that can have it; NONE if none can
    unsigned *results;
    Origins origins; // among the candidates, and among the decoded documents
    Order order;
    unsigned count; // of candidates
    unsigned documents_codec, weights_codec, reserved;
};
static_assert(sizeof(BlocksArguments) == 224, "as steps.rs has it");

struct DecodeShared {
    Scratch scratch[WARPS];
};
static_assert(sizeof(DecodeShared) == 4096, "as steps.rs has it");

// A warp, a block.
BOUNDED_KERNEL(term_at_a_time_decode, THREADS, 4, BlocksArguments, arguments) {
    SHARED(DecodeShared, shared);
    const SparseRow &list = arguments.list;
    const DecodedBlocks &decoded = arguments.decoded;
    const BatchArguments codecs = codecs_of(arguments.documents_codec, arguments.weights_codec);
    const unsigned lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const unsigned count = min(decoded.blocks ? *decoded.count : list.blocks, decoded.room);
    for (unsigned slot = blockIdx.x * WARPS + warp; slot < count; slot += gridDim.x * WARPS) {
        Streams streams = streams_in(list, decoded, slot);
        uint4 documents = decode_documents<ANY>(list, streams, codecs, lane, shared.scratch[warp]);
        if (4 * lane >= streams.count) documents.x = NONE;
        if (4 * lane + 1 >= streams.count) documents.y = NONE;
        if (4 * lane + 2 >= streams.count) documents.z = NONE;
        if (4 * lane + 3 >= streams.count) documents.w = NONE;
        reinterpret_cast<uint4 *>(decoded.documents)[BLOCK / 4 * slot + lane] = documents;
        if (lane == 0 && !list.is_short) {
            decoded.weights_at[slot] = static_cast<unsigned>(streams.weights.bytes - streams.documents.bytes);
        }
    }
}

// The blocks of a list that can have one of the candidates, each once, and for each candidate which of these.
BOUNDED_KERNEL(term_at_a_time_find_blocks, THREADS, 4, BlocksArguments, arguments) {
    SHARED(OrderShared, shared);
    const SparseRow &list = arguments.list;
    const DecodedBlocks &decoded = arguments.decoded;
    const unsigned tile = start_tile(shared, arguments.order);
    const unsigned place = (tile * THREADS + threadIdx.x) * SEARCHED;
    unsigned targets[SEARCHED], blocks[SEARCHED], length[SEARCHED];
    const unsigned count = load(arguments.candidates, arguments.count, place, targets);
#pragma unroll
    for (unsigned i = 0; i < SEARCHED; i++) {
        blocks[i] = list.is_short && targets[i] > list.last;
        length[i] = i < count && !list.is_short ? list.blocks : 0;
    }
    find(reinterpret_cast<const unsigned *>(list.bytes + list.last), targets, blocks, length);
    // A candidate opens its block, unless the one before it is there too.
    unsigned opened = 0;
#pragma unroll
    for (unsigned i = 0; i < SEARCHED; i++) {
        bool is_first = place + i == 0;
        if (i > 0) is_first = blocks[i] != blocks[i - 1];
        else if (count > 0 && place > 0 && blocks[0] > 0 && blocks[0] < list.blocks) {
            is_first = arguments.candidates[place - 1] <= last_document(list, blocks[0] - 1);
        }
        opened |= static_cast<unsigned>(is_first && i < count && blocks[i] < list.blocks) << i;
    }
    unsigned before;
    unsigned next = place_in_order(shared, arguments.order, tile, __popc(opened), before);
#pragma unroll
    for (unsigned i = 0; i < SEARCHED; i++) {
        if (opened >> i & 1) {
            if (next < decoded.room) decoded.blocks[next] = blocks[i];
            next++;
        }
        const bool has_slot = blocks[i] < list.blocks && next - 1 < decoded.room;
        if (i < count) arguments.slots[place + i] = has_slot ? next - 1 : NONE;
    }
}

// Looks candidates up in the one block each that can have it.
BOUNDED_KERNEL(term_at_a_time_search_blocks, THREADS, 4, BlocksArguments, arguments) {
    SHARED(OrderShared, shared);
    const unsigned *documents = arguments.decoded.documents;
    const unsigned tile = start_tile(shared, arguments.order);
    const unsigned place = (tile * THREADS + threadIdx.x) * SEARCHED;
    unsigned targets[SEARCHED], first[SEARCHED], length[SEARCHED], ends[SEARCHED];
    const unsigned count = load(arguments.candidates, arguments.count, place, targets);
#pragma unroll
    for (unsigned i = 0; i < SEARCHED; i++) {
        const unsigned slot = i < count ? arguments.slots[place + i] : NONE;
        first[i] = slot == NONE ? 0 : slot * BLOCK;
        length[i] = slot == NONE ? 0 : BLOCK;
        ends[i] = first[i] + length[i];
    }
    find(documents, targets, first, length);
    unsigned matches = 0;
#pragma unroll
    for (unsigned i = 0; i < SEARCHED; i++) {
        const bool is_match = first[i] < ends[i] && documents[first[i]] == targets[i];
        matches |= static_cast<unsigned>(is_match) << i;
    }
    write_in_order(shared, arguments.order, tile, arguments.results, targets, matches, arguments.origins, place, first);
}

struct BitsArguments {
    DenseRow list;              // `bytes` is null where no bit is asked for
    const unsigned *candidates;
    unsigned *results;
    Origins origins; // among the candidates, both
    Order order;
    unsigned count;      // of candidates, or of the results that there is room for
    unsigned first, end; // the documents that may be candidates
    unsigned reserved;
};
static_assert(sizeof(BitsArguments) == 136, "as steps.rs has it");

// Keeps the candidates within the range whose bits are set.
BOUNDED_KERNEL(term_at_a_time_filter, THREADS, 4, BitsArguments, arguments) {
    SHARED(OrderShared, shared);
    const DenseRow &list = arguments.list;
    const unsigned tile = start_tile(shared, arguments.order);
    const unsigned place = (tile * THREADS + threadIdx.x) * SEARCHED;
    unsigned targets[SEARCHED], places[SEARCHED], matches = 0;
    const unsigned count = load(arguments.candidates, arguments.count, place, targets);
#pragma unroll
    for (unsigned i = 0; i < SEARCHED; i++) {
        const unsigned document = targets[i];
        bool is_kept = i < count && document >= arguments.first && document < arguments.end;
        if (is_kept && list.bytes) is_kept = has_bit(word_of(list, document / 64), document % 64);
        matches |= static_cast<unsigned>(is_kept) << i;
        places[i] = place + i;
    }
    write_in_order(shared, arguments.order, tile, arguments.results, targets, matches, arguments.origins, place, places);
}

// The bits of a word from `first` on.
__device__ inline uint2 bits_from(unsigned first) {
    if (first >= 64) return make_uint2(0, 0);
    return first >= 32 ? make_uint2(0, ~0u << (first - 32)) : make_uint2(~0u << first, ~0u);
}

// The documents of a bitmap within the range: a thread, a chunk.
BOUNDED_KERNEL(term_at_a_time_expand, THREADS, 4, BitsArguments, arguments) {
    SHARED(OrderShared, shared);
    const unsigned tile = start_tile(shared, arguments.order);
    const unsigned chunk = arguments.first / 64 + tile * THREADS + threadIdx.x;
    uint2 word = make_uint2(0, 0);
    if (chunk <= (arguments.end - 1) / 64) {
        word = word_of(arguments.list, chunk);
        const uint2 from = bits_from(max(arguments.first, 64 * chunk) - 64 * chunk);
        const uint2 behind = bits_from(min(arguments.end - 64 * chunk, 64u));
        word = make_uint2(word.x & from.x & ~behind.x, word.y & from.y & ~behind.y);
    }
    unsigned before;
    unsigned place = place_in_order(shared, arguments.order, tile, __popc(word.x) + __popc(word.y), before);
    for (unsigned half = 0; half < 2; half++) {
        for (unsigned bits = half == 0 ? word.x : word.y; bits != 0; bits &= bits - 1, place++) {
            if (place < arguments.count) arguments.results[place] = 64 * chunk + 32 * half + __ffs(bits) - 1;
        }
    }
}

struct WeighArguments {
    SparseRow sparse;
    DenseRow dense;        // its `bytes` are null where the list is in blocks
    DecodedBlocks decoded; // of a list in blocks
    const unsigned *candidates;
    Origins origins;        // among the candidates before, and among the decoded documents
    const unsigned *before; // scores of the candidates before; null: they have none
    unsigned *scores;
    Key *keys; // of candidates with all their weights; null: more lists follow
    const uint8_t *length_codes;
    const float *norms;
    unsigned count;
    unsigned weights_codec;
};
static_assert(sizeof(WeighArguments) == 264, "as steps.rs has it");

// The frequency or impact of the posting at a place among the decoded ones: one number of its block, by itself.
__device__ inline unsigned value_at_place(const WeighArguments &arguments, unsigned place) {
    const SparseRow &list = arguments.sparse;
    const unsigned slot = place / BLOCK;
    Streams streams = streams_in(list, arguments.decoded, slot);
    if (!list.is_short) streams.weights.bytes = streams.documents.bytes + arguments.decoded.weights_at[slot];
    return value_at<ANY>(list, streams, codecs_of(0, arguments.weights_codec), place % BLOCK);
}

// Adds the weights of a list to the scores of candidates, all of which it has.
template <Stream STREAM> __device__ inline void weigh_candidates(const WeighArguments &arguments) {
    for (unsigned i = blockIdx.x * THREADS + threadIdx.x; i < arguments.count; i += gridDim.x * THREADS) {
        const unsigned document = arguments.candidates[i], chunk = document / 64;
        const float norm = STREAM == IMPACT ? 0.0f : __ldg(arguments.norms + __ldg(arguments.length_codes + document));
        unsigned weight;
        if (arguments.dense.bytes) {
            weight = weigh_dense<STREAM>(arguments.dense, chunk, word_of(arguments.dense, chunk), document % 64, norm);
        } else {
            weight = weigh<STREAM>(arguments.sparse.multiplier, value_at_place(arguments, arguments.origins.longer[i]), norm);
        }
        const unsigned score = weight + (arguments.before ? arguments.before[arguments.origins.shorter[i]] : 0);
        arguments.scores[i] = score;
        if (arguments.keys) arguments.keys[i] = key_of(document, score);
    }
}

BOUNDED_KERNEL(term_at_a_time_weigh_frequency, THREADS, 4, WeighArguments, arguments) {
    weigh_candidates<FREQUENCY>(arguments);
}

BOUNDED_KERNEL(term_at_a_time_weigh_impact, THREADS, 4, WeighArguments, arguments) {
    weigh_candidates<IMPACT>(arguments);
}

} // namespace papers
