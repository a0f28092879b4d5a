//! The inner loops of the algorithms over several numbers at once: portable, AVX2 and AVX-512.
//!
//! A set of lanes is a token: an [`Avx2`] or [`Avx512`] exists only if [`run`] has detected the CPU features, and its
//! methods rely on that. The methods are always inlined, so an algorithm that [`run`] calls is compiled as a whole once
//! for each set, with the instructions of that set: its loops contain neither calls nor tests for features.
//! Closures do not inherit target features, so intrinsics are not inlined into them: this file has plain loops instead.
#![expect(unsafe_code, reason = "intrinsics that load, store or need a CPU feature, behind safe methods")]

use lanner_index::codec::BLOCK;
use lanner_index::weight::{Norms, impact_units, saturation, units};

/// Documents in a chunk.
pub const CHUNK: usize = lanner_index::format::dense::CHUNK as usize;
/// Chunks whose bounds are added up at once.
pub const CHUNKS: usize = 128;

/// Numbers handled side by side. All sets give the same results; a property test compares them.
pub trait Lanes: Copy {
    /// Bit `i` is set where `values[i] >= least`.
    fn at_least(self, values: &[u32; CHUNK], least: u32) -> u64;

    /// Computes the weights of the first `count` frequencies, each as `weight::units` does. May change the rest of
    /// `out`.
    fn weigh_frequencies(self, from: &BlockToWeigh<'_>, count: usize, out: &mut [u32; BLOCK]);

    /// Computes the weights of the first `count` impacts, each as `weight::impact_units` does. May change the rest of
    /// `out`.
    fn weigh_impacts(self, multiplier: f32, impacts: &[u32; BLOCK], count: usize, out: &mut [u32; BLOCK]);

    /// Bit `i` is set where `values[i] >= least`.
    #[inline(always)]
    fn chunks_at_least(self, values: &[u32; CHUNKS], least: u32) -> u128 {
        let mut mask = 0;
        for (i, half) in values.as_chunks::<CHUNK>().0.iter().enumerate() {
            mask |= u128::from(self.at_least(half, least)) << (CHUNK * i);
        }
        mask
    }

    /// Adds `codes[i] · factor` to `sums[i]`.
    #[inline(always)]
    fn add_bounds(self, codes: &[u8], factor: u32, sums: &mut [u32; CHUNKS]) {
        for (sum, &code) in sums.iter_mut().zip(codes) {
            *sum = sum.wrapping_add(u32::from(code).wrapping_mul(factor));
        }
    }

    /// Counts the numbers of an ascending block that are below `target`.
    #[inline(always)]
    fn count_below(self, numbers: &[u32; BLOCK], target: u32) -> usize {
        let (low, high) = numbers.split_at(BLOCK / 2);
        let half = if high[0] < target { high } else { low };
        let below = !self.at_least(half.as_array().expect("half a block is as long as a chunk"), target);
        below.count_ones() as usize + if high[0] < target { BLOCK / 2 } else { 0 }
    }

    /// Adds the weights of a chunk's frequencies to its scores where SIMD pays, and returns the bits of the postings
    /// that are left to the caller.
    #[inline(always)]
    fn add_frequencies(self, chunk: &ChunkToWeigh<'_>, _norms: &Norms, _scores: &mut [u32; CHUNK]) -> u64 {
        chunk.word
    }

    /// Adds the weights of a chunk's impacts to its scores where SIMD pays, and returns the bits of the postings that
    /// are left to the caller.
    #[inline(always)]
    fn add_impacts(self, chunk: &ChunkToWeigh<'_>, _scores: &mut [u32; CHUNK]) -> u64 {
        chunk.word
    }
}

/// The postings of a dense list in a chunk, with the inputs of their weights.
pub struct ChunkToWeigh<'a> {
    /// The factor of saturations or impacts.
    pub multiplier: f32,
    /// The documents: bit `i` is the chunk's document `i`.
    pub word: u64,
    /// The position of the first posting's value in `values`.
    pub rank: usize,
    /// The packed values of the list by document: impacts, or frequencies, of which 0 means that it is stored
    /// elsewhere.
    pub values: &'a [u8],
    /// Bits of a value: 2, 4 or 8.
    pub bits: usize,
    /// The length codes, starting at the chunk's first document.
    pub length_codes: &'a [u8],
}

/// The frequencies of a block, with the inputs of their weights.
pub struct BlockToWeigh<'a> {
    /// The factor of saturations.
    pub multiplier: f32,
    /// The frequencies.
    pub frequencies: &'a [u32; BLOCK],
    /// The documents.
    pub documents: &'a [u32; BLOCK],
    /// The norm of each length code.
    pub norms: &'a Norms,
    /// The length code of each document; a document beyond the end counts as the last.
    pub length_codes: &'a [u8],
}

/// A computation that is generic over the set of lanes.
pub trait WithLanes {
    /// The result.
    type Output;

    /// Runs the computation. Implementations are `#[inline(always)]`, or the set's instructions are not used.
    fn run<L: Lanes>(self, lanes: L) -> Self::Output;
}

/// The widest set of lanes that may be used, narrowest first. Tests lower it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SimdLevel {
    /// [`Portable`], which every CPU has.
    Portable,
    /// [`Avx2`] where the CPU has it.
    Avx2,
    /// [`Avx512`] where the CPU has it.
    #[default]
    Avx512,
}

/// Runs a computation with the widest lanes that the CPU has, up to a level.
pub fn run<T: WithLanes>(level: SimdLevel, task: T) -> T::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(lanes) = Avx512::detect().filter(|_| level >= SimdLevel::Avx512) {
            // SAFETY: the token proves that the CPU has the features.
            return unsafe { lanes.run(task) };
        }
        if let Some(lanes) = Avx2::detect().filter(|_| level >= SimdLevel::Avx2) {
            // SAFETY: the token proves that the CPU has the features.
            return unsafe { lanes.run(task) };
        }
    }
    task.run(Portable)
}

/// One number at a time; the compiler may still vectorize for the baseline CPU.
#[derive(Clone, Copy)]
pub struct Portable;

impl Lanes for Portable {
    #[inline(always)]
    fn at_least(self, values: &[u32; CHUNK], least: u32) -> u64 {
        values.iter().rev().fold(0, |mask, &value| mask << 1 | u64::from(value >= least))
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

/// AVX2 and AVX-512. The macros hold the logic that both share; [`eight`](x86::eight) and [`sixteen`](x86::sixteen)
/// give the instructions of each width the same names.
///
/// Safety, everywhere in here: the token proves the CPU features, and loads and stores go through references to arrays
/// that are as long as the register, or as stated.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use lanner_index::weight::ONE;
    use std::arch::x86_64::*;

    /// Defines a set of lanes by the CPU features that it needs.
    macro_rules! token {
        ($(#[$docs:meta])* $set:ident: $($feature:tt)+) => {
            $(#[$docs])*
            #[derive(Clone, Copy)]
            pub struct $set(());

            impl $set {
                /// Returns the token if the CPU has the features.
                pub fn detect() -> Option<$set> {
                    ($(is_x86_feature_detected!($feature))&&+).then_some($set(()))
                }

                /// Runs a computation compiled for the features.
                #[target_feature($(enable = $feature),+)]
                pub(super) fn run<T: WithLanes>(self, task: T) -> T::Output {
                    task.run(self)
                }
            }
        };
    }

    token! {
        /// Eight numbers at a time.
        Avx2: "avx2" "popcnt" "lzcnt" "bmi1" "bmi2"
    }
    token! {
        /// Sixteen numbers at a time.
        Avx512: "avx512f" "avx512bw" "avx512vl" "avx512dq" "avx2" "popcnt" "lzcnt" "bmi1" "bmi2"
    }

    /// Registers of eight numbers, for a CPU with AVX2.
    mod eight {
        use std::arch::x86_64::*;
        pub use std::arch::x86_64::{
            _mm256_add_ps as add_floats, _mm256_and_si256 as and, _mm256_div_ps as divide_floats,
            _mm256_i32gather_epi32 as gather, _mm256_i32gather_ps as gather_floats, _mm256_loadu_si256 as load,
            _mm256_min_epu32 as min, _mm256_mul_ps as multiply_floats, _mm256_set1_epi32 as splat,
            _mm256_set1_ps as splat_float, _mm256_slli_epi32 as shift_left, _mm256_srlv_epi32 as shift_right,
            _mm256_storeu_si256 as store, _mm256_sub_epi32 as subtract,
        };

        pub const WIDTH: usize = 8;
        pub type Floats = __m256;
        pub type Numbers = __m256i;

        /// Bit `i` is set where `values[i] >= least`.
        #[inline(always)]
        pub unsafe fn at_least(values: Numbers, least: Numbers) -> u8 {
            // SAFETY: see `x86`. A value is at least as large where it is the larger of the two.
            unsafe {
                let is_larger = _mm256_cmpeq_epi32(_mm256_max_epu32(values, least), values);
                _mm256_movemask_ps(_mm256_castsi256_ps(is_larger)) as u8
            }
        }

        /// Converts to floats, and returns whether all numbers are below 2^31, the limit of this conversion.
        #[inline(always)]
        pub unsafe fn to_floats(numbers: Numbers) -> (Floats, bool) {
            // SAFETY: see `x86`.
            unsafe { (_mm256_cvtepi32_ps(numbers), _mm256_movemask_ps(_mm256_castsi256_ps(numbers)) == 0) }
        }

        /// Rounds half to even, to at least 1, and returns whether all are below 2^31, the limit of this conversion.
        #[inline(always)]
        pub unsafe fn to_weights(weights: Floats) -> (Numbers, bool) {
            // SAFETY: see `x86`.
            unsafe {
                let rounded = _mm256_max_epi32(_mm256_cvtps_epi32(weights), _mm256_set1_epi32(1));
                let below = _mm256_cmp_ps::<_CMP_LT_OQ>(weights, _mm256_set1_ps((1u32 << 31) as f32));
                (rounded, _mm256_movemask_ps(below) == 0xFF)
            }
        }
    }

    /// Registers of sixteen numbers, for a CPU with AVX-512F.
    mod sixteen {
        use std::arch::x86_64::*;
        pub use std::arch::x86_64::{
            _mm512_add_ps as add_floats, _mm512_and_si512 as and, _mm512_cmpge_epu32_mask as at_least,
            _mm512_div_ps as divide_floats, _mm512_loadu_si512 as load, _mm512_min_epu32 as min,
            _mm512_mul_ps as multiply_floats, _mm512_set1_epi32 as splat, _mm512_set1_ps as splat_float,
            _mm512_slli_epi32 as shift_left, _mm512_srlv_epi32 as shift_right, _mm512_storeu_si512 as store,
            _mm512_sub_epi32 as subtract,
        };

        pub const WIDTH: usize = 16;
        pub type Floats = __m512;
        pub type Numbers = __m512i;

        /// Gathers in the order of arguments that AVX2 has.
        #[inline(always)]
        pub unsafe fn gather<const SCALE: i32>(from: *const i32, offsets: Numbers) -> Numbers {
            // SAFETY: the caller may read at the offsets.
            unsafe { _mm512_i32gather_epi32::<SCALE>(offsets, from) }
        }

        /// Gathers in the order of arguments that AVX2 has.
        #[inline(always)]
        pub unsafe fn gather_floats<const SCALE: i32>(from: *const f32, offsets: Numbers) -> Floats {
            // SAFETY: the caller may read at the offsets.
            unsafe { _mm512_i32gather_ps::<SCALE>(offsets, from) }
        }

        /// Converts to floats, which is possible for all numbers.
        #[inline(always)]
        pub unsafe fn to_floats(numbers: Numbers) -> (Floats, bool) {
            // SAFETY: see `x86`.
            unsafe { (_mm512_cvtepu32_ps(numbers), true) }
        }

        /// Rounds half to even, to at least 1; numbers beyond 32 bits become the largest, as with `as u32`.
        #[inline(always)]
        pub unsafe fn to_weights(weights: Floats) -> (Numbers, bool) {
            // SAFETY: see `x86`.
            unsafe {
                let rounded = _mm512_cvt_roundps_epu32::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(weights);
                (_mm512_max_epu32(rounded, _mm512_set1_epi32(1)), true)
            }
        }
    }

    /// Defines a function that weighs frequencies, and returns whether the registers could compute all weights.
    macro_rules! frequency_weights {
        ($set:ident, $registers:ident) => {
            impl $set {
                #[inline(always)]
                unsafe fn frequency_weights(
                    multiplier: f32,
                    frequencies: $registers::Numbers,
                    norms: $registers::Floats,
                ) -> ($registers::Numbers, bool) {
                    use $registers::*;
                    // SAFETY: see `x86`.
                    unsafe {
                        let (frequencies, are_converted) = to_floats(frequencies);
                        let saturations = divide_floats(frequencies, add_floats(frequencies, norms));
                        let weights = multiply_floats(splat_float(multiplier), saturations);
                        let (weights, are_weights) = to_weights(multiply_floats(weights, splat_float(ONE)));
                        (weights, are_converted & are_weights)
                    }
                }
            }
        };
    }

    frequency_weights!(Avx2, eight);
    frequency_weights!(Avx512, sixteen);

    /// Defines the methods of [`Lanes`] that every set has.
    macro_rules! methods {
        ($registers:ident) => {
            #[inline(always)]
            fn at_least(self, values: &[u32; CHUNK], least: u32) -> u64 {
                use $registers::*;
                let mut mask = 0;
                for (i, values) in values.as_chunks::<WIDTH>().0.iter().enumerate() {
                    // SAFETY: see `x86`.
                    let bits = unsafe { at_least(load(values.as_ptr().cast()), splat(least as i32)) };
                    mask |= u64::from(bits) << (WIDTH * i);
                }
                mask
            }

            #[inline(always)]
            fn weigh_frequencies(self, from: &BlockToWeigh<'_>, count: usize, out: &mut [u32; BLOCK]) {
                use $registers::*;
                let codes = from.length_codes;
                let Some((last, last_word)) = last_to_gather(codes) else {
                    return Portable.weigh_frequencies(from, count, out);
                };
                let frequencies = from.frequencies.as_chunks::<WIDTH>().0;
                let documents = from.documents.as_chunks::<WIDTH>().0;
                let rows = out.as_chunks_mut::<WIDTH>().0.iter_mut().zip(frequencies).zip(documents);
                let mut fits = true;
                for ((out, frequencies), documents) in rows.take(count.div_ceil(WIDTH)) {
                    // SAFETY: see `x86`. The gathers read four bytes from `word` on, which is at most `len - 4` and
                    // fits the signed offset, and the table of 256 norms at the position of a byte.
                    unsafe {
                        let document = min(load(documents.as_ptr().cast()), splat(last));
                        let word = min(document, splat(last_word));
                        let shift = shift_left::<3>(subtract(document, word));
                        let code = and(shift_right(gather::<1>(codes.as_ptr().cast(), word), shift), splat(0xFF));
                        let norm = gather_floats::<4>(from.norms.table().as_ptr(), code);
                        let frequency = load(frequencies.as_ptr().cast());
                        let (weights, are_weights) = Self::frequency_weights(from.multiplier, frequency, norm);
                        fits &= are_weights;
                        store(out.as_mut_ptr().cast(), weights);
                    }
                }
                if !fits {
                    Portable.weigh_frequencies(from, count, out);
                }
            }

            #[inline(always)]
            fn weigh_impacts(self, multiplier: f32, impacts: &[u32; BLOCK], count: usize, out: &mut [u32; BLOCK]) {
                use $registers::*;
                let rows = out.as_chunks_mut::<WIDTH>().0.iter_mut().zip(impacts.as_chunks::<WIDTH>().0);
                let mut fits = true;
                for (out, impacts) in rows.take(count.div_ceil(WIDTH)) {
                    // SAFETY: see `x86`.
                    unsafe {
                        let (impacts, are_converted) = to_floats(load(impacts.as_ptr().cast()));
                        let (weights, are_weights) = to_weights(multiply_floats(splat_float(multiplier), impacts));
                        fits &= are_converted & are_weights;
                        store(out.as_mut_ptr().cast(), weights);
                    }
                }
                if !fits {
                    Portable.weigh_impacts(multiplier, impacts, count, out);
                }
            }
        };
    }

    impl Lanes for Avx2 {
        methods!(eight);
    }

    impl Lanes for Avx512 {
        methods!(sixteen);

        #[inline(always)]
        fn add_frequencies(self, chunk: &ChunkToWeigh<'_>, norms: &Norms, scores: &mut [u32; CHUNK]) -> u64 {
            match chunk.length_codes.first_chunk::<CHUNK>() {
                Some(codes) => self.add_sixteens(chunk, Some((norms, codes)), scores),
                None => chunk.word,
            }
        }

        #[inline(always)]
        fn add_impacts(self, chunk: &ChunkToWeigh<'_>, scores: &mut [u32; CHUNK]) -> u64 {
            self.add_sixteens(chunk, None, scores)
        }
    }

    /// Chunks with fewer postings than this are faster one posting at a time (decision 17).
    const LEAST_POSTINGS: u32 = 12;

    impl Avx512 {
        /// Adds the weights of a chunk sixteen documents at a time: of frequencies if there are norms and the chunk's
        /// length codes, else of impacts. Returns the bits whose values are 0, or too near the end of the values for a
        /// whole load.
        #[inline(always)]
        fn add_sixteens(
            self,
            chunk: &ChunkToWeigh<'_>,
            lengths: Option<(&Norms, &[u8; CHUNK])>,
            scores: &mut [u32; CHUNK],
        ) -> u64 {
            use sixteen::*;
            if chunk.word.count_ones() < LEAST_POSTINGS {
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
                // SAFETY: see `x86`. The gather reads the table of 256 norms at the position of a byte.
                unsafe {
                    let packed = u128::from_le_bytes(*bytes) >> (first_bit % 8);
                    let values = _mm512_cvtepu8_epi32(spread(packed, chunk.bits));
                    let values = _mm512_maskz_expand_epi32(members, values);
                    let known = _mm512_mask_test_epi32_mask(members, values, values);
                    let (weights, _) = match lengths {
                        Some((norms, codes)) => {
                            let codes = _mm_loadu_si128(codes.as_chunks::<16>().0[group].as_ptr().cast());
                            let norm = gather_floats::<4>(norms.table().as_ptr(), _mm512_cvtepu8_epi32(codes));
                            Self::frequency_weights(chunk.multiplier, values, norm)
                        }
                        None => to_weights(multiply_floats(splat_float(chunk.multiplier), to_floats(values).0)),
                    };
                    let before = load(scores.as_ptr().cast());
                    let after = _mm512_mask_add_epi32(before, known, before, weights);
                    store(scores.as_mut_ptr().cast(), after);
                    left |= u64::from(members & !known) << (16 * group);
                }
            }
            left
        }
    }

    /// Returns the offsets of the last byte and of the last four bytes, as signed numbers; `None` where a gather cannot
    /// reach them all.
    #[inline(always)]
    fn last_to_gather(bytes: &[u8]) -> Option<(i32, i32)> {
        let last = i32::try_from(bytes.len().checked_sub(1)?).ok()?;
        Some((last, last.checked_sub(3).filter(|&word| word >= 0)?))
    }

    /// Unpacks sixteen values of 2, 4 or 8 bits into bytes.
    #[inline(always)]
    unsafe fn spread(packed: u128, bits: usize) -> __m128i {
        let (half, mask) = match bits {
            2 => (16, 0x0303_0303_0303_0303),
            4 => (32, 0x0F0F_0F0F_0F0F_0F0F),
            _ => (64, u64::MAX),
        };
        // SAFETY: see `x86`; the caller's token includes BMI2.
        unsafe {
            let (low, high) = (_pdep_u64(packed as u64, mask), _pdep_u64((packed >> half) as u64, mask));
            _mm_set_epi64x(high as i64, low as i64)
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

        /// Adds a chunk's frequencies, or its impacts if they have eight bits. The postings that lanes leave to the
        /// caller are added one by one; a value of 0 counts as 20.
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
            for level in [SimdLevel::Portable, SimdLevel::Avx2, SimdLevel::Avx512] {
                prop_assert_eq!(&run(level, &everything), &expected, "{:?}", level);
            }
        }
    }
}
