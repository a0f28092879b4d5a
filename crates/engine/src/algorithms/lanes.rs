//! The inner loops of the algorithms over several numbers at once: portable, AVX2 and AVX-512.
//!
//! A set of lanes is a token: an [`Avx2`] or [`Avx512`] exists only if [`run`] has detected the CPU features, and its
//! methods rely on that. The methods are always inlined, so an algorithm that [`run`] calls is compiled as a whole once
//! for each set, with the instructions of that set: its loops contain neither calls nor tests for features.
//! Closures do not inherit target features, so intrinsics are not inlined into them: this file has plain loops instead.
#![expect(unsafe_code, reason = "intrinsics that load, store or need a CPU feature, behind safe methods")]

use lanner_index::codec::BLOCK;
use lanner_index::weight::{Norms, impact_units, saturation, units};
use std::ops::Range;

/// Documents in a chunk.
pub const CHUNK: usize = lanner_index::format::dense::CHUNK as usize;
/// Chunks whose bounds are added up at once.
pub const CHUNKS: usize = 128;

/// Numbers of a block that are searched at once.
pub const GROUP: usize = 16;
/// Such groups of a block.
pub const GROUPS: usize = BLOCK / GROUP;

/// More targets than this are merged with a block; fewer are searched for one by one.
pub const MERGED: usize = 32;

/// The last number of each group of a block.
#[inline(always)]
pub fn lasts_of(numbers: &[u32; BLOCK]) -> [u32; GROUPS] {
    std::array::from_fn(|group| numbers[GROUP * group + GROUP - 1])
}

/// The bits of some positions of a block.
#[inline(always)]
pub fn bits(positions: Range<usize>) -> u128 {
    let below = |position: usize| if position >= BLOCK { u128::MAX } else { (1 << position) - 1 };
    below(positions.end) & !below(positions.start)
}

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

    /// Keeps those of the first `count` offsets whose score, with the bound of its chunk, is at least `least`, and
    /// returns how many. The offsets have space for a block beyond the first `count`, whose contents may change.
    #[inline(always)]
    fn keep_strong<const N: usize, const M: usize>(
        self,
        offsets: &mut [u32],
        count: usize,
        (scores, bounds): (&[u32; N], Option<&[u32; M]>),
        least: u32,
    ) -> usize {
        let mut kept = 0;
        for i in 0..count {
            let offset = offsets[i];
            offsets[kept] = offset;
            let bound = bounds.map_or(0, |bounds| bounds[offset as usize / CHUNK % M]);
            kept += usize::from(scores[offset as usize % N].wrapping_add(bound) >= least);
        }
        kept
    }

    /// Bit `i` is set where the score of document `i` is at least `least`. The score of a document is at its distance
    /// from `origin`, modulo N.
    #[inline(always)]
    fn scores_at_least<const N: usize>(
        self,
        scores: &[u32; N],
        documents: &[u32; BLOCK],
        origin: u32,
        least: u32,
    ) -> u128 {
        let mut mask = 0;
        for (i, document) in documents.iter().enumerate() {
            mask |= u128::from(scores[document.wrapping_sub(origin) as usize % N] >= least) << i;
        }
        mask
    }

    /// Adds the bound of `codes[i]` to `sums[i]`.
    #[inline(always)]
    fn add_bounds(self, codes: &[u8], scale: CodeScale, sums: &mut [u32; CHUNKS]) {
        if scale.shift == 0 {
            for (sum, &code) in sums.iter_mut().zip(codes) {
                *sum = sum.wrapping_add(u32::from(code).wrapping_mul(scale.parts));
            }
            return;
        }
        for (sum, &code) in sums.iter_mut().zip(codes) {
            *sum = sum.wrapping_add(scale.bound(code));
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

    /// Returns the position of `target` in an ascending block, and whether it is there; `lasts` are those of the block.
    /// If it is not, the position is any of the block.
    #[inline(always)]
    fn find(self, numbers: &[u32; BLOCK], lasts: &[u32; GROUPS], target: u32) -> (usize, bool) {
        let group = lasts.iter().map(|&last| usize::from(last < target)).sum::<usize>() % GROUPS;
        let below = numbers.as_chunks::<GROUP>().0[group].iter().map(|&number| usize::from(number < target));
        let position = (group * GROUP + below.sum::<usize>()) % BLOCK;
        (position, numbers[position] == target)
    }

    /// Bit `i` is set where `numbers` has `targets[i]`, for the targets of a range. The numbers ascend, and the targets of
    /// the range do so strictly. `lasts` are those of `numbers`.
    #[inline(always)]
    fn common(
        self,
        numbers: &[u32; BLOCK],
        lasts: &[u32; GROUPS],
        targets: &[u32; BLOCK],
        range: Range<usize>,
    ) -> u128 {
        self.find_each(numbers, lasts, targets, range)
    }

    /// [`Lanes::common`], one target after the other.
    #[inline(always)]
    fn find_each(
        self,
        numbers: &[u32; BLOCK],
        lasts: &[u32; GROUPS],
        targets: &[u32; BLOCK],
        range: Range<usize>,
    ) -> u128 {
        let mut found = 0;
        for i in range {
            found |= u128::from(self.find(numbers, lasts, targets[i]).1) << i;
        }
        found
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

/// Turns codes of chunks into bounds: by a whole number of units, or of parts of a unit where a unit is much. Terms of
/// nearly every document weigh a few units.
#[derive(Clone, Copy, Debug, Default)]
pub struct CodeScale {
    parts: u32,
    shift: u32,
}

impl CodeScale {
    /// Steps below this many units are scaled in 256 parts of a unit; of others rounding up costs at most a part in 64.
    const SMALL: f64 = 64.0;
    const SHIFT: u32 = 8;

    /// Takes the units for each code.
    pub fn new(step: f64) -> CodeScale {
        let shift = if step < CodeScale::SMALL { CodeScale::SHIFT } else { 0 };
        // A weight is at least 1 even if its multiplier is 0.
        CodeScale { parts: (step * f64::from(1 << shift)).ceil().max(1.0) as u32, shift }
    }

    /// The bound of a chunk with a code.
    #[inline(always)]
    pub fn bound(self, code: u8) -> u32 {
        u32::from(code).wrapping_mul(self.parts).wrapping_add((1 << self.shift) - 1) >> self.shift
    }

    /// The largest bound that a chunk can have.
    pub fn largest(self) -> u64 {
        (255 * u64::from(self.parts)).div_ceil(1 << self.shift)
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

#[cfg(target_arch = "x86_64")]
mod x86;

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

    type Results = (u64, u128, [u32; CHUNKS], [u32; BLOCK], [u32; BLOCK], Searched, [[u32; CHUNK]; 2], Strong);
    /// How many numbers are below one, and where some are.
    type Searched = (usize, Vec<Option<usize>>);
    /// The scores of a block that are at least as large, and the offsets that are kept without and with bounds.
    type Strong = (u128, [Vec<u32>; 2]);

    impl Everything {
        fn with(&self, lanes: impl Lanes) -> Results {
            let numbers: [u32; BLOCK] = self.numbers[..].try_into().unwrap();
            let frequencies = self.frequencies[..].try_into().unwrap();
            let mut sorted = numbers;
            sorted.sort_unstable();
            let mut sums = numbers;
            lanes.add_bounds(&self.codes, CodeScale::new(f64::from(self.multiplier)), &mut sums);
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
            let below = (lanes.count_below(&sorted, self.least), self.found(lanes, &sorted));
            (masks.0, masks.1, sums, weights, impacts, below, chunks, self.strong(lanes))
        }

        /// Scores of a small window, as a repetition of the numbers, and offsets of it, as the codes.
        fn strong(&self, lanes: impl Lanes) -> Strong {
            const N: usize = 4 * CHUNK;
            let scores: [u32; N] = std::array::from_fn(|offset| self.numbers[offset % BLOCK]);
            let bounds: [u32; N / CHUNK] = std::array::from_fn(|chunk| self.factor % (chunk as u32 + 1));
            let documents = self.numbers[..].try_into().unwrap();
            let mask = lanes.scores_at_least(&scores, &documents, self.factor, self.least);
            let kept = [None, Some(&bounds)].map(|bounds| {
                let mut offsets: Vec<u32> = self.codes.iter().map(|&code| u32::from(code)).collect();
                let count = offsets.len();
                offsets.resize(count + BLOCK, 0);
                let kept = lanes.keep_strong(&mut offsets, count, (&scores, bounds), self.least);
                offsets.truncate(kept);
                offsets
            });
            (mask, kept)
        }

        /// Where some numbers, among them all of the block, are in the sorted block.
        fn found(&self, lanes: impl Lanes, sorted: &[u32; BLOCK]) -> Vec<Option<usize>> {
            let lasts = lasts_of(sorted);
            let targets = sorted.iter().flat_map(|&number| [number, number.wrapping_add(1)]).chain([self.least]);
            let find = |target| lanes.find(sorted, &lasts, target);
            // Of equal numbers any may be found.
            let first_of = |position: usize| sorted.partition_point(|&number| number < sorted[position]);
            targets.map(find).map(|(position, is_found)| is_found.then(|| first_of(position))).collect()
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

    /// Two ascending blocks, and a range of the second.
    struct TwoBlocks {
        numbers: [u32; BLOCK],
        targets: [u32; BLOCK],
        range: Range<usize>,
    }

    impl WithLanes for &TwoBlocks {
        type Output = u128;

        #[inline(always)]
        fn run<L: Lanes>(self, lanes: L) -> u128 {
            lanes.common(&self.numbers, &lasts_of(&self.numbers), &self.targets, self.range.clone())
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

        #[test]
        fn the_common_numbers_of_two_blocks_are_found(
            gaps in prop::collection::vec((1u32..6, 1u32..6), BLOCK),
            count in 0..=BLOCK,
            (start, end) in (0..=BLOCK, 0..=BLOCK),
        ) {
            let ascending = |gaps: &mut dyn Iterator<Item = u32>| -> [u32; BLOCK] {
                let mut numbers = gaps.scan(0, |last, gap| { *last += gap; Some(*last) });
                std::array::from_fn(|_| numbers.next().unwrap())
            };
            let mut numbers = ascending(&mut gaps.iter().map(|gaps| gaps.0));
            // As a block that is not full, and as what follows the targets.
            numbers[count..].fill(u32::MAX);
            let mut targets = ascending(&mut gaps.iter().map(|gaps| gaps.1));
            targets[end..].fill(7);
            let range = start.min(end)..end;
            let expected = range.clone().map(|i| u128::from(numbers.contains(&targets[i])) << i).sum::<u128>();
            let blocks = TwoBlocks { numbers, targets, range };
            for level in [SimdLevel::Portable, SimdLevel::Avx2, SimdLevel::Avx512] {
                prop_assert_eq!(run(level, &blocks), expected, "{:?}", level);
            }
        }
    }
}
