// A stream of one block as it lies in the file, for all codecs; see mod.rs.
//
// A codec is a struct with these functions. All but `value_at` and `end_of` are called by all lanes of a warp, with the
// same stream; `count` is the number of postings in the block.
//   documents(packed, base, count, lane, scratch, end)  the lane's four documents; `end` becomes the end of the stream
//   values(packed, count, lane, scratch, end)           the lane's four values
//   value_at(packed, count, index)                      one value, by any one thread
//   end_of(packed, count)                               the end of a stream of values, by any one thread
// Numbers behind the last of an unfinished block are anything. `scratch` is the warp's own; its lanes may still be
// reading it when the function returns, so another use of it starts with __syncwarp(), as that by a codec does.
//
// Codecs are inlined wherever they are used: loops of one thread, and such as seldom go round, are not unrolled.
//
// A stream starts anywhere, but that of a full block at a multiple of four bytes; its end is one too.
// Damaged bytes make wrong numbers and nothing else: no more than LONGEST_STREAM_BYTES are read from the start of the
// stream on, nor is its end further away, and nothing behind `shared_bytes` of the shared part but for its header.
#pragma once
#include "kernel.h"

struct Packed {
    const uint8_t *bytes;  // from the first byte of the stream on
    const uint8_t *shared; // what the codec keeps for all blocks of the list; null for a list of one unfinished block
    unsigned shared_bytes; // how long that is
    unsigned byte;         // the directory byte
    unsigned block;        // which block of the list this is
};

// The longest stream that any bytes can be taken for: 31 bits a number, then unary bits (see unary.cu).
constexpr unsigned LONGEST_STREAM_BYTES = 1024;

// Room for the numbers of a block in shared memory, for each warp.
struct alignas(16) Scratch {
    unsigned numbers[128];
};
