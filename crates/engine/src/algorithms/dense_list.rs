//! A dense list of a query: the bitmap with its multiplier and the bounds of its chunks.

use super::lanes::{CHUNK, CHUNKS, CodeScale, Lanes};
use super::weigher::Weigher;
use lanner_index::open::Dense;

/// A dense list of a query.
pub struct DenseList<'a> {
    /// The list.
    pub dense: Dense<'a>,
    /// The factor of its saturations or impacts.
    pub multiplier: f32,
    /// Its largest weight.
    pub bound: u32,
    /// A code for each chunk, of which `scale` makes a bound of the chunk's weights; empty if stored bounds do not hold.
    codes: &'a [u8],
    scale: CodeScale,
}

impl<'a> DenseList<'a> {
    /// Takes a dense list with its bounds.
    pub fn new(weigher: impl Weigher, dense: &Dense<'a>, multiplier: f32, bound: u32) -> DenseList<'a> {
        let (codes, scale) = weigher.chunk_bounds(dense, multiplier);
        DenseList { dense: *dense, multiplier, bound, codes, scale }
    }

    /// An upper bound of the list's weights in a chunk.
    #[inline(always)]
    pub fn bound_in(&self, chunk: usize) -> u32 {
        match self.codes.get(chunk) {
            Some(&code) => self.scale.bound(code),
            None => self.bound,
        }
    }

    /// Returns the largest bound that a chunk can have.
    pub fn largest_bound(&self) -> u64 {
        u64::from(self.bound).max(self.scale.largest())
    }

    /// Adds the bounds of the chunks, starting at chunk `start`, to `bounds`.
    #[inline(always)]
    pub fn add_bounds<L: Lanes>(&self, lanes: L, start: usize, bounds: &mut [u32; CHUNKS]) {
        match self.codes.get(start..) {
            Some(codes) if !self.codes.is_empty() => lanes.add_bounds(codes, self.scale, bounds),
            _ => bounds.iter_mut().for_each(|bound| *bound = bound.wrapping_add(self.bound)),
        }
    }

    /// Adds the weights of a chunk's postings to its scores, and returns the number of postings.
    #[inline(always)]
    pub fn add<L: Lanes, W: Weigher>(&self, lanes: L, weigher: W, chunk: usize, scores: &mut [u32; CHUNK]) -> u32 {
        let word = self.dense.word(chunk);
        let mut left = weigher.add_chunk(lanes, (&self.dense, self.multiplier), chunk, scores);
        while left != 0 {
            let bit = left.trailing_zeros();
            left &= left - 1;
            let weight = self.weigh(weigher, chunk, word, bit);
            scores[bit as usize] = scores[bit as usize].wrapping_add(weight);
        }
        word.count_ones()
    }

    /// Weighs the posting of a chunk at `bit`, which is set in the chunk's word.
    #[inline(always)]
    pub fn weigh<W: Weigher>(&self, weigher: W, chunk: usize, word: u64, bit: u32) -> u32 {
        let rank = self.dense.rank(chunk).wrapping_add((word & ((1 << bit) - 1)).count_ones());
        weigher.weigh(self.multiplier, self.dense.value(W::COLUMN, rank), (chunk * CHUNK) as u32 + bit)
    }
}
