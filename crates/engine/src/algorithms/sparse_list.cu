// A sparse list in device memory, in host memory, or partly in both: blocks of 128 postings. A warp decodes a block: lane
// `l` holds postings 4 l to 4 l + 3.
#pragma once
#include "codec/codec.cu"
#include "codec/constants.h"
#include "codec/lanes.cu"
#include "codec/packed.cu"
#include "format/list.h"
#include "kernel.h"
#include "ptx/kernels.h"

__device__ inline unsigned number_in(const SparseRow &list, unsigned array, unsigned position) {
    return __ldg(reinterpret_cast<const unsigned *>(list.directory + array) + position);
}

// The last document of a block.
__device__ inline unsigned last_document(const SparseRow &list, unsigned block) {
    return list.is_short ? list.last : number_in(list, list.last, block);
}

// The blocks that a search has been narrowed down to. Its result is the first of them whose last document is at least
// the target, or `end`.
struct BlockRange {
    unsigned first, end;
};

// The distance of a lane's probe from the estimated block: the blocks around it one by one, and others on both sides at
// distances that double up to 2,048.
__device__ inline int distance_of(unsigned lane) {
    if (lane < 8) return -(8 << (8 - lane));
    return lane < 24 ? static_cast<int>(lane) - 16 : 8 << (lane - 23);
}

// The estimated block of a document: where it would be if the list were evenly spread.
__device__ inline unsigned even_block(const SparseRow &list, unsigned document, float inverse_documents) {
    return __float2uint_rz(__uint2float_rn(document) * inverse_documents * __uint2float_rn(list.blocks));
}

// Narrows a range by one round of probes around the estimate. All lanes of a warp call it with the same arguments.
__device__ inline BlockRange look_for_block(const SparseRow &list, BlockRange range, unsigned target,
                                            float inverse_documents, unsigned lane) {
    const int first = range.first, end = range.end;
    const int even = min(max(even_block(list, target, inverse_documents), range.first), range.end);
    const int probe = even + distance_of(lane);
    const bool is_inside = probe >= first && probe < end;
    const unsigned last = is_inside ? number_in(list, list.last, probe) : 0;
    const bool is_before = is_inside ? last < target : probe < first;
    const unsigned before = __popc(__ballot_sync(~0u, is_before));
    if (before > 0) range.first = max(even + distance_of(before - 1) + 1, first);
    if (before < 32) range.end = min(even + distance_of(before), end);
    return range;
}

// A 32-ary search: each round, every lane probes the last block of its share of the range.
__device__ inline unsigned find_in_range(const SparseRow &list, BlockRange range, unsigned target, unsigned lane) {
    while (range.first < range.end) {
        const unsigned step = (range.end - range.first + 31) / 32;
        const unsigned probe = range.first + step * (lane + 1) - 1;
        const bool is_before = probe < range.end && number_in(list, list.last, probe) < target;
        const unsigned before = __popc(__ballot_sync(~0u, is_before));
        range.first += step * before;
        range.end = min(range.end, range.first + step - 1);
    }
    return range.first;
}

// The first block from `block` on whose last document is at least `target`; the number of blocks if there is none. All
// lanes of a warp call it with the same arguments.
__device__ inline unsigned find_block(const SparseRow &list, unsigned block, unsigned target, float inverse_documents,
                                      unsigned lane) {
    if (block >= list.blocks) return list.blocks;
    if (list.is_short) return list.last < target ? 1 : 0;
    const BlockRange range = look_for_block(list, BlockRange{block, list.blocks}, target, inverse_documents, lane);
    return find_in_range(list, range, target, lane);
}

__device__ inline unsigned postings_in_block(const SparseRow &list, unsigned block) {
    return min(list.postings - block * BLOCK, BLOCK);
}

// The columns of one block: where they begin, and their directory bytes.
struct BlockColumns {
    Packed documents, weights;
    unsigned skipped_byte; // of the column between them
    unsigned base;
    unsigned count;
};

// The directory entry of a block: all that decoding needs before it reads the block.
struct BlockRow {
    unsigned list, block;
    unsigned base;   // no packed document of the block is smaller
    unsigned offset; // of the first byte: in units, relative to the first block; of a short list, in bytes of the list
    unsigned bytes;  // directory bytes of documents, weights and the column between them, lowest byte first
};

__device__ inline unsigned byte_in(const SparseRow &list, unsigned array, unsigned block) {
    if (array == NONE) return 0;
    return list.is_short ? array : __ldg(list.directory + array + block);
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

// The block of a long list at an offset from the first block on, in units.
__device__ inline const uint8_t *block_at(const SparseRow &list, unsigned offset) {
    return (offset < list.split ? list.head : list.tail) + uint64_t(UNIT) * offset;
}

// Whether the block of a long list at an offset is in host memory.
__device__ inline bool is_across_bus(const SparseRow &list, unsigned offset) {
    return list.is_on_host && offset >= list.split;
}

// Prefetches a block that is going to be decoded. One in host memory is not: prefetching reads it in more requests than
// `fetch_block`, and the bus is limited by their number.
__device__ inline void prefetch_block(const SparseRow &list, const BlockRow &row) {
    if (is_across_bus(list, row.offset)) return;
    const uint8_t *bytes = list.is_short ? list.directory + row.offset : block_at(list, row.offset);
    PREFETCH(bytes);
    PREFETCH(bytes + 128);
}

// Prefetches the directory entries from `block` on, which may lie after the last: an array per lane.
__device__ inline void prefetch_directory(const SparseRow &list, unsigned block, unsigned lane) {
    if (list.is_short) return;
    const unsigned first = min(block, list.blocks - 1);
    if (lane == 0) PREFETCH(list.directory + list.offset + 4 * first);
    if (lane == 1) PREFETCH(list.directory + list.document_byte + first);
    if (lane == 2 && list.weight_byte != NONE) PREFETCH(list.directory + list.weight_byte + first);
    if (lane == 3 && list.block_bound != 0) PREFETCH(list.directory + list.block_bound + first);
}

// A lower limit of the documents of a block.
__device__ inline unsigned first_document(const SparseRow &list, const BlockRow &row) {
    return list.is_short ? list.first : row.base;
}

__device__ inline Packed packed_of(const SparseRow &list, unsigned column, unsigned byte, unsigned block) {
    Packed packed;
    packed.bytes = nullptr;
    packed.shared = list.shared[column] ? list.tail + uint64_t(UNIT) * list.shared[column] : nullptr;
    packed.shared_bytes = list.shared_bytes[column];
    packed.byte = byte;
    packed.block = block;
    return packed;
}

// The columns of a block. Decoding the documents tells where the weights of a long list begin.
__device__ inline BlockColumns columns_of(const SparseRow &list, const BlockRow &row) {
    BlockColumns columns;
    columns.count = postings_in_block(list, row.block);
    columns.base = row.base;
    columns.documents = packed_of(list, 0, row.bytes & 255, row.block);
    columns.weights = packed_of(list, 2, row.bytes >> 8 & 255, row.block);
    columns.skipped_byte = row.bytes >> 16;
    if (list.is_short) {
        columns.documents.bytes = list.directory + row.offset;
        columns.weights.bytes = list.directory + list.payload;
    } else {
        columns.documents.bytes = block_at(list, row.offset);
    }
    return columns;
}

// Decodes a block of bitpack that is in host memory, by one read of consecutive bytes, 16 a lane, since the bus is limited
// by the number of requests. Decoding columns one after the other takes 5 to 11. Returns false, and has no effect, if the
// block is elsewhere, is not full, or has more than 512 bytes.
__device__ inline bool fetch_block(const SparseRow &list, const BlockRow &row, unsigned lane, Scratch &scratch,
                                   uint4 &documents, uint4 &values) {
    // A column of a full block has 16 bytes for each bit of its width.
    const unsigned of_documents = min(row.bytes & 255, 32u);
    const unsigned of_skipped = list.skipped_byte == NONE ? 0 : min(row.bytes >> 16, 32u);
    const unsigned of_values = list.weight_byte == NONE ? 0 : min(row.bytes >> 8 & 255, 32u);
    const unsigned before_values = of_documents + of_skipped, units = before_values + of_values;
    if (!is_across_bus(list, row.offset) || units > 32 || postings_in_block(list, row.block) < BLOCK) return false;
    uint4 *words = reinterpret_cast<uint4 *>(scratch.numbers);
    __syncwarp();
    if (lane < units) words[lane] = __ldg(reinterpret_cast<const uint4 *>(block_at(list, row.offset)) + lane);
    __syncwarp();
    documents = sum_up(unpack_shared(words, of_documents, lane), row.base, lane);
    values = make_uint4(1, 1, 1, 1);
    if (list.weight_byte != NONE) values = plus_one(unpack_shared(words + before_values, of_values, lane));
    return true;
}

// The lane's four documents of a block; sets where the weights begin.
template <unsigned TAG>
__device__ inline uint4 decode_documents(const SparseRow &list, BlockColumns &columns, const CodecTags &codecs,
                                         unsigned lane, Scratch &scratch) {
    // The first document of a short list is not packed.
    const unsigned packed_count = columns.count - list.is_short;
    const uint8_t *end = nullptr;
    uint4 documents = make_uint4(0, 0, 0, 0);
    if (packed_count > 0) {
        documents = Codec<TAG>::documents(codecs.documents, columns.documents, columns.base, packed_count, lane,
                                          scratch, end);
    }
    if (list.is_short) {
        const unsigned before = __shfl_up_sync(~0u, documents.w, 1);
        return make_uint4(lane == 0 ? list.first : before, documents.x, documents.y, documents.z);
    }
    if (list.skipped_byte != NONE) {
        Packed skipped = packed_of(list, 1, columns.skipped_byte, columns.documents.block);
        skipped.bytes = end;
        end = Codec<TAG>::end_of(codecs.weights, skipped, columns.count);
    }
    columns.weights.bytes = end;
    return documents;
}

// The lane's four values of a block whose documents were decoded; 1 where values are not stored.
template <unsigned TAG>
__device__ inline uint4 decode_values(const SparseRow &list, const BlockColumns &columns, unsigned weights_codec,
                                      unsigned lane, Scratch &scratch) {
    if (list.weight_byte == NONE) return make_uint4(1, 1, 1, 1);
    const uint8_t *end;
    return Codec<TAG>::values(weights_codec, columns.weights, columns.count, lane, scratch, end);
}

// One value of a block whose documents were decoded. Any thread may call it.
template <unsigned TAG>
__device__ inline unsigned value_at(const SparseRow &list, const BlockColumns &columns, unsigned weights_codec,
                                    unsigned position) {
    if (list.weight_byte == NONE) return 1;
    return Codec<TAG>::value_at(weights_codec, columns.weights, columns.count, position);
}

// The lane's four documents and values of a block.
template <unsigned TAG>
__device__ inline void decode_block(const SparseRow &list, const BlockRow &row, const CodecTags &codecs, unsigned lane,
                                    Scratch &scratch, uint4 &documents, uint4 &values) {
    if (TAG == codec_tag::Bitpack && fetch_block(list, row, lane, scratch, documents, values)) return;
    BlockColumns columns = columns_of(list, row);
    documents = decode_documents<TAG>(list, columns, codecs, lane, scratch);
    values = decode_values<TAG>(list, columns, codecs.weights, lane, scratch);
}
