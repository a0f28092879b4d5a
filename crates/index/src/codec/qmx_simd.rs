//! `qmx` decoded 8 or 16 numbers at a time: shifted apart, masked, summed up within the register.
//!
//! A register holds two or four rows of the four lanes. Positions after the end of a group add nothing to the prefix
//! sum, so that the last lane of the register is always the last document, from which the next register continues.
//! Documents are returned through an array of the size of a register, which the compiler optimizes away.
#![allow(unsafe_code)]

use super::qmx::{PACKINGS, Packing, Reader, Run, Sink, dispatch};
use std::arch::x86_64::*;

/// Defines a function that decodes to the end with some features, which the caller has detected: `$size` numbers at a
/// time, whose documents `$sums` computes. The other names are the instructions for a register of that size.
macro_rules! decoder {
    (
        $for_each:ident: $features:literal, $size:literal, $sums:ident;
        $set:ident, $broadcast:ident, $store:ident, $first:ident, last of $register:ident: $last:expr
    ) => {
        #[inline]
        pub(super) fn $for_each<F: Sink>(reader: Reader<'_>, visit: F) {
            // SAFETY: `qmx::read`, the only caller, takes no better instructions than were detected.
            return unsafe { all(reader, visit) };

            #[target_feature(enable = $features)]
            fn all<F: Sink>(mut reader: Reader<'_>, mut visit: F) {
                while let Some(run) = reader.next_run() {
                    match run {
                        Run { packing: 0, groups, .. } => reader.neighbours(groups, &mut visit),
                        Run { packing: 15, groups, .. } => reader.tail(groups, &mut visit),
                        Run { packing, words, .. } => dispatch!(packing, groups(words, &mut reader, &mut visit)),
                    }
                }
                visit.end();
            }

            /// Decodes the groups of one packing, up to the end of the sequence.
            #[target_feature(enable = $features)]
            fn groups<const PACKING: usize, F: Sink>(words: &[[u8; 16]], reader: &mut Reader<'_>, visit: &mut F) {
                let Packing { numbers, words: words_in_group, .. } = const { PACKINGS[PACKING] };
                let mut last = $set(reader.last as i32);
                let mut documents = [0u32; $size];
                for group in words.chunks_exact(words_in_group) {
                    let lanes = [0, words_in_group - 1].map(|word| $broadcast(load(&group[word])));
                    for step in 0..numbers.div_ceil($size) {
                        let $register = $sums::<PACKING>(lanes, step, last);
                        last = $last;
                        // SAFETY: the array is as large as a register.
                        unsafe { $store(documents.as_mut_ptr().cast(), $register) };
                        if reader.left < $size {
                            hand_on_last(&documents[..(numbers - $size * step).min($size)], reader, visit);
                            if reader.left == 0 {
                                return;
                            }
                        } else if step < numbers / $size {
                            visit.some(&documents);
                            reader.left -= $size;
                        } else {
                            visit.some(&documents[..numbers % $size]);
                            reader.left -= numbers % $size;
                        }
                    }
                }
                reader.last = $first(last) as u32;
            }
        }
    };
}

decoder! {
    for_each_avx2: "avx2,bmi2", 8, sums_avx2;
    _mm256_set1_epi32, _mm256_broadcastsi128_si256, _mm256_storeu_si256, _mm256_cvtsi256_si32,
    last of sums: _mm256_permutevar8x32_epi32(sums, _mm256_set1_epi32(7))
}

decoder! {
    for_each_avx512: "avx512f,bmi2", 16, sums_avx512;
    _mm512_set1_epi32, _mm512_broadcast_i32x4, _mm512_storeu_si512, _mm512_cvtsi512_si32,
    last of sums: _mm512_permutexvar_epi32(_mm512_set1_epi32(15), sums)
}

/// Passes on the last documents of a sequence, which ends with these or earlier.
#[cold]
fn hand_on_last(documents: &[u32], reader: &mut Reader<'_>, visit: &mut impl Sink) {
    let count = documents.len().min(reader.left);
    visit.some(&documents[..count]);
    reader.left -= count;
}

/// The documents of two rows of a group, from the one before them.
#[target_feature(enable = "avx2")]
#[inline]
fn sums_avx2<const PACKING: usize>(lanes: [__m256i; 2], step: usize, last: __m256i) -> __m256i {
    let Packing { width, numbers, words } = const { PACKINGS[PACKING] };
    let (w, mask) = (width as i32, _mm256_set1_epi32(((1u64 << width) - 1) as i32));
    let rows = _mm256_setr_epi32(0, 0, 0, 0, w, w, w, w);
    let shift = _mm256_add_epi32(_mm256_set1_epi32((2 * step) as i32 * w), rows);
    let gaps = _mm256_and_si256(shifted_avx2(lanes, shift, words), mask);
    let mut steps = _mm256_add_epi32(gaps, _mm256_set1_epi32(1));
    if numbers - 8 * step < 8 {
        steps = _mm256_and_si256(steps, _mm256_setr_epi32(-1, -1, -1, -1, 0, 0, 0, 0));
    }
    let sums = _mm256_add_epi32(steps, _mm256_slli_si256::<4>(steps));
    let sums = _mm256_add_epi32(sums, _mm256_slli_si256::<8>(sums));
    // Add the sum of the lower four to the upper four.
    let carried = _mm256_permutevar8x32_epi32(sums, _mm256_set1_epi32(3));
    let carried = _mm256_blend_epi32::<0xF0>(_mm256_setzero_si256(), carried);
    _mm256_add_epi32(_mm256_add_epi32(sums, carried), last)
}

/// The documents of four rows of a group, from the one before them.
#[target_feature(enable = "avx512f")]
#[inline]
fn sums_avx512<const PACKING: usize>(lanes: [__m512i; 2], step: usize, last: __m512i) -> __m512i {
    let Packing { width, numbers, words } = const { PACKINGS[PACKING] };
    let (w, mask) = (width as i32, _mm512_set1_epi32(((1u64 << width) - 1) as i32));
    let rows = _mm512_setr_epi32(0, 0, 0, 0, w, w, w, w, 2 * w, 2 * w, 2 * w, 2 * w, 3 * w, 3 * w, 3 * w, 3 * w);
    let shift = _mm512_add_epi32(_mm512_set1_epi32((4 * step) as i32 * w), rows);
    let gaps = _mm512_and_si512(shifted_avx512(lanes, shift, words), mask);
    let is_whole = numbers - 16 * step >= 16;
    let valid = if is_whole { u16::MAX } else { (1u16 << (numbers % 16)) - 1 };
    let steps = _mm512_maskz_add_epi32(valid, gaps, _mm512_set1_epi32(1));
    let zero = _mm512_setzero_si512();
    let sums = _mm512_add_epi32(steps, _mm512_alignr_epi32::<15>(steps, zero));
    let sums = _mm512_add_epi32(sums, _mm512_alignr_epi32::<14>(sums, zero));
    let sums = _mm512_add_epi32(sums, _mm512_alignr_epi32::<12>(sums, zero));
    let sums = _mm512_add_epi32(sums, _mm512_alignr_epi32::<8>(sums, zero));
    _mm512_add_epi32(sums, last)
}

#[target_feature(enable = "sse2")]
fn load(word: &[u8; 16]) -> __m128i {
    // SAFETY: the sixteen bytes are the array, and the load needs no alignment.
    unsafe { _mm_loadu_si128(word.as_ptr().cast()) }
}

/// Defines a function that shifts lanes right; one of two words is combined from both. Shifts out of range give 0.
macro_rules! shifted {
    (
        $name:ident: $features:literal, $numbers:ident;
        $set:ident, $right:ident, $left:ident, $subtract:ident, $or:ident
    ) => {
        #[target_feature(enable = $features)]
        fn $name(lanes: [$numbers; 2], shift: $numbers, words: usize) -> $numbers {
            let low = $right(lanes[0], shift);
            if words == 1 {
                return low;
            }
            let word = $set(32);
            let crossing = $left(lanes[1], $subtract(word, shift));
            let high = $right(lanes[1], $subtract(shift, word));
            $or(low, $or(crossing, high))
        }
    };
}

shifted! {
    shifted_avx2: "avx2", __m256i;
    _mm256_set1_epi32, _mm256_srlv_epi32, _mm256_sllv_epi32, _mm256_sub_epi32, _mm256_or_si256
}

shifted! {
    shifted_avx512: "avx512f", __m512i;
    _mm512_set1_epi32, _mm512_srlv_epi32, _mm512_sllv_epi32, _mm512_sub_epi32, _mm512_or_si512
}
