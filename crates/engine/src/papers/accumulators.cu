// Accumulators in global memory, one 32-bit number for each document of the plan, cleared before: gpu-ir's OR.
//
// Each list is a launch. A warp decodes a block and adds its weights, or takes a chunk of a bitmap, two documents per
// lane. A list has a document once, so no two threads add to the same accumulator. The additions are atomic all the
// same: a thread does not wait for an atomic addition whose result it does not use, as it would for a load.
#pragma once
#include "algorithms/dense_list.cu"
#include "algorithms/sparse_list.cu"
#include "algorithms/weigher.cu"
#include "codec/codec.cu"
#include "codec/packed.cu"
#include "format/dense.h"
#include "kernel.h"
#include "papers/compaction.cu"
#include "papers/search.cu"
#include "papers/term_at_a_time.cu"
#include "ptx/compaction.h"
#include "ptx/kernels.h"
#include "ptx/step_kernels.h"

namespace papers {

template <Column COLUMN> struct Accumulation {
    const AccumulateArguments &arguments;
    unsigned lane, warp, warps; // warps are numbered over all thread blocks

    __device__ explicit Accumulation(const AccumulateArguments &given)
        : arguments(given), lane(threadIdx.x & 31), warp(blockIdx.x * WARPS + threadIdx.x / 32),
          warps(gridDim.x * WARPS) {}

    __device__ bool is_inside(unsigned document) const {
        return document >= arguments.first && document < arguments.end;
    }

    __device__ float norm_of(unsigned document) const {
        return COLUMN == IMPACT ? 0.0f : __ldg(arguments.norms + __ldg(arguments.length_codes + document));
    }

    __device__ void add(unsigned document, unsigned weight) const {
        atomicAdd(arguments.accumulators + (document - arguments.first), weight);
    }

    __device__ void add_blocks(Scratch &scratch) const {
        const SparseRow &list = arguments.sparse;
        for (unsigned block = warp; block < list.blocks; block += warps) {
            const BlockRow row = block_row(list, 0, block);
            if (first_document(list, row) >= arguments.end || last_document(list, block) < arguments.first) continue;
            BlockColumns columns = columns_of(list, row);
            const uint4 documents = decode_documents<ANY>(list, columns, arguments.codecs, lane, scratch);
            const uint4 values = decode_values<ANY>(list, columns, arguments.codecs.weights, lane, scratch);
            const unsigned of_lane[4] = {documents.x, documents.y, documents.z, documents.w};
            const unsigned values_of_lane[4] = {values.x, values.y, values.z, values.w};
#pragma unroll
            for (unsigned i = 0; i < 4; i++) {
                if (4 * lane + i >= columns.count || !is_inside(of_lane[i])) continue;
                add(of_lane[i], weigh<COLUMN>(list.multiplier, values_of_lane[i], norm_of(of_lane[i])));
            }
        }
    }

    __device__ void add_chunks() const {
        const unsigned end = (arguments.end - 1) / CHUNK + 1;
        for (unsigned chunk = arguments.first / CHUNK + warp; chunk < end; chunk += warps) {
            const uint2 word = word_of(arguments.dense, chunk);
#pragma unroll
            for (unsigned bit = lane; bit < CHUNK; bit += 32) {
                const unsigned document = CHUNK * chunk + bit;
                if (!has_bit(word, bit) || !is_inside(document)) continue;
                add(document, weigh_dense<COLUMN>(arguments.dense, chunk, word, bit, norm_of(document)));
            }
        }
    }
};

template <Column COLUMN> __device__ inline void accumulate(StepShared &shared, const AccumulateArguments &arguments) {
    const Accumulation<COLUMN> accumulation(arguments);
    if (arguments.dense.words) {
        accumulation.add_chunks();
    } else {
        accumulation.add_blocks(shared.scratch[threadIdx.x / 32]);
    }
}

BOUNDED_KERNEL(accumulators_add_frequency, THREADS, 4, AccumulateArguments, arguments) {
    SHARED(StepShared, shared);
    accumulate<FREQUENCY>(shared, arguments);
}

BOUNDED_KERNEL(accumulators_add_impact, THREADS, 4, AccumulateArguments, arguments) {
    SHARED(StepShared, shared);
    accumulate<IMPACT>(shared, arguments);
}

// Writes the keys of the documents that have a score and pass the filter.
BOUNDED_KERNEL(accumulators_gather, THREADS, 4, GatherArguments, arguments) {
    SHARED(LookbackShared, shared);
    const unsigned tile = start_tile(shared, arguments.lookback);
    const unsigned first = (tile * THREADS + threadIdx.x) * SEARCHED;
    unsigned scores[SEARCHED], found = 0, before;
    const unsigned count = load(arguments.accumulators, arguments.count, first, scores);
#pragma unroll
    for (unsigned i = 0; i < SEARCHED; i++) {
        const unsigned document = arguments.first + first + i;
        if (i >= count || (scores[i] > 0 && !passes(arguments.filter, document))) scores[i] = 0;
        found += scores[i] > 0;
        if (scores[i] > 0) scores[i] += static_part(arguments.ranks, arguments.alpha, document);
    }
    unsigned position = position_in_order(shared, arguments.lookback, tile, found, before);
#pragma unroll
    for (unsigned i = 0; i < SEARCHED; i++) {
        if (scores[i] == 0 || position >= arguments.capacity) continue;
        arguments.keys[position++] = key_of(arguments.first + first + i, scores[i]);
    }
}

} // namespace papers
