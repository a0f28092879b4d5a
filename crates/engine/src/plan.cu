// What a batch of plans is on the device: rows that the host fills in and kernels only read.
//
// Lists are read where they lie, as they lie in the file; a row says where its arrays begin, so that no kernel has to
// read a header first. executors/rows.rs has the same structs.
#pragma once
#include "codec/codec.cu"

// A list in blocks. Arrays are given by their first byte within the list.
struct SparseRow {
    const uint8_t *bytes;    // the list
    float multiplier;        // what values are multiplied by
    unsigned bound;          // the largest weight
    unsigned postings;
    unsigned blocks;
    unsigned end;            // units of 16 bytes from the first block on: no block starts later
    unsigned last;           // u32 a block, its last document; of a short list: that document itself
    unsigned offset;         // u32 a block, in units; of a short list: the documents' first byte itself
    unsigned block_bound;    // u16 or u8 a block; 0 where stored bounds do not hold
    unsigned document_byte;  // u8 a block; of a short list: the directory byte itself
    unsigned skipped_byte;   // likewise, of a stream between documents and weights; NONE where there is none
    unsigned weight_byte;    // likewise, of the frequencies or impacts that count; NONE where they are not stored
    unsigned payload;        // the first block; of a short list: the first byte of the weights
    unsigned first;          // of a short list: its first document, which is not packed
    unsigned is_short;
    unsigned shared[3];      // what a codec keeps for all blocks of these streams, in units; 0 for nothing
    unsigned shared_bytes[3];
};
static_assert(sizeof(SparseRow) == 88, "as rows.rs has it");

// A bitmap with ranks. Arrays are given by their first byte within the list, in units of 16 bytes where they are long.
struct DenseRow {
    const uint8_t *bytes;
    float multiplier;
    unsigned bound;
    unsigned factor;         // a code of a chunk's bound times this bounds its weights; 0 where stored bounds do not hold
    unsigned postings;
    unsigned window_rank;    // u32 a window of 32,768 documents
    unsigned chunk_rank;     // u16 a chunk of 64 documents
    unsigned chunk_bound;    // u8 a chunk
    unsigned words;          // u64 a chunk; in units
    unsigned values;         // frequencies or impacts in the order of the documents; in units
    unsigned value_bits;     // 2, 4 or 8; 0 where they are not stored
    unsigned exception_rank; // u32 an exception: frequencies that their bits do not hold; in units
    unsigned exceptions;
};
static_assert(sizeof(DenseRow) == 56, "as rows.rs has it");

// One stage of a plan.
struct QueryRow {
    unsigned sparse, sparse_count; // its rows, strongest first; for an AND shortest first
    unsigned dense, dense_count;
    unsigned first, end;           // the documents that may be hits
    unsigned k;
    unsigned seed;
    unsigned parts;                // in which it is answered
    unsigned sum;                  // of the bounds of all sparse lists
    unsigned window;               // documents that are looked at together, a multiple of 64
    unsigned answer;               // its first key among the answers
    unsigned after;                // another query: this one is left out if that one has k hits; NONE for no such query
    unsigned first_part;           // the first of its parts in this launch; they stand side by side
};
static_assert(sizeof(QueryRow) == 56, "as rows.rs has it");

// A range of documents of a query, for one thread block; of an AND by a sparse list, a range of its blocks.
struct PartRow {
    unsigned query;
    unsigned first, end;
    unsigned room;           // keys that it needs in the arena while it runs, a power of two; 0 for shared memory
    uint64_t keys;           // its first key in the arena, where at least k have room
};
static_assert(sizeof(PartRow) == 24, "as rows.rs has it");

constexpr unsigned NONE = ~0u;

// Threads of a block of every kernel that answers queries.
constexpr unsigned THREADS = 128, WARPS = THREADS / 32;

// A query that comes alone: its rows travel with the launch, so that nothing is uploaded before it. All parts but the
// last are equally long.
constexpr unsigned ALONE_LISTS = 12;
struct AloneRows {
    QueryRow query;
    unsigned first, end, length; // the first part begins at `first`, all together end at `end`
    unsigned room;               // of each part, as in its row
    unsigned clip;               // no part begins before it
    unsigned reserved;
    uint64_t keys;               // of the arena, for each part
    SparseRow sparse[ALONE_LISTS];
    DenseRow dense[ALONE_LISTS];
};
static_assert(sizeof(AloneRows) == 1816, "as kernels.rs has it");

// What all kernels that answer queries take.
struct BatchArguments {
    const QueryRow *queries;
    const SparseRow *sparse;
    const DenseRow *dense;
    const PartRow *parts;
    const uint8_t *length_codes; // one a document
    const float *norms;          // of the 256 codes
    uint64_t *floors;            // one a query: only keys above enter; zeros before the launch
    unsigned *done;              // one a query: parts that are done; zeros before the launch
    uint64_t *arena;             // k keys of each part, best first, zeros behind the last
    uint64_t *answers;           // keys of queries, best first
    unsigned *answer_counts;     // one a query
    unsigned documents_codec;    // tags
    unsigned weights_codec;
    unsigned is_alone;           // rows are in `alone`, not at the first four addresses; floors and done end as zeros
    unsigned reserved;
    AloneRows alone;
};
static_assert(sizeof(BatchArguments) == 1920, "as kernels.rs has it");

// What a thread block answers.
struct Task {
    PartRow part;
    const QueryRow *query;
    const SparseRow *sparse;
    const DenseRow *dense;

    __device__ explicit Task(const BatchArguments &arguments) {
        if (!arguments.is_alone) {
            part = arguments.parts[blockIdx.x];
            query = arguments.queries + part.query;
            sparse = arguments.sparse + query->sparse;
            dense = arguments.dense + query->dense;
            return;
        }
        const AloneRows &alone = arguments.alone;
        const unsigned start = alone.first + blockIdx.x * alone.length;
        const unsigned end = alone.end - start > alone.length ? start + alone.length : alone.end;
        part = PartRow{0, max(start, alone.clip), end, alone.room, blockIdx.x * alone.keys};
        query = &alone.query;
        sparse = alone.sparse;
        dense = alone.dense;
    }
};
