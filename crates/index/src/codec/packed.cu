// A column of one block as it is stored in the file, for all codecs; see mod.rs.
//
// A codec is a struct with these members. All lanes of a warp call `documents` and `values` together, with the same
// column; any thread may call `value_at` and `end_of`. `count` is the number of postings in the block.
//   documents(packed, base, count, lane, scratch, end)  the lane's four documents; sets `end` to the end of the column
//   values(packed, count, lane, scratch, end)           the lane's four values
//   value_at(packed, count, index)                      one value
//   end_of(packed, count)                               the end of a column of values
//   DECODE_BLOCKS_PER_SM                                resident thread blocks per SM of its decode kernel (decode.cu)
// Numbers after the last of a partial block are undefined. `scratch` belongs to the warp; its lanes may still read it
// when a function returns, so the next use must start with __syncwarp(), as every codec's does.
//
// Codecs are inlined into every caller. Loops by single threads, and loops that seldom iterate, are therefore not
// unrolled.
//
// A column may start at any byte, in a full block at a multiple of four, where it also ends. Damaged bytes only give
// wrong numbers: at most LONGEST_COLUMN_BYTES are read from the start of the column, its end is no further away, and
// of the shared part nothing is read after `shared_bytes`, except its header.
#pragma once
#include "codec/constants.h"
#include <cstdint>

struct Packed {
    const uint8_t *bytes;  // the first byte of the column
    const uint8_t *shared; // what the codec stores once for all blocks of a list; null for a list of one partial block
    unsigned shared_bytes; // how many bytes that has
    unsigned byte;         // the directory byte
    unsigned block;        // the position of the block in the list
};

// Shared memory of a warp, for the numbers of a block.
struct alignas(16) Scratch {
    unsigned numbers[BLOCK];
};
