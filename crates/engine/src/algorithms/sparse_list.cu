// A list in blocks of 128 postings, in global memory: a warp decodes a block, its lane `l` holds postings 4 l to 4 l + 3.
#pragma once
#include "weigher.cu"

__device__ inline unsigned number_in(const SparseRow &list, unsigned array, unsigned place) {
    return __ldg(reinterpret_cast<const unsigned *>(list.bytes + array) + place);
}

// The last document of a block.
__device__ inline unsigned last_document(const SparseRow &list, unsigned block) {
    return list.is_short ? list.last : number_in(list, list.last, block);
}

// The first block from `block` on, before `end`, whose last document is at least `target`; `end` if there is none.
// All lanes of a warp come with the same numbers: they look at the next 32 blocks, which mostly suffices, and then at 32
// shares of all others, 32 shares of one of these, and so on.
__device__ inline unsigned find_block(const SparseRow &list, unsigned block, unsigned end, unsigned target, unsigned lane) {
    if (list.is_short) return block < end && list.last < target ? end : block;
    unsigned step = 1;
    for (;;) {
        // Lane l looks at the last block of its share.
        const unsigned place = block + step * (lane + 1) - 1;
        const bool is_before = place < end && number_in(list, list.last, place) < target;
        const unsigned before = __popc(__ballot_sync(~0u, is_before));
        block += step * before;
        if (step == 1 && (before < 32 || block >= end)) return min(block, end);
        if (step == 1) {
            while (step < (1u << 25) && 32 * step < end - block) step *= 32;
        } else {
            step /= 32;
        }
    }
}

__device__ inline unsigned postings_in_block(const SparseRow &list, unsigned block) {
    return min(list.postings - block * BLOCK, BLOCK);
}

// The streams of one block: where they begin, and what the directory says of them.
struct Streams {
    Packed documents, weights;
    unsigned skipped_byte; // of the stream between them
    unsigned base;
    unsigned count;
};

// What the directory says of a block: all that decoding needs to know before it reads the block.
struct BlockRow {
    unsigned list, block;
    unsigned base;   // no document of the block is smaller; of a short list that holds for those that are packed
    unsigned offset; // of the first byte: in units from the first block on; of a short list in bytes of the list
    unsigned bytes;  // directory bytes of documents, weights and what lies between them, from the lowest on
};

__device__ inline unsigned byte_in(const SparseRow &list, unsigned array, unsigned block) {
    if (array == NONE) return 0;
    return list.is_short ? array : __ldg(list.bytes + array + block);
}

__device__ inline BlockRow block_row(const SparseRow &list, unsigned number, unsigned block) {
    BlockRow row{number, block, 0, 0, 0};
    row.bytes = byte_in(list, list.document_byte, block) | byte_in(list, list.weight_byte, block) << 8 |
                byte_in(list, list.skipped_byte, block) << 16;
    if (list.is_short) {
        row.base = list.first + 1;
        row.offset = list.offset;
    } else {
        row.base = block == 0 ? 0 : number_in(list, list.last, block - 1) + 1;
        row.offset = min(number_in(list, list.offset, block), list.end);
    }
    return row;
}

// No document of a block is smaller.
__device__ inline unsigned first_document(const SparseRow &list, const BlockRow &row) {
    return list.is_short ? list.first : row.base;
}

__device__ inline Packed packed_of(const SparseRow &list, unsigned stream, unsigned byte, unsigned block) {
    Packed packed;
    packed.bytes = nullptr;
    packed.shared = list.shared[stream] ? list.bytes + 16ull * list.shared[stream] : nullptr;
    packed.shared_bytes = list.shared_bytes[stream];
    packed.byte = byte;
    packed.block = block;
    return packed;
}

// Where the weights begin is known behind the documents.
__device__ inline Streams streams_of(const SparseRow &list, const BlockRow &row) {
    Streams streams;
    streams.count = postings_in_block(list, row.block);
    streams.base = row.base;
    streams.documents = packed_of(list, 0, row.bytes & 255, row.block);
    streams.weights = packed_of(list, 2, row.bytes >> 8 & 255, row.block);
    streams.skipped_byte = row.bytes >> 16;
    if (list.is_short) {
        streams.documents.bytes = list.bytes + row.offset;
        streams.weights.bytes = list.bytes + list.payload;
    } else {
        streams.documents.bytes = list.bytes + list.payload + 16ull * row.offset;
    }
    return streams;
}

// The lane's four documents of a block; afterwards the place of the weights is known.
template <unsigned TAG>
__device__ inline uint4 decode_documents(const SparseRow &list, Streams &streams, const BatchArguments &arguments,
                                         unsigned lane, Scratch &scratch) {
    // The first document of a short list is not packed.
    const unsigned packed_count = streams.count - list.is_short;
    const uint8_t *end = nullptr;
    uint4 documents = make_uint4(0, 0, 0, 0);
    if (packed_count > 0) {
        documents = Codec<TAG>::documents(arguments.documents_codec, streams.documents, streams.base, packed_count,
                                          lane, scratch, end);
    }
    if (list.is_short) {
        const unsigned before = __shfl_up_sync(~0u, documents.w, 1);
        return make_uint4(lane == 0 ? list.first : before, documents.x, documents.y, documents.z);
    }
    if (list.skipped_byte != NONE) {
        Packed skipped = packed_of(list, 1, streams.skipped_byte, streams.documents.block);
        skipped.bytes = end;
        end = Codec<TAG>::end_of(arguments.weights_codec, skipped, streams.count);
    }
    streams.weights.bytes = end;
    return documents;
}

// The lane's four values of a block whose documents were decoded; ones where they are not stored.
template <unsigned TAG>
__device__ inline uint4 decode_values(const SparseRow &list, const Streams &streams, const BatchArguments &arguments,
                                      unsigned lane, Scratch &scratch) {
    if (list.weight_byte == NONE) return make_uint4(1, 1, 1, 1);
    const uint8_t *end;
    return Codec<TAG>::values(arguments.weights_codec, streams.weights, streams.count, lane, scratch, end);
}

// One value of a block whose documents were decoded, by any one thread.
template <unsigned TAG>
__device__ inline unsigned value_at(const SparseRow &list, const Streams &streams, const BatchArguments &arguments,
                                    unsigned place) {
    if (list.weight_byte == NONE) return 1;
    return Codec<TAG>::value_at(arguments.weights_codec, streams.weights, streams.count, place);
}
