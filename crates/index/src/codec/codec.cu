// Chooses among the codecs that have a GPU decoder; table.h lists them, by the table of mod.rs.
//
// Codec<TAG> has the functions of a codec (see packed.cu), each with a tag before its other parameters. A kernel that
// is compiled for one codec, as Codec<codec_tag::Bitpack>, pays nothing for the others and ignores the tag. Codec<ANY>
// switches on the tag, which is uniform in a warp. Its functions are not inlined, because the code of all codecs
// together is large.
#pragma once
#include "codec/packed.cu"
#include "codec/table.h"
#include "kernel.h"

// No codec has this tag: the one that is given at run time decides.
constexpr unsigned ANY = 0;

// The tags of all others, as codec_tag::Bitpack.
namespace codec_tag {
#define TAG(tag, Name, stem) constexpr unsigned Name = tag;
FOR_EACH_GPU_CODEC(TAG)
#undef TAG
} // namespace codec_tag

// Calls `use` with the codec of a tag. The host sends no other tags.
template <unsigned TAG, class Use> __device__ inline auto with_codec(unsigned tag, Use use) {
    switch (TAG == ANY ? tag : TAG) {
#define CASE(tag, Name, stem)                                                                                          \
    case tag: return use(Name());
        FOR_EACH_GPU_CODEC(CASE)
#undef CASE
    default: __trap(); __builtin_unreachable();
    }
}

template <unsigned TAG> struct Codec {
    __device__ static uint4 documents(unsigned tag, const Packed &packed, unsigned base, unsigned count, unsigned lane,
                                      Scratch &scratch, const uint8_t *&end) {
        const auto decode = [&](auto codec) { return codec.documents(packed, base, count, lane, scratch, end); };
        return with_codec<TAG>(tag, decode);
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
        const auto decode = [&](auto codec) { return codec.documents(packed, base, count, lane, scratch, end); };
        return with_codec<ANY>(tag, decode);
    }

    __device__ __noinline__ static uint4 values(unsigned tag, const Packed &packed, unsigned count, unsigned lane,
                                                Scratch &scratch, const uint8_t *&end) {
        return with_codec<ANY>(tag, [&](auto codec) { return codec.values(packed, count, lane, scratch, end); });
    }

    __device__ __noinline__ static unsigned value_at(unsigned tag, const Packed &packed, unsigned count,
                                                     unsigned index) {
        return with_codec<ANY>(tag, [&](auto codec) { return codec.value_at(packed, count, index); });
    }

    __device__ __noinline__ static const uint8_t *end_of(unsigned tag, const Packed &packed, unsigned count) {
        return with_codec<ANY>(tag, [&](auto codec) { return codec.end_of(packed, count); });
    }
};
