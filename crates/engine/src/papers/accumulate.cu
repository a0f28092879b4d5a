// Accumulators in global memory, one of 32 bits for each document of the plan, cleared before: gpu-ir's OR. See
// accumulators.rs for those of a processor, in pages.
//
// A list is a launch. A warp decodes a block and adds its weights, or has a chunk of a bitmap, two documents a lane. A
// list has a document once, so no two threads meet; the additions are atomic because nobody waits for them then.
#pragma once
#include "papers/term_at_a_time.cu"

namespace papers {

struct AccumulateArguments {
    SparseRow sparse;
    DenseRow dense; // its `bytes` are null where the list is in blocks
    unsigned *accumulators;
    const uint8_t *length_codes;
    const float *norms;
    unsigned first, end; // the documents that have accumulators
    unsigned documents_codec, weights_codec;
};
static_assert(sizeof(AccumulateArguments) == 184, "as steps.rs has it");

template <Stream STREAM> struct Accumulation {
    const AccumulateArguments &arguments;
    unsigned lane, warp, warps; // of all blocks

    __device__ explicit Accumulation(const AccumulateArguments &given)
        : arguments(given), lane(threadIdx.x & 31), warp(blockIdx.x * WARPS + threadIdx.x / 32), warps(gridDim.x * WARPS) {}

    __device__ bool is_inside(unsigned document) const { return document >= arguments.first && document < arguments.end; }

    __device__ float norm_of(unsigned document) const {
        return STREAM == IMPACT ? 0.0f : __ldg(arguments.norms + __ldg(arguments.length_codes + document));
    }

    __device__ void add(unsigned document, unsigned weight) const {
        atomicAdd(arguments.accumulators + (document - arguments.first), weight);
    }

    __device__ void add_blocks(Scratch &scratch) const {
        const SparseRow &list = arguments.sparse;
        const BatchArguments codecs = codecs_of(arguments.documents_codec, arguments.weights_codec);
        for (unsigned block = warp; block < list.blocks; block += warps) {
            const BlockRow row = block_row(list, 0, block);
            if (first_document(list, row) >= arguments.end || last_document(list, block) < arguments.first) continue;
            Streams streams = streams_of(list, row);
            const uint4 documents = decode_documents<ANY>(list, streams, codecs, lane, scratch);
            const uint4 values = decode_values<ANY>(list, streams, codecs, lane, scratch);
            const unsigned of_lane[4] = {documents.x, documents.y, documents.z, documents.w};
            const unsigned values_of_lane[4] = {values.x, values.y, values.z, values.w};
#pragma unroll
            for (unsigned i = 0; i < 4; i++) {
                if (4 * lane + i >= streams.count || !is_inside(of_lane[i])) continue;
                add(of_lane[i], weigh<STREAM>(list.multiplier, values_of_lane[i], norm_of(of_lane[i])));
            }
        }
    }

    __device__ void add_chunks() const {
        const unsigned end = (arguments.end - 1) / 64 + 1;
        for (unsigned chunk = arguments.first / 64 + warp; chunk < end; chunk += warps) {
            const uint2 word = word_of(arguments.dense, chunk);
#pragma unroll
            for (unsigned bit = lane; bit < 64; bit += 32) {
                const unsigned document = 64 * chunk + bit;
                if (!has_bit(word, bit) || !is_inside(document)) continue;
                add(document, weigh_dense<STREAM>(arguments.dense, chunk, word, bit, norm_of(document)));
            }
        }
    }
};

template <Stream STREAM> __device__ inline void accumulate(DecodeShared &shared, const AccumulateArguments &arguments) {
    const Accumulation<STREAM> accumulation(arguments);
    if (arguments.dense.bytes) {
        accumulation.add_chunks();
    } else {
        accumulation.add_blocks(shared.scratch[threadIdx.x / 32]);
    }
}

BOUNDED_KERNEL(accumulators_add_frequency, THREADS, 4, AccumulateArguments, arguments) {
    SHARED(DecodeShared, shared);
    accumulate<FREQUENCY>(shared, arguments);
}

BOUNDED_KERNEL(accumulators_add_impact, THREADS, 4, AccumulateArguments, arguments) {
    SHARED(DecodeShared, shared);
    accumulate<IMPACT>(shared, arguments);
}

struct GatherArguments {
    const unsigned *accumulators;
    Key *keys;
    Order order;
    unsigned first; // the document of the first accumulator
    unsigned count; // of accumulators
    unsigned room;  // for so many keys
    unsigned reserved;
};
static_assert(sizeof(GatherArguments) == 64, "as steps.rs has it");

// The documents that have a score, as keys.
BOUNDED_KERNEL(accumulators_gather, THREADS, 4, GatherArguments, arguments) {
    SHARED(OrderShared, shared);
    const unsigned tile = start_tile(shared, arguments.order);
    const unsigned first = (tile * THREADS + threadIdx.x) * SEARCHED;
    unsigned scores[SEARCHED], found = 0, before;
    const unsigned count = load(arguments.accumulators, arguments.count, first, scores);
#pragma unroll
    for (unsigned i = 0; i < SEARCHED; i++) found += i < count && scores[i] > 0;
    unsigned place = place_in_order(shared, arguments.order, tile, found, before);
#pragma unroll
    for (unsigned i = 0; i < SEARCHED; i++) {
        if (i >= count || scores[i] == 0 || place >= arguments.room) continue;
        arguments.keys[place++] = key_of(arguments.first + first + i, scores[i]);
    }
}

} // namespace papers
