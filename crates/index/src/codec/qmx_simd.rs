//! `qmx` decoded 8 or 16 numbers at a time: shifted apart, masked, summed up within the register.
//!
//! A register holds two or four rows of the four lanes. Numbers past the end of a unit are masked to no gap at all, so
//! that the last slot of the register is always the last document, from which the next register goes on. Documents
//! leave through an array of one register, which stays in the first-level cache.
#![allow(unsafe_code)]

use super::qmx::{PACKINGS, Packing, Reader, Run, dispatch};
use std::arch::x86_64::*;

/// Decodes to the end with AVX2; the caller has seen that the processor has it.
#[inline]
pub(super) fn for_each_avx2<F: FnMut(u32)>(reader: &mut Reader<'_>, visit: &mut F) {
    assert!(is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2"));
    // SAFETY: the processor has AVX2 and BMI2, by the line above.
    unsafe { all_avx2(reader, visit) }
}

/// Decodes to the end with AVX-512; the caller has seen that the processor has it.
#[inline]
pub(super) fn for_each_avx512<F: FnMut(u32)>(reader: &mut Reader<'_>, visit: &mut F) {
    assert!(is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("bmi2"));
    // SAFETY: the processor has AVX-512F and BMI2, by the line above.
    unsafe { all_avx512(reader, visit) }
}

#[target_feature(enable = "avx2,bmi2")]
fn all_avx2<F: FnMut(u32)>(reader: &mut Reader<'_>, visit: &mut F) {
    while let Some(run) = reader.next_run() {
        match run {
            Run { packing: 0, units, .. } => reader.neighbours(units, visit),
            Run { packing: 15, units, .. } => reader.tail(units, visit),
            Run { packing, words, .. } => dispatch!(packing, units_avx2(words, reader, visit)),
        }
    }
}

#[target_feature(enable = "avx512f,bmi2")]
fn all_avx512<F: FnMut(u32)>(reader: &mut Reader<'_>, visit: &mut F) {
    while let Some(run) = reader.next_run() {
        match run {
            Run { packing: 0, units, .. } => reader.neighbours(units, visit),
            Run { packing: 15, units, .. } => reader.tail(units, visit),
            Run { packing, words, .. } => dispatch!(packing, units_avx512(words, reader, visit)),
        }
    }
}

/// The units of one packing; a unit that the stream's end cuts short ends the decoding.
#[target_feature(enable = "avx2,bmi2")]
fn units_avx2<const PACKING: usize, F: FnMut(u32)>(words: &[[u8; 16]], reader: &mut Reader<'_>, visit: &mut F) {
    let Packing { width, numbers, words: words_in_unit } = const { PACKINGS[PACKING] };
    let mask = _mm256_set1_epi32(((1u64 << width) - 1) as i32);
    let mut last = _mm256_set1_epi32(reader.last as i32);
    let mut documents = [0u32; 8];
    for unit in words.chunks_exact(words_in_unit) {
        let lanes = [
            _mm256_broadcastsi128_si256(load(&unit[0])),
            _mm256_broadcastsi128_si256(load(unit.last().unwrap_or(&unit[0]))),
        ];
        let count = numbers.min(reader.left);
        for step in 0..numbers.div_ceil(8) {
            let first = 8 * step;
            if first >= count {
                break;
            }
            let row = (2 * step) as i32 * width as i32;
            let shift = _mm256_add_epi32(_mm256_set1_epi32(row), half_rows(width));
            let gaps = _mm256_and_si256(shifted_avx2(lanes, shift, words_in_unit), mask);
            let mut steps = _mm256_add_epi32(gaps, _mm256_set1_epi32(1));
            if numbers - first < 8 {
                steps = _mm256_and_si256(steps, _mm256_setr_epi32(-1, -1, -1, -1, 0, 0, 0, 0));
            }
            let sums = _mm256_add_epi32(steps, _mm256_slli_si256::<4>(steps));
            let sums = _mm256_add_epi32(sums, _mm256_slli_si256::<8>(sums));
            // The sum of the lower four goes on in the upper four.
            let carried = _mm256_permutevar8x32_epi32(sums, _mm256_set1_epi32(3));
            let carried = _mm256_blend_epi32::<0xF0>(_mm256_setzero_si256(), carried);
            let sums = _mm256_add_epi32(_mm256_add_epi32(sums, carried), last);
            last = _mm256_permutevar8x32_epi32(sums, _mm256_set1_epi32(7));
            // SAFETY: the array has room for a register.
            unsafe { _mm256_storeu_si256(documents.as_mut_ptr().cast(), sums) };
            hand_on(&documents, count - first, visit);
        }
        reader.left -= count;
        if reader.left == 0 {
            return;
        }
    }
    reader.last = _mm256_cvtsi256_si32(last) as u32;
}

/// The units of one packing; a unit that the stream's end cuts short ends the decoding.
#[target_feature(enable = "avx512f,bmi2")]
fn units_avx512<const PACKING: usize, F: FnMut(u32)>(words: &[[u8; 16]], reader: &mut Reader<'_>, visit: &mut F) {
    let Packing { width, numbers, words: words_in_unit } = const { PACKINGS[PACKING] };
    let mask = _mm512_set1_epi32(((1u64 << width) - 1) as i32);
    let mut last = _mm512_set1_epi32(reader.last as i32);
    let mut documents = [0u32; 16];
    for unit in words.chunks_exact(words_in_unit) {
        let lanes =
            [_mm512_broadcast_i32x4(load(&unit[0])), _mm512_broadcast_i32x4(load(unit.last().unwrap_or(&unit[0])))];
        let count = numbers.min(reader.left);
        for step in 0..numbers.div_ceil(16) {
            let first = 16 * step;
            if first >= count {
                break;
            }
            let row = (4 * step) as i32 * width as i32;
            let shift = _mm512_add_epi32(_mm512_set1_epi32(row), quarter_rows(width));
            let gaps = _mm512_and_si512(shifted_avx512(lanes, shift, words_in_unit), mask);
            let valid = if numbers - first < 16 { (1u16 << (numbers - first)) - 1 } else { u16::MAX };
            let steps = _mm512_maskz_add_epi32(valid, gaps, _mm512_set1_epi32(1));
            let zero = _mm512_setzero_si512();
            let sums = _mm512_add_epi32(steps, _mm512_alignr_epi32::<15>(steps, zero));
            let sums = _mm512_add_epi32(sums, _mm512_alignr_epi32::<14>(sums, zero));
            let sums = _mm512_add_epi32(sums, _mm512_alignr_epi32::<12>(sums, zero));
            let sums = _mm512_add_epi32(sums, _mm512_alignr_epi32::<8>(sums, zero));
            let sums = _mm512_add_epi32(sums, last);
            last = _mm512_permutexvar_epi32(_mm512_set1_epi32(15), sums);
            // SAFETY: the array has room for a register.
            unsafe { _mm512_storeu_si512(documents.as_mut_ptr().cast(), sums) };
            hand_on(&documents, count - first, visit);
        }
        reader.left -= count;
        if reader.left == 0 {
            return;
        }
    }
    reader.last = _mm512_cvtsi512_si32(last) as u32;
}

/// Visits the documents of a register; `left` of them where there are fewer.
#[inline(always)]
fn hand_on<const COUNT: usize>(documents: &[u32; COUNT], left: usize, visit: &mut impl FnMut(u32)) {
    match left >= COUNT {
        true => documents.iter().for_each(|&document| visit(document)),
        false => documents[..left].iter().for_each(|&document| visit(document)),
    }
}

#[target_feature(enable = "sse2")]
fn load(word: &[u8; 16]) -> __m128i {
    // SAFETY: sixteen bytes are there, and the load needs no alignment.
    unsafe { _mm_loadu_si128(word.as_ptr().cast()) }
}

/// Bits of the two rows of a register from its first.
#[target_feature(enable = "avx2")]
fn half_rows(width: u32) -> __m256i {
    let next = width as i32;
    _mm256_setr_epi32(0, 0, 0, 0, next, next, next, next)
}

/// Bits of the four rows of a register from its first.
#[target_feature(enable = "avx512f")]
fn quarter_rows(width: u32) -> __m512i {
    let w = width as i32;
    _mm512_setr_epi32(0, 0, 0, 0, w, w, w, w, 2 * w, 2 * w, 2 * w, 2 * w, 3 * w, 3 * w, 3 * w, 3 * w)
}

/// The lanes shifted right; a lane of two words is put together from both. Shifts out of range give 0.
#[target_feature(enable = "avx2")]
fn shifted_avx2(lanes: [__m256i; 2], shift: __m256i, words: usize) -> __m256i {
    let low = _mm256_srlv_epi32(lanes[0], shift);
    if words == 1 {
        return low;
    }
    let word = _mm256_set1_epi32(32);
    let crossing = _mm256_sllv_epi32(lanes[1], _mm256_sub_epi32(word, shift));
    let high = _mm256_srlv_epi32(lanes[1], _mm256_sub_epi32(shift, word));
    _mm256_or_si256(low, _mm256_or_si256(crossing, high))
}

/// The lanes shifted right; a lane of two words is put together from both. Shifts out of range give 0.
#[target_feature(enable = "avx512f")]
fn shifted_avx512(lanes: [__m512i; 2], shift: __m512i, words: usize) -> __m512i {
    let low = _mm512_srlv_epi32(lanes[0], shift);
    if words == 1 {
        return low;
    }
    let word = _mm512_set1_epi32(32);
    let crossing = _mm512_sllv_epi32(lanes[1], _mm512_sub_epi32(word, shift));
    let high = _mm512_srlv_epi32(lanes[1], _mm512_sub_epi32(shift, word));
    _mm512_or_si512(low, _mm512_or_si512(crossing, high))
}
