// See pfor.rs for the codec, pfor_block.cu for how patches reach their lanes.
//
// Each lane reads an exception, 32 of a block at a time, which nearly always are all of them. Distances are summed up
// by shuffles. The chain of dependent loads is short: first the widths and the offset of the entries, together; then
// numbers and entries; and words only where something did not fit its entry. The first two kinds of loads are not in
// branches, so that they stay together: where there is nothing to read, they read the widths again.
//
// The shared part starts at a multiple of four bytes. Except for its first eight bytes, nothing is read after its
// length, rounded up to a multiple of four, whatever it contains.
#pragma once
#include "codec/constants.h"
#include "codec/lanes.cu"
#include "codec/packed.cu"
#include "codec/pfor_block.cu"
#include "kernel.h"

// The words that hold an entry, and the bit at which it starts: the load may still be in flight.
struct PforEntry {
    unsigned low, high, shift;

    __device__ unsigned bits() const { return __funnelshift_r(low, high, shift); }
};

// The exceptions of one block. Offsets are in bytes of the shared part; they take half the registers of pointers.
struct PforExceptions {
    unsigned width; // of numbers
    unsigned count;

    // Reads what is always needed of the shared part.
    __device__ explicit PforExceptions(const Packed &packed)
        : shared(packed.shared), shared_bytes(packed.shared_bytes) {
        const unsigned group = PFOR_WIDTH_BYTES + packed.block / PFOR_GROUP * PFOR_GROUP_BYTES;
        const unsigned further = group + 4 + packed.block % PFOR_GROUP * 2;
        const bool has_block = further + 2 <= shared_bytes;
        const unsigned widths = __ldg(reinterpret_cast<const unsigned *>(shared));
        entries = __ldg(reinterpret_cast<const unsigned *>(shared + (has_block ? group : 0))) +
                __ldg(reinterpret_cast<const uint16_t *>(shared + (has_block ? further : 0)));
        width = min(widths & 0xFF, 32u);
        distance_width = widths >> 8 & 0xFF;
        high_width = widths >> 16 & 0xFF;
        count = min(packed.byte, BLOCK);
        const unsigned bytes = packed_bytes(distance_width + high_width, count);
        const bool is_inside = has_block && entries <= shared_bytes && bytes <= shared_bytes - entries;
        const bool is_possible = distance_width - 1 < PFOR_WIDEST_DISTANCE && high_width <= PFOR_WIDEST_HIGH;
        // Damaged: no exceptions, and `entry` reads from the start.
        if (!is_inside || !is_possible) entries = count = 0;
        words = entries + bytes;
    }

    // Loads an entry; the first one where there is none of this number.
    __device__ PforEntry entry(unsigned number) const {
        const unsigned entry_width = distance_width + high_width;
        const unsigned bit = entries % 4 * 8 + (number < count ? number : 0) * entry_width, shift = bit % 32;
        const unsigned *word = reinterpret_cast<const unsigned *>(shared) + (entries / 4 + bit / 32);
        return {__ldg(word), shift + entry_width > 32 ? __ldg(word + 1) : 0, shift};
    }

    // The two fields of an entry; 0 for what does not fit.
    __device__ unsigned distance_of(unsigned bits) const { return bits & ((1u << distance_width) - 1); }

    __device__ unsigned high_of(unsigned bits) const { return bits >> distance_width & ((1u << high_width) - 1); }

    // What a high part adds to its number.
    __device__ unsigned addition(unsigned high) const { return high << (width & 31); }

    // Reads, for lanes whose entries are used, what did not fit into the entries. All lanes must call it.
    __device__ void read_words(bool is_used, unsigned lane, unsigned &distance, unsigned &high) {
        const bool is_far = is_used && distance == 0, is_high = is_used && high == 0;
        const unsigned far = __ballot_sync(~0u, is_far), highs = __ballot_sync(~0u, is_high);
        const unsigned before = (1u << lane) - 1;
        unsigned offset = words + 4 * (__popc(far & before) + __popc(highs & before));
        if (is_far) distance = take_word(offset);
        if (is_high) high = take_word(offset);
        words += 4 * (__popc(far) + __popc(highs));
    }

    // What number `index` has above its low bits. Any thread may call it.
    __device__ unsigned addition_to(unsigned index) const {
        unsigned end = 0, offset = words; // `end` is one past the exception
#pragma unroll 1
        for (unsigned number = 0; number < count; number++) {
            const unsigned bits = entry(number).bits();
            unsigned distance = distance_of(bits), high = high_of(bits);
            if (distance == 0) distance = take_word(offset);
            if (high == 0) high = take_word(offset);
            end += distance;
            if (end > index) return end == index + 1 ? addition(high) : 0;
        }
        return 0;
    }

  private:
    const uint8_t *shared;
    unsigned shared_bytes;
    unsigned distance_width, high_width;
    unsigned entries; // the offset of the entries
    unsigned words; // the offset of the words that are not read yet

    // The word at an offset, which is advanced.
    __device__ unsigned take_word(unsigned &offset) const {
        const unsigned start = offset;
        offset += 4;
        return start < offset && offset <= shared_bytes ? word_from(shared + start) : 0;
    }
};

struct Pfor : PatchedNumbers<Pfor> {
    static constexpr unsigned DECODE_BLOCKS_PER_SM = 6;

    __device__ static unsigned value_at(const Packed &packed, unsigned count, unsigned index) {
        if (packed.shared == nullptr) return PforBlock::value_at(packed, count, index);
        const PforExceptions exceptions(packed);
        return number_at(packed.bytes, exceptions.width, count, index) + exceptions.addition_to(index) + 1;
    }

    __device__ static const uint8_t *end_of(const Packed &packed, unsigned count) {
        if (packed.shared == nullptr) return PforBlock::end_of(packed, count);
        return packed.bytes + packed_bytes(min(__ldg(packed.shared), 32u), count);
    }

    // The block is uniform in the warp, so all lanes or none write patches.
    __device__ static uint4 unpack_patched(const Packed &packed, unsigned count, unsigned lane, Scratch &scratch,
                                           const uint8_t *&end) {
        if (packed.shared == nullptr) return PforBlock::unpack_patched(packed, count, lane, scratch, end);
        PforExceptions exceptions(packed);
        const PforEntry entry = exceptions.entry(lane);
        const uint4 numbers = unpack(packed.bytes, exceptions.width, count, lane);
        end = packed.bytes + packed_bytes(exceptions.width, count);
        if (exceptions.count == 0) return numbers;
        clear_patches(lane, scratch);
        write_patches(exceptions, entry, lane, scratch);
        return add_patches(numbers, lane, scratch);
    }

  private:
    // `entry` is the lane's first.
    __device__ static void write_patches(PforExceptions &exceptions, PforEntry entry, unsigned lane, Scratch &scratch) {
        unsigned end = 0; // one past the lane's exception
#pragma unroll 1
        for (unsigned first = 0;;) {
            const bool is_used = first + lane < exceptions.count;
            const unsigned bits = is_used ? entry.bits() : 0;
            unsigned distance = exceptions.distance_of(bits), high = exceptions.high_of(bits);
            if (__any_sync(~0u, is_used && (distance == 0 || high == 0))) {
                exceptions.read_words(is_used, lane, distance, high);
            }
            end += sum_before(distance) + distance;
            if (is_used && end - 1 < BLOCK) scratch.numbers[end - 1] = exceptions.addition(high);
            first += 32;
            if (first >= exceptions.count) return;
            entry = exceptions.entry(first + lane);
            end = __shfl_sync(~0u, end, 31);
        }
    }
};
