// Generated from the table `codecs!` in lanner_index::codec; do not edit.
// `UPDATE=1 cargo test -p lanner --lib header` regenerates it.
#pragma once
#include "codec/raw.cu"
#include "codec/bitpack.cu"
#include "codec/elias_fano.cu"
#include "codec/pfor.cu"
#include "codec/rice.cu"
#include "codec/pfor_block.cu"

// Calls a macro with the tag, the struct and the file stem of every codec that has a GPU decoder.
#define FOR_EACH_GPU_CODEC(CALL) \
    CALL(1, Raw, raw) \
    CALL(2, Bitpack, bitpack) \
    CALL(3, EliasFano, elias_fano) \
    CALL(4, Pfor, pfor) \
    CALL(5, Rice, rice) \
    CALL(7, PforBlock, pfor_block)
