//! AVX2 and AVX-512. The macros hold the logic that both share; [`eight`] and [`sixteen`]
//! give the instructions of each width the same names.
//!
//! Safety, everywhere in here: the token proves the CPU features, and loads and stores go through references to arrays
//! that are as long as the register, or as stated.

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

    /// Bit `i` is set where the numbers of lane `i` are equal.
    #[inline(always)]
    pub unsafe fn equal(numbers: Numbers, others: Numbers) -> u8 {
        // SAFETY: see `x86`.
        unsafe { _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(numbers, others))) as u8 }
    }

    /// Bit `i` is set where any lane has the number of lane `i`.
    #[inline(always)]
    pub unsafe fn any_equal(numbers: Numbers, others: Numbers) -> u8 {
        // SAFETY: see `x86`. Every lane of the one meets every lane of the other: four turns within the halves, for
        // both orders of the halves.
        unsafe {
            let mut found = _mm256_setzero_si256();
            for others in [others, _mm256_permute2x128_si256::<1>(others, others)] {
                found = _mm256_or_si256(found, _mm256_cmpeq_epi32(numbers, others));
                found =
                    _mm256_or_si256(found, _mm256_cmpeq_epi32(numbers, _mm256_shuffle_epi32::<0b00_11_10_01>(others)));
                found =
                    _mm256_or_si256(found, _mm256_cmpeq_epi32(numbers, _mm256_shuffle_epi32::<0b01_00_11_10>(others)));
                found =
                    _mm256_or_si256(found, _mm256_cmpeq_epi32(numbers, _mm256_shuffle_epi32::<0b10_01_00_11>(others)));
            }
            _mm256_movemask_ps(_mm256_castsi256_ps(found)) as u8
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
        _mm512_add_ps as add_floats, _mm512_and_si512 as and, _mm512_cmpeq_epi32_mask as equal,
        _mm512_cmpge_epu32_mask as at_least, _mm512_div_ps as divide_floats, _mm512_loadu_si512 as load,
        _mm512_min_epu32 as min, _mm512_mul_ps as multiply_floats, _mm512_set1_epi32 as splat,
        _mm512_set1_ps as splat_float, _mm512_slli_epi32 as shift_left, _mm512_srlv_epi32 as shift_right,
        _mm512_storeu_si512 as store, _mm512_sub_epi32 as subtract,
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

    /// Bit `i` is set where any lane has the number of lane `i`.
    #[inline(always)]
    pub unsafe fn any_equal(numbers: Numbers, others: Numbers) -> u16 {
        // SAFETY: see `x86`. Every lane of the one meets every lane of the other: four turns of the quarters, each with
        // four turns within the quarters.
        unsafe {
            let turned = [
                others,
                _mm512_shuffle_epi32::<0b00_11_10_01>(others),
                _mm512_shuffle_epi32::<0b01_00_11_10>(others),
                _mm512_shuffle_epi32::<0b10_01_00_11>(others),
            ];
            let differs = differs(numbers, &turned)
                & differs(_mm512_alignr_epi32::<4>(numbers, numbers), &turned).rotate_left(4)
                & differs(_mm512_alignr_epi32::<8>(numbers, numbers), &turned).rotate_left(8)
                & differs(_mm512_alignr_epi32::<12>(numbers, numbers), &turned).rotate_left(12);
            !differs
        }
    }

    /// Bit `i` is set where lane `i` differs from that of all others.
    #[inline(always)]
    unsafe fn differs(numbers: Numbers, others: &[Numbers; 4]) -> u16 {
        let mut mask = u16::MAX;
        for &others in others {
            // SAFETY: see `x86`.
            mask = unsafe { _mm512_mask_cmpneq_epi32_mask(mask, numbers, others) };
        }
        mask
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
        fn find(self, numbers: &[u32; BLOCK], lasts: &[u32; GROUPS], target: u32) -> (usize, bool) {
            use $registers::*;
            // SAFETY: see `x86`.
            let enough = unsafe { eight::at_least(eight::load(lasts.as_ptr().cast()), eight::splat(target as i32)) };
            let group = (!enough).count_ones() as usize % GROUPS;
            let mut found = 0;
            for (i, numbers) in numbers.as_chunks::<GROUP>().0[group].as_chunks::<WIDTH>().0.iter().enumerate() {
                // SAFETY: see `x86`.
                let bits = unsafe { equal(load(numbers.as_ptr().cast()), splat(target as i32)) };
                found |= u32::from(bits) << (WIDTH * i);
            }
            ((GROUP * group + found.trailing_zeros() as usize) % BLOCK, found != 0)
        }

        #[inline(always)]
        fn common(
            self,
            numbers: &[u32; BLOCK],
            lasts: &[u32; GROUPS],
            targets: &[u32; BLOCK],
            range: Range<usize>,
        ) -> u128 {
            use $registers::*;
            if range.len() <= MERGED {
                return self.find_each(numbers, lasts, targets, range);
            }
            let first = targets[range.start];
            // SAFETY: see `x86`.
            let enough = unsafe { eight::at_least(eight::load(lasts.as_ptr().cast()), eight::splat(first as i32)) };
            let mut found = [0; BLOCK / WIDTH];
            let (mut i, mut j) = ((!enough).count_ones() as usize * (GROUP / WIDTH), range.start / WIDTH);
            let (groups, of_targets) = (numbers.as_chunks::<WIDTH>().0, targets.as_chunks::<WIDTH>().0);
            while i < groups.len() && WIDTH * j < range.end {
                let (group, some) = (&groups[i], &of_targets[j]);
                // SAFETY: see `x86`.
                found[j] |= unsafe { any_equal(load(some.as_ptr().cast()), load(group.as_ptr().cast())) };
                // Which group ends first is hard to predict, so there is no branch.
                let (last, last_target) = (group[WIDTH - 1], targets[range.end.min(WIDTH * j + WIDTH) - 1]);
                i += usize::from(last <= last_target);
                j += usize::from(last_target <= last);
            }
            let found = found.iter().rev().fold(0, |all, &found| all << WIDTH | u128::from(found));
            found & bits(range)
        }

        #[inline(always)]
        fn scores_at_least<const N: usize>(
            self,
            scores: &[u32; N],
            documents: &[u32; BLOCK],
            origin: u32,
            least: u32,
        ) -> u128 {
            use $registers::*;
            const { assert!(N.is_power_of_two() && N <= 1 << 30) };
            let mut mask = 0;
            for (i, documents) in documents.as_chunks::<WIDTH>().0.iter().enumerate() {
                // SAFETY: see `x86`. The gather reads below N.
                let bits = unsafe {
                    let distances = subtract(load(documents.as_ptr().cast()), splat(origin as i32));
                    let offsets = and(distances, splat((N - 1) as i32));
                    at_least(gather::<4>(scores.as_ptr().cast(), offsets), splat(least as i32))
                };
                mask |= u128::from(bits) << (WIDTH * i);
            }
            mask
        }

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
    fn keep_strong<const N: usize, const M: usize>(
        self,
        offsets: &mut [u32],
        count: usize,
        (scores, bounds): (&[u32; N], Option<&[u32; M]>),
        least: u32,
    ) -> usize {
        use sixteen::*;
        const { assert!(N.is_power_of_two() && N <= 1 << 30 && M * CHUNK == N) };
        assert!(offsets.len() >= count + WIDTH);
        let (mut kept, mut i) = (0, 0);
        while i < count {
            let members = if count - i >= WIDTH { u16::MAX } else { (1 << (count - i)) - 1 };
            // SAFETY: see `x86`. Offsets have WIDTH numbers from `i` and from `kept`, which is at most `i`, on; the
            // gathers read below N and below M.
            unsafe {
                let all = load(offsets.as_ptr().add(i).cast());
                let within = and(all, splat((N - 1) as i32));
                let mut found = gather::<4>(scores.as_ptr().cast(), within);
                if let Some(bounds) = bounds {
                    let chunk = _mm512_srli_epi32::<{ CHUNK.ilog2() }>(within);
                    found = _mm512_add_epi32(found, gather::<4>(bounds.as_ptr().cast(), chunk));
                }
                let strong = _mm512_mask_cmpge_epu32_mask(members, found, splat(least as i32));
                store(offsets.as_mut_ptr().add(kept).cast(), _mm512_maskz_compress_epi32(strong, all));
                kept += strong.count_ones() as usize;
            }
            i += WIDTH;
        }
        kept
    }

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
