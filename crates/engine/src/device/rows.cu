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

// One stage of a plan, and the parts in which it is answered: ranges of documents, or, of an AND by a sparse list, of its
// blocks; each has a thread block. All but the last are equally long.
struct QueryRow {
    unsigned sparse, sparse_count; // its rows, shortest first
    unsigned dense, dense_count;   // likewise, strongest first
    unsigned first, end;           // the documents that may be hits
    unsigned k;
    unsigned seed;
    unsigned sum;                  // of the bounds of all sparse lists
    unsigned window;               // documents that are looked at together, a multiple of 64
    unsigned answer;               // its first key among the answers
    unsigned after;                // another query: this one is left out if that one has k hits; NONE for no such query
    unsigned parts;
    unsigned first_part;           // the first of its parts in this launch; they stand side by side
    unsigned parts_first, parts_end; // what is divided: documents, from a multiple of 64 on, or blocks
    unsigned part_length;
    unsigned room;                 // keys that a part needs in the arena while it runs, a power of two; 0 for shared memory
    unsigned shift;                // scores from the seed on, shifted by this, are bins of a histogram
    unsigned slices;               // AND by a sparse list: 2 to this power are the parts of a block that warps share
    uint64_t keys;                 // its first in the arena: up to k that each part leaves, then the rooms of parts
};
static_assert(sizeof(QueryRow) == 88, "as kernels.rs has it");

// What was done for a query, beside its hits.
struct alignas(8) WorkRow {
    unsigned blocks;            // of sparse lists, that were decoded
    unsigned documents;         // whose whole score was computed
    unsigned long long missing; // postings that these blocks have less than 128 each
};
static_assert(sizeof(WorkRow) == 16, "as kernels.rs has it");

// Bins of the histogram of a query's scores, in groups of as many as a warp has lanes: impacts have bins of their own as
// far as their sums are smaller.
constexpr unsigned SCORE_BINS = 1024, SCORE_GROUPS = SCORE_BINS / 32;

// What the parts of a query know of each other; zeros before the launch.
struct QueryState {
    unsigned long long floor; // only keys above enter
    WorkRow work;             // of the parts that are done
    unsigned left, done;      // keys that parts have left, and parts that are done: one number of 64 bits
    unsigned groups[SCORE_GROUPS], scores[SCORE_BINS]; // a histogram of the scores that were pushed
};
static_assert(sizeof(QueryState) == 4256, "as kernels.rs has it");

constexpr unsigned NONE = ~0u;

// Threads of a block that answers a part of an AND, and of an OR.
constexpr unsigned AND_THREADS = 128, AND_WARPS = AND_THREADS / 32;
constexpr unsigned OR_THREADS = 256, OR_WARPS = OR_THREADS / 32;

// A query that comes alone: its rows travel with the launch, so that nothing is uploaded before it.
constexpr unsigned ALONE_LISTS = 12;
struct AloneRows {
    QueryRow query;
    SparseRow sparse[ALONE_LISTS];
    DenseRow dense[ALONE_LISTS];
};
static_assert(sizeof(AloneRows) == 1816, "as kernels.rs has it");

// What all kernels that answer queries take.
struct BatchArguments {
    const QueryRow *queries;
    const SparseRow *sparse;
    const DenseRow *dense;
    const unsigned *parts;       // of each thread block the query
    const uint8_t *length_codes; // one a document
    const float *norms;          // of the 256 codes
    QueryState *states;          // one a query
    uint64_t *arena;             // keys of parts
    uint64_t *answers;           // keys of queries, best first
    WorkRow *answer_work;        // one a query
    unsigned *answer_counts;     // one a query; what comes last of an answer
    unsigned documents_codec;    // tags
    unsigned weights_codec;
    float blocks_a_document;     // of a list with one block: 1 / documents of the collection
    unsigned reserved;
    AloneRows alone;
};
static_assert(sizeof(BatchArguments) == 1920, "as kernels.rs has it");

// What a thread block answers. The rows of a query alone are in `alone`, and its state is zeros behind the launch too.
// Kernels are compiled for either, so that rows are read by the instructions of the memory that they lie in.
template <bool IS_ALONE> struct Task {
    const QueryRow &query;
    const SparseRow *sparse;
    const DenseRow *dense;
    unsigned number;     // of the query in the batch
    unsigned part;       // of the query
    unsigned first, end; // of the part

    __device__ Task(const BatchArguments &arguments, unsigned given)
        : query(IS_ALONE ? arguments.alone.query : arguments.queries[given]),
          sparse(IS_ALONE ? arguments.alone.sparse : arguments.sparse + query.sparse),
          dense(IS_ALONE ? arguments.alone.dense : arguments.dense + query.dense),
          number(given), part(blockIdx.x - query.first_part),
          first(query.parts_first + part * query.part_length),
          end(query.parts_end - first > query.part_length ? first + query.part_length : query.parts_end) {}

    __device__ explicit Task(const BatchArguments &arguments)
        : Task(arguments, IS_ALONE ? 0 : arguments.parts[blockIdx.x]) {}

    // The part's keys in the arena, where shared memory does not hold them.
    __device__ uint64_t *room(const BatchArguments &arguments) const {
        const uint64_t left = static_cast<uint64_t>(query.parts) * query.k;
        return arguments.arena + query.keys + left + static_cast<uint64_t>(part) * query.room;
    }
};
