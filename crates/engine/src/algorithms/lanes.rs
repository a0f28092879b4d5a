//! The inner loops of the algorithms over several numbers at once: portable, AVX2 and AVX-512.
//!
//! A set of lanes is a token: one of [`Avx2`] or [`Avx512`] exists only if [`run`] has found the processor able, and
//! its methods rely on that. The methods are always inlined, so an algorithm that [`run`] calls is compiled once for
//! each set as a whole, with the instructions of that set: no call and no test for features is left in its loops.
#![expect(unsafe_code, reason = "intrinsics that load, store or need a processor feature, behind safe methods")]

use lanner_index::codec::BLOCK;
use lanner_index::weight::{Norms, impact_units, saturation, units};

/// Documents in a chunk.
pub const CHUNK: usize = lanner_index::format::dense::CHUNK as usize;
/// Chunks of which the bounds are added up at once.
pub const CHUNKS: usize = 128;

/// Numbers handled side by side. All sets give the same results; a property test compares them.
pub trait Lanes: Copy {
    /// Bit `i` is set where `values[i] >= least`.
    fn at_least(self, values: &[u32; CHUNK], least: u32) -> u64;

    /// Bit `i` is set where `values[i] >= least`.
    fn chunks_at_least(self, values: &[u32; CHUNKS], least: u32) -> u128;

    /// Adds `codes[i] · factor` to `sums[i]`.
    fn add_bounds(self, codes: &[u8], factor: u32, sums: &mut [u32; CHUNKS]);

    /// The weights of the first `count` frequencies: what `weight::units` gives for each. What follows in `out` may
    /// change too.
    fn weigh_frequencies(self, from: &BlockToWeigh<'_>, count: usize, out: &mut [u32; BLOCK]);

    /// The weights of the first `count` impacts: what `weight::impact_units` gives for each. What follows in `out` may
    /// change too.
    fn weigh_impacts(self, multiplier: f32, impacts: &[u32; BLOCK], count: usize, out: &mut [u32; BLOCK]);

    /// How many numbers of an ascending block are below `target`.
    #[inline(always)]
    fn count_below(self, numbers: &[u32; BLOCK], target: u32) -> usize {
        let (low, high) = numbers.split_at(BLOCK / 2);
        let half = if high[0] < target { high } else { low };
        let below = !self.at_least(half.as_array().unwrap_or(&[0; CHUNK]), target);
        below.count_ones() as usize + if high[0] < target { BLOCK / 2 } else { 0 }
    }

    /// Adds the weights of a chunk's frequencies to its scores where several at once pay, and returns the bits of the
    /// word whose postings it has left out.
    #[inline(always)]
    fn add_frequencies(self, chunk: &ChunkToWeigh<'_>, _norms: &Norms, _scores: &mut [u32; CHUNK]) -> u64 {
        chunk.word
    }

    /// Adds the weights of a chunk's impacts to its scores where several at once pay, and returns the bits of the word
    /// whose postings it has left out.
    #[inline(always)]
    fn add_impacts(self, chunk: &ChunkToWeigh<'_>, _scores: &mut [u32; CHUNK]) -> u64 {
        chunk.word
    }
}

/// The postings of a dense list in a chunk, and what their weights are made from.
pub struct ChunkToWeigh<'a> {
    /// What saturations or impacts are multiplied by.
    pub multiplier: f32,
    /// The documents: bit `i` is the chunk's document `i`.
    pub word: u64,
    /// The place of the first posting among the values.
    pub rank: usize,
    /// The list's values in the order of its documents, packed: frequencies, of which 0 is left out, or impacts.
    pub values: &'a [u8],
    /// Bits of a value: 2, 4 or 8.
    pub bits: usize,
    /// The length codes from the chunk's first document on.
    pub length_codes: &'a [u8],
}

/// Frequencies of a block, and what their weights are made from.
pub struct BlockToWeigh<'a> {
    /// What saturations are multiplied by.
    pub multiplier: f32,
    /// The frequencies.
    pub frequencies: &'a [u32; BLOCK],
    /// The documents.
    pub documents: &'a [u32; BLOCK],
    /// The norm of each length code.
    pub norms: &'a Norms,
    /// The length code of each document; one that is not there counts as the last.
    pub length_codes: &'a [u8],
}

/// Something to compute with any set of lanes.
pub trait WithLanes {
    /// What comes out.
    type Output;

    /// Computes it. Implementations are `#[inline(always)]`, or the set's instructions are not used.
    fn run<L: Lanes>(self, lanes: L) -> Self::Output;
}

/// The widest lanes that may be used, narrow ones first; tests narrow them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Widest {
    /// Those that every processor has.
    Portable,
    /// [`Avx2`] where the processor has it.
    Avx2,
    /// Whatever the processor has.
    #[default]
    Any,
}

/// Computes something with the widest lanes that may be used and that the processor has.
pub fn run<T: WithLanes>(widest: Widest, task: T) -> T::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(lanes) = Avx512::detect().filter(|_| widest == Widest::Any) {
            // SAFETY: the token proves that the processor has the features.
            return unsafe { run_avx512(lanes, task) };
        }
        if let Some(lanes) = Avx2::detect().filter(|_| widest >= Widest::Avx2) {
            // SAFETY: the token proves that the processor has the features.
            return unsafe { run_avx2(lanes, task) };
        }
    }
    task.run(Portable)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,popcnt,lzcnt,bmi1,bmi2")]
fn run_avx512<T: WithLanes>(lanes: Avx512, task: T) -> T::Output {
    task.run(lanes)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt,lzcnt,bmi1,bmi2")]
fn run_avx2<T: WithLanes>(lanes: Avx2, task: T) -> T::Output {
    task.run(lanes)
}

/// One number at a time; the compiler may still find lanes that every processor has.
#[derive(Clone, Copy)]
pub struct Portable;

impl Lanes for Portable {
    #[inline(always)]
    fn at_least(self, values: &[u32; CHUNK], least: u32) -> u64 {
        values.iter().rev().fold(0, |mask, &value| mask << 1 | u64::from(value >= least))
    }

    #[inline(always)]
    fn chunks_at_least(self, values: &[u32; CHUNKS], least: u32) -> u128 {
        values.iter().rev().fold(0, |mask, &value| mask << 1 | u128::from(value >= least))
    }

    #[inline(always)]
    fn add_bounds(self, codes: &[u8], factor: u32, sums: &mut [u32; CHUNKS]) {
        for (sum, &code) in sums.iter_mut().zip(codes) {
            *sum = sum.wrapping_add(u32::from(code).wrapping_mul(factor));
        }
    }

    #[inline(always)]
    fn weigh_frequencies(self, from: &BlockToWeigh<'_>, count: usize, out: &mut [u32; BLOCK]) {
        let last = from.length_codes.len().saturating_sub(1);
        for (i, weight) in out.iter_mut().enumerate().take(count) {
            let code = from.length_codes.get((from.documents[i] as usize).min(last)).copied().unwrap_or(0);
            *weight = units(from.multiplier, saturation(from.frequencies[i], from.norms.of(code)));
        }
    }

    #[inline(always)]
    fn weigh_impacts(self, multiplier: f32, impacts: &[u32; BLOCK], count: usize, out: &mut [u32; BLOCK]) {
        for (weight, &impact) in out.iter_mut().zip(impacts).take(count) {
            *weight = impact_units(multiplier, impact);
        }
    }

    #[inline(always)]
    fn count_below(self, numbers: &[u32; BLOCK], target: u32) -> usize {
        numbers.partition_point(|&number| number < target)
    }
}

#[cfg(target_arch = "x86_64")]
pub use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use lanner_index::weight::ONE;
    use std::arch::x86_64::*;

    /// Eight numbers at a time.
    #[derive(Clone, Copy)]
    pub struct Avx2(());

    /// Sixteen numbers at a time.
    #[derive(Clone, Copy)]
    pub struct Avx512(());

    impl Avx2 {
        /// The token, if the processor has all that `run_avx2` enables.
        pub fn detect() -> Option<Avx2> {
            let is_able = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("popcnt")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2");
            is_able.then_some(Avx2(()))
        }
    }

    impl Avx512 {
        /// The token, if the processor has all that `run_avx512` enables.
        pub fn detect() -> Option<Avx512> {
            let is_able = Avx2::detect().is_some()
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq");
            is_able.then_some(Avx512(()))
        }
    }

    // In both sets: the token proves the features; loads and stores go through references to arrays that are as long
    // as what is loaded or stored, or as stated.

    impl Lanes for Avx2 {
        #[inline(always)]
        fn at_least(self, values: &[u32; CHUNK], least: u32) -> u64 {
            let mut mask = 0;
            for (i, eight) in values.as_chunks::<8>().0.iter().enumerate() {
                mask |= u64::from(self.eight_at_least(eight, least)) << (8 * i);
            }
            mask
        }

        #[inline(always)]
        fn chunks_at_least(self, values: &[u32; CHUNKS], least: u32) -> u128 {
            let mut mask = 0;
            for (i, eight) in values.as_chunks::<8>().0.iter().enumerate() {
                mask |= u128::from(self.eight_at_least(eight, least)) << (8 * i);
            }
            mask
        }

        #[inline(always)]
        fn add_bounds(self, codes: &[u8], factor: u32, sums: &mut [u32; CHUNKS]) {
            let (eights, rest) = codes[..codes.len().min(CHUNKS)].as_chunks::<8>();
            let (sums, sums_of_rest) = sums.split_at_mut(8 * eights.len());
            for (codes, sums) in eights.iter().zip(sums.as_chunks_mut::<8>().0) {
                // SAFETY: see above.
                unsafe {
                    let codes = _mm256_cvtepu8_epi32(_mm_loadl_epi64(codes.as_ptr().cast()));
                    let bounds = _mm256_mullo_epi32(codes, _mm256_set1_epi32(factor as i32));
                    let sum = _mm256_add_epi32(_mm256_loadu_si256(sums.as_ptr().cast()), bounds);
                    _mm256_storeu_si256(sums.as_mut_ptr().cast(), sum);
                }
            }
            for (sum, &code) in sums_of_rest.iter_mut().zip(rest) {
                *sum = sum.wrapping_add(u32::from(code).wrapping_mul(factor));
            }
        }

        #[inline(always)]
        fn weigh_frequencies(self, from: &BlockToWeigh<'_>, count: usize, out: &mut [u32; BLOCK]) {
            let codes = from.length_codes;
            let Some((last, last_word)) = last_to_gather(codes) else {
                return Portable.weigh_frequencies(from, count, out);
            };
            let frequencies = from.frequencies.as_chunks::<8>().0;
            let documents = from.documents.as_chunks::<8>().0;
            let rows = out.as_chunks_mut::<8>().0.iter_mut().zip(frequencies).zip(documents);
            let mut fits = true;
            for ((out, frequencies), documents) in rows.take(count.div_ceil(8)) {
                // SAFETY: see above. The gathers read four bytes from `word` on, which is at most `len - 4` and fits
                // the signed index, and the table of 256 norms at the place of a byte.
                unsafe {
                    let document = _mm256_loadu_si256(documents.as_ptr().cast());
                    let document = _mm256_min_epu32(document, _mm256_set1_epi32(last));
                    let word = _mm256_min_epu32(document, _mm256_set1_epi32(last_word));
                    let shift = _mm256_slli_epi32::<3>(_mm256_sub_epi32(document, word));
                    let words = _mm256_i32gather_epi32::<1>(codes.as_ptr().cast(), word);
                    let code = _mm256_and_si256(_mm256_srlv_epi32(words, shift), _mm256_set1_epi32(0xFF));
                    let norm = _mm256_i32gather_ps::<4>(from.norms.table().as_ptr(), code);
                    let numbers = _mm256_loadu_si256(frequencies.as_ptr().cast());
                    let frequency = _mm256_cvtepi32_ps(numbers);
                    let saturation = _mm256_div_ps(frequency, _mm256_add_ps(frequency, norm));
                    let weight = _mm256_mul_ps(_mm256_set1_ps(from.multiplier), saturation);
                    let (rounded, are_weights) = rounded_eight(_mm256_mul_ps(weight, _mm256_set1_ps(ONE)));
                    fits &= are_weights && _mm256_movemask_ps(_mm256_castsi256_ps(numbers)) == 0;
                    _mm256_storeu_si256(out.as_mut_ptr().cast(), rounded);
                }
            }
            if !fits {
                Portable.weigh_frequencies(from, count, out);
            }
        }

        #[inline(always)]
        fn weigh_impacts(self, multiplier: f32, impacts: &[u32; BLOCK], count: usize, out: &mut [u32; BLOCK]) {
            let rows = out.as_chunks_mut::<8>().0.iter_mut().zip(impacts.as_chunks::<8>().0);
            let mut fits = true;
            for (out, impacts) in rows.take(count.div_ceil(8)) {
                // SAFETY: see above.
                unsafe {
                    let numbers = _mm256_loadu_si256(impacts.as_ptr().cast());
                    let weight = _mm256_mul_ps(_mm256_set1_ps(multiplier), _mm256_cvtepi32_ps(numbers));
                    let (rounded, are_weights) = rounded_eight(weight);
                    fits &= are_weights && _mm256_movemask_ps(_mm256_castsi256_ps(numbers)) == 0;
                    _mm256_storeu_si256(out.as_mut_ptr().cast(), rounded);
                }
            }
            if !fits {
                Portable.weigh_impacts(multiplier, impacts, count, out);
            }
        }
    }

    impl Avx2 {
        #[inline(always)]
        fn eight_at_least(self, values: &[u32; 8], least: u32) -> u8 {
            // SAFETY: see above.
            unsafe {
                let values = _mm256_loadu_si256(values.as_ptr().cast());
                // value >= least where the larger of both is the value.
                let larger = _mm256_max_epu32(values, _mm256_set1_epi32(least as i32));
                _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(larger, values))) as u8
            }
        }
    }

    impl Lanes for Avx512 {
        #[inline(always)]
        fn at_least(self, values: &[u32; CHUNK], least: u32) -> u64 {
            let mut mask = 0;
            for (i, sixteen) in values.as_chunks::<16>().0.iter().enumerate() {
                mask |= u64::from(self.sixteen_at_least(sixteen, least)) << (16 * i);
            }
            mask
        }

        #[inline(always)]
        fn chunks_at_least(self, values: &[u32; CHUNKS], least: u32) -> u128 {
            let mut mask = 0;
            for (i, sixteen) in values.as_chunks::<16>().0.iter().enumerate() {
                mask |= u128::from(self.sixteen_at_least(sixteen, least)) << (16 * i);
            }
            mask
        }

        #[inline(always)]
        fn add_bounds(self, codes: &[u8], factor: u32, sums: &mut [u32; CHUNKS]) {
            let (sixteens, rest) = codes[..codes.len().min(CHUNKS)].as_chunks::<16>();
            let (sums, sums_of_rest) = sums.split_at_mut(16 * sixteens.len());
            for (codes, sums) in sixteens.iter().zip(sums.as_chunks_mut::<16>().0) {
                // SAFETY: see above.
                unsafe {
                    let codes = _mm512_cvtepu8_epi32(_mm_loadu_si128(codes.as_ptr().cast()));
                    let bounds = _mm512_mullo_epi32(codes, _mm512_set1_epi32(factor as i32));
                    let sum = _mm512_add_epi32(_mm512_loadu_si512(sums.as_ptr().cast()), bounds);
                    _mm512_storeu_si512(sums.as_mut_ptr().cast(), sum);
                }
            }
            for (sum, &code) in sums_of_rest.iter_mut().zip(rest) {
                *sum = sum.wrapping_add(u32::from(code).wrapping_mul(factor));
            }
        }

        #[inline(always)]
        fn weigh_frequencies(self, from: &BlockToWeigh<'_>, count: usize, out: &mut [u32; BLOCK]) {
            let codes = from.length_codes;
            let Some((last, last_word)) = last_to_gather(codes) else {
                return Portable.weigh_frequencies(from, count, out);
            };
            let frequencies = from.frequencies.as_chunks::<16>().0;
            let documents = from.documents.as_chunks::<16>().0;
            let rows = out.as_chunks_mut::<16>().0.iter_mut().zip(frequencies).zip(documents);
            for ((out, frequencies), documents) in rows.take(count.div_ceil(16)) {
                // SAFETY: see above. The gathers read four bytes from `word` on, which is at most `len - 4` and fits
                // the signed index, and the table of 256 norms at the place of a byte.
                unsafe {
                    let document = _mm512_loadu_si512(documents.as_ptr().cast());
                    let document = _mm512_min_epu32(document, _mm512_set1_epi32(last));
                    let word = _mm512_min_epu32(document, _mm512_set1_epi32(last_word));
                    let shift = _mm512_slli_epi32::<3>(_mm512_sub_epi32(document, word));
                    let words = _mm512_i32gather_epi32::<1>(word, codes.as_ptr().cast());
                    let code = _mm512_and_si512(_mm512_srlv_epi32(words, shift), _mm512_set1_epi32(0xFF));
                    let norm = _mm512_i32gather_ps::<4>(code, from.norms.table().as_ptr());
                    let frequency = _mm512_cvtepu32_ps(_mm512_loadu_si512(frequencies.as_ptr().cast()));
                    let saturation = _mm512_div_ps(frequency, _mm512_add_ps(frequency, norm));
                    let weight = _mm512_mul_ps(_mm512_set1_ps(from.multiplier), saturation);
                    let rounded = rounded(_mm512_mul_ps(weight, _mm512_set1_ps(ONE)));
                    _mm512_storeu_si512(out.as_mut_ptr().cast(), rounded);
                }
            }
        }

        #[inline(always)]
        fn weigh_impacts(self, multiplier: f32, impacts: &[u32; BLOCK], count: usize, out: &mut [u32; BLOCK]) {
            let blocks = out.as_chunks_mut::<16>().0.iter_mut().zip(impacts.as_chunks::<16>().0);
            for (out, impacts) in blocks.take(count.div_ceil(16)) {
                // SAFETY: see above.
                unsafe {
                    let impact = _mm512_cvtepu32_ps(_mm512_loadu_si512(impacts.as_ptr().cast()));
                    let rounded = rounded(_mm512_mul_ps(_mm512_set1_ps(multiplier), impact));
                    _mm512_storeu_si512(out.as_mut_ptr().cast(), rounded);
                }
            }
        }

        #[inline(always)]
        fn add_frequencies(self, chunk: &ChunkToWeigh<'_>, norms: &Norms, scores: &mut [u32; CHUNK]) -> u64 {
            let Some(codes) = chunk.length_codes.first_chunk::<CHUNK>() else {
                return chunk.word;
            };
            self.add_sixteens(chunk, scores, |group, values| {
                let codes = codes.as_chunks::<16>().0[group];
                // SAFETY: see above. The gather reads the table of 256 norms at the place of a byte.
                unsafe {
                    let code = _mm512_cvtepu8_epi32(_mm_loadu_si128(codes.as_ptr().cast()));
                    let norm = _mm512_i32gather_ps::<4>(code, norms.table().as_ptr());
                    let frequency = _mm512_cvtepu32_ps(values);
                    let saturation = _mm512_div_ps(frequency, _mm512_add_ps(frequency, norm));
                    let weight = _mm512_mul_ps(_mm512_set1_ps(chunk.multiplier), saturation);
                    rounded(_mm512_mul_ps(weight, _mm512_set1_ps(ONE)))
                }
            })
        }

        #[inline(always)]
        fn add_impacts(self, chunk: &ChunkToWeigh<'_>, scores: &mut [u32; CHUNK]) -> u64 {
            self.add_sixteens(chunk, scores, |_, values| {
                // SAFETY: see above.
                unsafe { rounded(_mm512_mul_ps(_mm512_set1_ps(chunk.multiplier), _mm512_cvtepu32_ps(values))) }
            })
        }
    }

    /// Fewer postings of a chunk than this are faster one by one.
    const WORTH_LANES: u32 = 12;

    impl Avx512 {
        /// Adds the weights of a chunk sixteen documents at a time. `weigh` gets the number of the sixteen and their
        /// values; returns the bits whose values are 0 or too near the end of the values to be loaded at once.
        #[inline(always)]
        fn add_sixteens(
            self,
            chunk: &ChunkToWeigh<'_>,
            scores: &mut [u32; CHUNK],
            weigh: impl Fn(usize, __m512i) -> __m512i,
        ) -> u64 {
            if chunk.word.count_ones() < WORTH_LANES {
                return chunk.word;
            }
            let (mut rank, mut left) = (chunk.rank, 0);
            for (group, scores) in scores.as_chunks_mut::<16>().0.iter_mut().enumerate() {
                let members = (chunk.word >> (16 * group)) as u16;
                let first_bit = rank * chunk.bits;
                rank += members.count_ones() as usize;
                let Some(bytes) = chunk.values.get(first_bit / 8..).and_then(|bytes| bytes.first_chunk::<16>()) else {
                    left |= u64::from(members) << (16 * group);
                    continue;
                };
                // SAFETY: see above.
                unsafe {
                    let packed = u128::from_le_bytes(*bytes) >> (first_bit % 8);
                    let values = _mm512_cvtepu8_epi32(spread(packed, chunk.bits));
                    let values = _mm512_maskz_expand_epi32(members, values);
                    let known = _mm512_mask_test_epi32_mask(members, values, values);
                    let before = _mm512_loadu_si512(scores.as_ptr().cast());
                    let after = _mm512_mask_add_epi32(before, known, before, weigh(group, values));
                    _mm512_storeu_si512(scores.as_mut_ptr().cast(), after);
                    left |= u64::from(members & !known) << (16 * group);
                }
            }
            left
        }

        #[inline(always)]
        fn sixteen_at_least(self, values: &[u32; 16], least: u32) -> u16 {
            // SAFETY: see above.
            unsafe {
                let values = _mm512_loadu_si512(values.as_ptr().cast());
                _mm512_cmpge_epu32_mask(values, _mm512_set1_epi32(least as i32))
            }
        }
    }

    /// The last byte that there is and the last of which four can be read, as signed indexes; `None` where a gather
    /// cannot reach them all.
    #[inline(always)]
    fn last_to_gather(bytes: &[u8]) -> Option<(i32, i32)> {
        let last = i32::try_from(bytes.len().checked_sub(1)?).ok()?;
        Some((last, last.checked_sub(3).filter(|&word| word >= 0)?))
    }

    /// Sixteen packed values of 2, 4 or 8 bits as bytes.
    ///
    /// # Safety
    /// The processor has BMI2.
    #[inline(always)]
    unsafe fn spread(packed: u128, bits: usize) -> __m128i {
        // SAFETY: the caller has the feature.
        unsafe {
            let eight = |values: u64, mask: u64| _pdep_u64(values, mask) as i64;
            match bits {
                2 => {
                    let mask = 0x0303_0303_0303_0303;
                    _mm_set_epi64x(eight((packed >> 16) as u64, mask), eight(packed as u64, mask))
                }
                4 => {
                    let mask = 0x0F0F_0F0F_0F0F_0F0F;
                    _mm_set_epi64x(eight((packed >> 32) as u64, mask), eight(packed as u64, mask))
                }
                _ => _mm_set_epi64x((packed >> 64) as i64, packed as i64),
            }
        }
    }

    /// Rounds half to even, to at least 1; whether all are below 2^31, which is as far as these lanes go.
    ///
    /// # Safety
    /// The processor has AVX2.
    #[inline(always)]
    unsafe fn rounded_eight(weights: __m256) -> (__m256i, bool) {
        // SAFETY: the caller has the feature.
        unsafe {
            let rounded = _mm256_max_epi32(_mm256_cvtps_epi32(weights), _mm256_set1_epi32(1));
            let below = _mm256_cmp_ps::<_CMP_LT_OQ>(weights, _mm256_set1_ps((1u32 << 31) as f32));
            (rounded, _mm256_movemask_ps(below) == 0xFF)
        }
    }

    /// Rounds half to even, to at least 1. What is beyond 32 bits becomes the largest number, as `as u32` does it.
    ///
    /// # Safety
    /// The processor has AVX-512F.
    #[inline(always)]
    unsafe fn rounded(weights: __m512) -> __m512i {
        // SAFETY: the caller has the feature.
        unsafe {
            let rounded = _mm512_cvt_roundps_epu32::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(weights);
            _mm512_max_epu32(rounded, _mm512_set1_epi32(1))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanner_index::weight::Bm25;
    use proptest::prelude::*;

    /// All that lanes can compute, from the same numbers.
    #[derive(Clone, Debug)]
    struct Everything {
        numbers: Vec<u32>,
        least: u32,
        codes: Vec<u8>,
        factor: u32,
        frequencies: Vec<u32>,
        multiplier: f32,
        length_codes: Vec<u8>,
        count: usize,
        word: u64,
    }

    type Results = (u64, u128, [u32; CHUNKS], [u32; BLOCK], [u32; BLOCK], usize, [[u32; CHUNK]; 2]);

    impl Everything {
        fn with(&self, lanes: impl Lanes) -> Results {
            let numbers: [u32; BLOCK] = self.numbers[..].try_into().unwrap();
            let frequencies = self.frequencies[..].try_into().unwrap();
            let mut sorted = numbers;
            sorted.sort_unstable();
            let mut sums = numbers;
            lanes.add_bounds(&self.codes, self.factor, &mut sums);
            let norms = Bm25::default().norms(50.0);
            let (mut weights, mut impacts) = ([0; BLOCK], [0; BLOCK]);
            let block = BlockToWeigh {
                multiplier: self.multiplier,
                frequencies: &frequencies,
                documents: &numbers,
                norms: &norms,
                length_codes: &self.length_codes,
            };
            lanes.weigh_frequencies(&block, self.count, &mut weights);
            lanes.weigh_impacts(self.multiplier, &frequencies, self.count, &mut impacts);
            weights[self.count..].fill(0);
            impacts[self.count..].fill(0);
            let chunk = numbers[..CHUNK].try_into().unwrap();
            let masks = (lanes.at_least(chunk, self.least), lanes.chunks_at_least(&numbers, self.least));
            let chunks = [4, 8].map(|bits| self.add_chunk(lanes, bits, &norms, *chunk));
            (masks.0, masks.1, sums, weights, impacts, lanes.count_below(&sorted, self.least), chunks)
        }

        /// Adds a chunk's frequencies, or its impacts if they have eight bits, what lanes leave out one by one; a 0
        /// counts as 20.
        fn add_chunk(&self, lanes: impl Lanes, bits: usize, norms: &Norms, mut scores: [u32; CHUNK]) -> [u32; CHUNK] {
            let (values, length_codes) = (&self.codes[..], &self.length_codes[..]);
            let chunk =
                ChunkToWeigh { multiplier: self.multiplier, word: self.word, rank: 3, values, bits, length_codes };
            let left = match bits {
                8 => lanes.add_impacts(&chunk, &mut scores),
                _ => lanes.add_frequencies(&chunk, norms, &mut scores),
            };
            for bit in (0..CHUNK).filter(|bit| left >> bit & 1 == 1) {
                let rank = chunk.rank + (chunk.word & ((1 << bit) - 1)).count_ones() as usize;
                let byte = u32::from(values.get(rank * bits / 8).copied().unwrap_or(0));
                let value = match byte >> (rank * bits % 8) & ((1 << bits) - 1) {
                    0 => 20,
                    value => value,
                };
                let code = length_codes.get(bit).copied().unwrap_or(0);
                let weight = match bits {
                    8 => impact_units(self.multiplier, value),
                    _ => units(self.multiplier, saturation(value, norms.of(code))),
                };
                scores[bit] = scores[bit].wrapping_add(weight);
            }
            scores
        }
    }

    impl WithLanes for &Everything {
        type Output = Results;

        #[inline(always)]
        fn run<L: Lanes>(self, lanes: L) -> Results {
            self.with(lanes)
        }
    }

    fn everything() -> impl Strategy<Value = Everything> {
        let number = prop_oneof![3 => 0u32..40, 1 => 0u32..100_000, 1 => 0u32..];
        let frequency = prop_oneof![4 => 1u32..5, 2 => 1u32..1000, 1 => 1u32..];
        // Some beyond 31 bits, or none: lanes may go another way for a block with one.
        let frequencies = prop_oneof![
            prop::collection::vec(frequency, BLOCK),
            prop::collection::vec(prop_oneof![4 => 1u32..5, 1 => 1u32..1000], BLOCK),
        ];
        (
            prop::collection::vec(number.clone(), BLOCK),
            number,
            prop::collection::vec(0u8.., 0..=CHUNKS),
            0u32..1 << 22,
            frequencies,
            prop_oneof![1e-6f32..20.0, 1.0f32..1e6],
            prop::collection::vec(0u8.., 0..200),
            (0..=BLOCK, prop_oneof![0u64.., Just(u64::MAX)]),
        )
            .prop_map(
                |(numbers, least, codes, factor, frequencies, multiplier, length_codes, (count, word))| Everything {
                    numbers,
                    least,
                    codes,
                    factor,
                    frequencies,
                    multiplier,
                    length_codes,
                    count,
                    word,
                },
            )
    }

    proptest! {
        #[test]
        fn all_lanes_give_the_same_numbers(everything in everything()) {
            let expected = everything.with(Portable);
            for widest in [Widest::Portable, Widest::Avx2, Widest::Any] {
                prop_assert_eq!(&run(widest, &everything), &expected, "{:?}", widest);
            }
        }
    }
}
