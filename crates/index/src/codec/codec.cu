// The codecs that a GPU reads, by the tags of mod.rs.
//
// Codec<TAG> has the functions of a codec (see packed.cu), each with a tag before its other parameters. A kernel that is
// compiled for one codec, as Codec<BITPACK>, pays nothing for the others and does not look at the tag; Codec<ANY> goes by
// the tag, which all lanes of a warp have in common, in functions of its own: one copy of all codecs is large enough.
#pragma once
#include "codec/bitpack.cu"
#include "codec/elias_fano.cu"
#include "codec/pfor.cu"
#include "codec/pfor_block.cu"
#include "codec/raw.cu"
#include "codec/rice.cu"

enum CodecTag : unsigned { ANY = 0, RAW = 1, BITPACK = 2, ELIAS_FANO = 3, PFOR = 4, RICE = 5, PFOR_BLOCK = 7 };

// Calls `use` with the codec. The host sends no other tags; one would be read as bitpack.
template <unsigned TAG, class Use> __device__ inline auto with_codec(unsigned tag, Use use) {
    switch (TAG == ANY ? tag : TAG) {
    case RAW: return use(Raw());
    case ELIAS_FANO: return use(EliasFano());
    case PFOR: return use(Pfor());
    case RICE: return use(Rice());
    case PFOR_BLOCK: return use(PforBlock());
    default: return use(Bitpack());
    }
}

template <unsigned TAG> struct Codec {
    __device__ static uint4 documents(unsigned tag, const Packed &packed, unsigned base, unsigned count, unsigned lane,
                                      Scratch &scratch, const uint8_t *&end) {
        return with_codec<TAG>(tag, [&](auto codec) { return codec.documents(packed, base, count, lane, scratch, end); });
    }

    __device__ static uint4 values(unsigned tag, const Packed &packed, unsigned count, unsigned lane, Scratch &scratch,
                                   const uint8_t *&end) {
        return with_codec<TAG>(tag, [&](auto codec) { return codec.values(packed, count, lane, scratch, end); });
    }

    __device__ static unsigned value_at(unsigned tag, const Packed &packed, unsigned count, unsigned index) {
        return with_codec<TAG>(tag, [&](auto codec) { return codec.value_at(packed, count, index); });
    }

    __device__ static const uint8_t *end_of(unsigned tag, const Packed &packed, unsigned count) {
        return with_codec<TAG>(tag, [&](auto codec) { return codec.end_of(packed, count); });
    }
};

template <> struct Codec<ANY> {
    __device__ __noinline__ static uint4 documents(unsigned tag, const Packed &packed, unsigned base, unsigned count,
                                                   unsigned lane, Scratch &scratch, const uint8_t *&end) {
        return with_codec<ANY>(tag, [&](auto codec) { return codec.documents(packed, base, count, lane, scratch, end); });
    }

    __device__ __noinline__ static uint4 values(unsigned tag, const Packed &packed, unsigned count, unsigned lane,
                                                Scratch &scratch, const uint8_t *&end) {
        return with_codec<ANY>(tag, [&](auto codec) { return codec.values(packed, count, lane, scratch, end); });
    }

    __device__ __noinline__ static unsigned value_at(unsigned tag, const Packed &packed, unsigned count, unsigned index) {
        return with_codec<ANY>(tag, [&](auto codec) { return codec.value_at(packed, count, index); });
    }

    __device__ __noinline__ static const uint8_t *end_of(unsigned tag, const Packed &packed, unsigned count) {
        return with_codec<ANY>(tag, [&](auto codec) { return codec.end_of(packed, count); });
    }
};
