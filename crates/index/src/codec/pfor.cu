// See pfor.rs for the codec, pfor_block.cu for how exceptions come to their lanes.
//
// A lane reads an exception: 32 of a block at a time, which are all of them for nearly all blocks. Distances are summed
// up by shuffles. Reads wait for each other as little as can be: first the widths and where the slots are, at once, then
// numbers and slots, and only where something did not fit, words. To keep it so, reads of the first two kinds are not in
// branches: where there is nothing to read, they read the widths again.
//
// The shared part starts at a multiple of four bytes. But for its first eight nothing is read behind its length, or
// behind the next multiple of four, whatever it says of itself.
#pragma once
#include "codec/lanes.cu"
#include "codec/pfor_block.cu"

// Words that hold a slot, and the bit at which it starts: it may be still on its way.
struct PforSlot {
    unsigned low, high, shift;

    __device__ unsigned bits() const { return __funnelshift_r(low, high, shift); }
};

// The exceptions of one block. Places are bytes of the shared part, which take half the registers of pointers.
struct PforExceptions {
    unsigned width; // of numbers
    unsigned count;

    // What is needed of the shared part in any case.
    __device__ explicit PforExceptions(const Packed &packed) : shared(packed.shared), shared_bytes(packed.shared_bytes) {
        const unsigned group = WIDTH_BYTES + packed.block / GROUP * GROUP_BYTES;
        const unsigned further = group + 4 + packed.block % GROUP * 2;
        const bool has_block = further + 2 <= shared_bytes;
        const unsigned widths = __ldg(reinterpret_cast<const unsigned *>(shared));
        slots = __ldg(reinterpret_cast<const unsigned *>(shared + (has_block ? group : 0))) +
                __ldg(reinterpret_cast<const uint16_t *>(shared + (has_block ? further : 0)));
        width = min(widths & 0xFF, 32u);
        distance_width = widths >> 8 & 0xFF;
        high_width = widths >> 16 & 0xFF;
        count = min(packed.byte, BLOCK);
        const unsigned bytes = packed_bytes(distance_width + high_width, count);
        const bool is_inside = has_block && slots <= shared_bytes && bytes <= shared_bytes - slots;
        const bool is_possible = distance_width - 1 < WIDEST_DISTANCE && high_width <= WIDEST_HIGH;
        // Where something is wrong there are no exceptions, and `slot` reads from the start.
        if (!is_inside || !is_possible) slots = count = 0;
        words = slots + bytes;
    }

    // Sends for a slot; for the first one where there is none of this number.
    __device__ PforSlot slot(unsigned number) const {
        const unsigned slot_width = distance_width + high_width;
        const unsigned bit = slots % 4 * 8 + (number < count ? number : 0) * slot_width, shift = bit % 32;
        const unsigned *word = reinterpret_cast<const unsigned *>(shared) + (slots / 4 + bit / 32);
        return {__ldg(word), shift + slot_width > 32 ? __ldg(word + 1) : 0, shift};
    }

    // What the bits of a slot begin with; 0 for what does not fit.
    __device__ unsigned distance_of(unsigned bits) const { return bits & ((1u << distance_width) - 1); }

    __device__ unsigned high_of(unsigned bits) const { return bits >> distance_width & ((1u << high_width) - 1); }

    // What a high part adds to its number.
    __device__ unsigned addition(unsigned high) const { return high << (width & 31); }

    // By all lanes: gives them what did not fit into their slots, where these are used, and moves on.
    __device__ void read_words(bool is_used, unsigned lane, unsigned &distance, unsigned &high) {
        const bool is_far = is_used && distance == 0, is_high = is_used && high == 0;
        const unsigned far = __ballot_sync(~0u, is_far), highs = __ballot_sync(~0u, is_high);
        const unsigned before = (1u << lane) - 1;
        unsigned place = words + 4 * (__popc(far & before) + __popc(highs & before));
        if (is_far) distance = take_word(place);
        if (is_high) high = take_word(place);
        words += 4 * (__popc(far) + __popc(highs));
    }

    // What number `index` has above its low bits, by any one thread.
    __device__ unsigned addition_to(unsigned index) const {
        unsigned end = 0, place = words; // `end` is behind an exception
#pragma unroll 1
        for (unsigned number = 0; number < count; number++) {
            const unsigned bits = slot(number).bits();
            unsigned distance = distance_of(bits), high = high_of(bits);
            if (distance == 0) distance = take_word(place);
            if (high == 0) high = take_word(place);
            end += distance;
            if (end > index) return end == index + 1 ? addition(high) : 0;
        }
        return 0;
    }

  private:
    static constexpr unsigned WIDTH_BYTES = 4, GROUP = 32, GROUP_BYTES = 4 + 2 * GROUP;
    static constexpr unsigned WIDEST_DISTANCE = 8, WIDEST_HIGH = 24;

    const uint8_t *shared;
    unsigned shared_bytes;
    unsigned distance_width, high_width;
    unsigned slots; // where they start
    unsigned words; // where those start that are still to be read

    // The word at a place, which moves on behind it.
    __device__ unsigned take_word(unsigned &place) const {
        const unsigned start = place;
        place += 4;
        return start < place && place <= shared_bytes ? word_from(shared + start) : 0;
    }
};

struct Pfor : PatchedNumbers<Pfor> {
    __device__ static unsigned value_at(const Packed &packed, unsigned count, unsigned index) {
        if (packed.shared == nullptr) return PforBlock::value_at(packed, count, index);
        const PforExceptions exceptions(packed);
        return number_at(packed.bytes, exceptions.width, count, index) + exceptions.addition_to(index) + 1;
    }

    __device__ static const uint8_t *end_of(const Packed &packed, unsigned count) {
        if (packed.shared == nullptr) return PforBlock::end_of(packed, count);
        return packed.bytes + packed_bytes(min(__ldg(packed.shared), 32u), count);
    }

    // All lanes have the same block, so all or none come to where the exceptions are written.
    __device__ static uint4 unpack_patched(const Packed &packed, unsigned count, unsigned lane, Scratch &scratch,
                                           const uint8_t *&end) {
        if (packed.shared == nullptr) return PforBlock::unpack_patched(packed, count, lane, scratch, end);
        PforExceptions exceptions(packed);
        const PforSlot slot = exceptions.slot(lane);
        const uint4 numbers = unpack(packed.bytes, exceptions.width, count, lane);
        end = packed.bytes + packed_bytes(exceptions.width, count);
        if (exceptions.count == 0) return numbers;
        clear_patches(lane, scratch);
        write_patches(exceptions, slot, lane, scratch);
        return add_patches(numbers, lane, scratch);
    }

  private:
    // `slot` is the lane's first.
    __device__ static void write_patches(PforExceptions &exceptions, PforSlot slot, unsigned lane, Scratch &scratch) {
        unsigned end = 0; // behind the lane's exception
#pragma unroll 1
        for (unsigned first = 0;;) {
            const bool is_used = first + lane < exceptions.count;
            const unsigned bits = is_used ? slot.bits() : 0;
            unsigned distance = exceptions.distance_of(bits), high = exceptions.high_of(bits);
            if (__any_sync(~0u, is_used && (distance == 0 || high == 0))) {
                exceptions.read_words(is_used, lane, distance, high);
            }
            end += sum_before(distance) + distance;
            if (is_used && end - 1 < BLOCK) scratch.numbers[end - 1] = exceptions.addition(high);
            first += 32;
            if (first >= exceptions.count) return;
            slot = exceptions.slot(first + lane);
            end = __shfl_sync(~0u, end, 31);
        }
    }
};
