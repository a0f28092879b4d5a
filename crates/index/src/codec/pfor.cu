// See pfor.rs for the codec, pfor_block.cu for how exceptions come to their lanes.
//
// A lane reads an exception: 32 of a block at a time, which are all of them for most blocks. Positions are summed up by
// shuffles, and what does not fit into slots comes by shuffles too, since it is rare. The shared part starts at a
// multiple of four bytes. But for its first 16 bytes nothing is read behind its length, whatever it says of itself.
#pragma once
#include "lanes.cu"
#include "pfor_block.cu"

// Numbers in slots of one width, with words for what does not fit: an array of the shared part. Arrays are given by
// their first byte within the shared part, which takes half the registers of pointers.
struct PforSlots {
    const uint8_t *shared;
    unsigned width;
    unsigned low;       // what the slots hold
    unsigned far;       // u32: which slots do not fit, in order; behind these u32: what they add, above their slots
    unsigned far_count;

    // What a slot itself holds. Eight slots end with a byte, so that numbers of bits stay small.
    __device__ unsigned low_of(unsigned slot) const {
        return number_of_bits(shared + low + slot / 8 * width, width, slot % 8);
    }

    // The slot of entry `place` of `far`.
    __device__ unsigned slot_of(unsigned place) const {
        return __ldg(reinterpret_cast<const unsigned *>(shared + far) + place);
    }

    // What that entry adds to its slot.
    __device__ unsigned addition(unsigned place) const { return slot_of(far_count + place) << (width & 31); }

    // The number of a slot, by any one thread; `place` is that of the first entry of `far` not before the slot, and
    // becomes that for the next slot.
    __device__ unsigned number_of(unsigned slot, unsigned &place) const {
        const unsigned number = low_of(slot);
        return place < far_count && slot_of(place) == slot ? number + addition(place++) : number;
    }

    // The first entry of `far` that is not before a slot, by any one thread.
    __device__ unsigned find_far(unsigned slot) const {
        unsigned first = 0, end = far_count;
#pragma unroll 1
        while (first < end) {
            const unsigned middle = first + (end - first) / 2;
            if (slot_of(middle) < slot) first = middle + 1;
            else end = middle;
        }
        return first;
    }

    // The same by all lanes of a warp, which halve five times at once.
    __device__ unsigned find_far(unsigned slot, unsigned lane) const {
        unsigned first = 0, end = far_count;
#pragma unroll 1
        while (first < end) {
            const unsigned step = (end - first - 1) / 32 + 1, place = lane * step;
            const bool is_before = place < end - first && slot_of(first + place) < slot;
            const unsigned before = __popc(__ballot_sync(~0u, is_before));
            end = min(end, first + before * step);
            if (before > 0) first += (before - 1) * step + 1;
        }
        return first;
    }

    // The number of slot `first + lane`, if the lane is before `count`, which is at most 32.
    __device__ unsigned read(unsigned first, unsigned count, unsigned lane) const {
        const unsigned number = lane < count ? low_of(first + lane) : 0;
        return far_count == 0 ? number : number + read_far(first, count, lane);
    }

  private:
    // What does not fit of slot `first + lane`. Each lane reads an entry of `far`, which is another lane's.
    __device__ unsigned read_far(unsigned first, unsigned count, unsigned lane) const {
        const unsigned place = find_far(first, lane) + lane;
        const unsigned owner = place < far_count ? slot_of(place) - first : ~0u;
        const unsigned read = owner < count ? addition(place) : 0;
        unsigned sum = 0;
#pragma unroll 1
        for (unsigned left = __ballot_sync(~0u, owner < count); left != 0; left &= left - 1) {
            const unsigned source = __ffs(left) - 1;
            const unsigned target = __shfl_sync(~0u, owner, source), number = __shfl_sync(~0u, read, source);
            if (lane == target) sum += number;
        }
        return sum;
    }
};

// The exceptions of one block.
struct PforExceptions {
    PforSlots offsets, highs;
    unsigned first; // of the list's
    unsigned count; // 0 where the shared part cannot be one

    // `header` is what the shared part begins with. Its arrays lie one after the other.
    __device__ PforExceptions(const Packed &packed, uint4 header) : first(0), count(0) {
        const unsigned offset_width = header.x >> 8 & 0xFF, high_width = header.x >> 16 & 0xFF, all = header.y;
        uint64_t end = HEADER_BYTES;
        const unsigned offsets_low = take(end, slot_bytes(offset_width, all));
        const unsigned highs_low = take(end, slot_bytes(high_width, all));
        const unsigned offsets_far = take(end, 8ull * header.z), highs_far = take(end, 8ull * header.w);
        const unsigned firsts = take(end, 4 * (packed.block + 1ull));
        offsets = {packed.shared, offset_width, offsets_low, offsets_far, header.z};
        highs = {packed.shared, high_width, highs_low, highs_far, header.w};
        if (end > packed.shared_bytes || offset_width > 32 || high_width > 32) return;
        first = __ldg(reinterpret_cast<const unsigned *>(packed.shared + firsts) + packed.block);
        count = first < all ? min(min(packed.byte, BLOCK), all - first) : 0;
    }

  private:
    static constexpr unsigned HEADER_BYTES = 16;

    // Where an array of so many bytes starts that lies at `end`; if all fit in the end, no start was cut.
    __device__ static unsigned take(uint64_t &end, uint64_t bytes) {
        const uint64_t start = end;
        end += bytes;
        return static_cast<unsigned>(start);
    }

    __device__ static uint64_t slot_bytes(unsigned width, unsigned count) {
        return (static_cast<uint64_t>(width) * count + 31) / 32 * 4;
    }
};

struct Pfor {
    __device__ static uint4 documents(const Packed &packed, unsigned base, unsigned count, unsigned lane,
                                      Scratch &scratch, const uint8_t *&end) {
        return sum_up(unpack_patched(packed, count, lane, scratch, end), base, lane);
    }

    __device__ static uint4 values(const Packed &packed, unsigned count, unsigned lane, Scratch &scratch,
                                   const uint8_t *&end) {
        return plus_one(unpack_patched(packed, count, lane, scratch, end));
    }

    __device__ static unsigned value_at(const Packed &packed, unsigned count, unsigned index) {
        if (packed.shared == nullptr) return PforBlock::value_at(packed, count, index);
        const uint4 header = four_words(packed.shared);
        const unsigned width = width_of(header);
        const unsigned low = number_at(packed.bytes, width, count, index);
        if (packed.byte == 0) return low + 1;
        return low + patch_of(PforExceptions(packed, header), width, index) + 1;
    }

    __device__ static const uint8_t *end_of(const Packed &packed, unsigned count) {
        if (packed.shared == nullptr) return PforBlock::end_of(packed, count);
        return packed.bytes + packed_bytes(min(__ldg(packed.shared), 32u), count);
    }

  private:
    __device__ static unsigned width_of(uint4 header) { return min(header.x & 0xFF, 32u); }

    // What number `index` has above its slot, by any one thread.
    __device__ static unsigned patch_of(const PforExceptions &exceptions, unsigned width, unsigned index) {
        unsigned place = exceptions.count == 0 ? 0 : exceptions.offsets.find_far(exceptions.first);
#pragma unroll 1
        for (unsigned number = 0, next = 0; number < exceptions.count; number++) {
            const unsigned slot = exceptions.first + number;
            const unsigned position = next + exceptions.offsets.number_of(slot, place);
            if (position > index) return 0;
            if (position == index) {
                unsigned place_of_high = exceptions.highs.find_far(slot);
                return addend(exceptions.highs.number_of(slot, place_of_high), width);
            }
            next = position + 1;
        }
        return 0;
    }

    // All lanes have the same block, so all or none come to where the exceptions are written.
    __device__ static uint4 unpack_patched(const Packed &packed, unsigned count, unsigned lane, Scratch &scratch,
                                           const uint8_t *&end) {
        if (packed.shared == nullptr) return PforBlock::unpack_patched(packed, count, lane, scratch, end);
        const uint4 header = four_words(packed.shared);
        const unsigned width = width_of(header);
        end = packed.bytes + packed_bytes(width, count);
        const uint4 numbers = unpack(packed.bytes, width, count, lane);
        if (packed.byte == 0) return numbers;
        clear_patches(lane, scratch);
        write_patches(PforExceptions(packed, header), width, lane, scratch);
        return add_patches(numbers, lane, scratch);
    }

    __device__ static void write_patches(const PforExceptions &exceptions, unsigned width, unsigned lane,
                                         Scratch &scratch) {
        for (unsigned start = 0, next = 0; start < exceptions.count; start += 32) {
            const unsigned here = min(exceptions.count - start, 32u), first = exceptions.first + start;
            const unsigned offset = exceptions.offsets.read(first, here, lane);
            const unsigned high = exceptions.highs.read(first, here, lane);
            // As `sum_up`, with one number a lane.
            const unsigned position = next + sum_before(offset, lane) + lane + offset;
            if (lane < here && position < BLOCK) scratch.numbers[position] = addend(high, width);
            next = __shfl_sync(~0u, position, 31) + 1;
        }
    }
};
