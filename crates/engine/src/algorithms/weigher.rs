//! Weighers turn the values of a column, frequencies or impacts, into weights in units.

use super::lanes::{BlockToWeigh, CHUNK, ChunkToWeigh, CodeScale, Lanes};
use crate::query::plan::Plan;
use lanner_index::open::{BlockBuffer, Column, Dense, Index, List};
use lanner_index::weight::{Norms, ONE, impact_units, saturation, units};
use std::ops::Range;

/// Weighs postings. The multiplier of a list is in the plan.
pub trait Weigher: Copy {
    /// The column of the values.
    const COLUMN: Column;

    /// Weighs a posting.
    fn weigh(&self, multiplier: f32, value: u32, document: u32) -> u32;

    /// Returns a value below which no weight reaches `least`, whatever the document.
    fn least_value(&self, multiplier: f32, least: u32) -> u32;

    /// Bounds the weights of a block.
    #[inline]
    fn block_bound(&self, list: &List<'_>, block: usize, multiplier: f32) -> u32 {
        self.largest_bound(list, block..block + 1, multiplier)
    }

    /// Bounds the weights of some blocks.
    fn largest_bound(&self, list: &List<'_>, blocks: Range<usize>, multiplier: f32) -> u32;

    /// Weighs some postings of a list. May change the rest of `out`.
    fn weigh_block<L: Lanes>(&self, lanes: L, multiplier: f32, postings: &Postings<'_>, out: &mut BlockBuffer);

    /// Adds the weights of a dense list's postings in a chunk to the scores where SIMD pays, and returns the bits of
    /// the postings that are left to the caller.
    fn add_chunk<L: Lanes>(&self, lanes: L, list: (&Dense<'_>, f32), chunk: usize, scores: &mut [u32; CHUNK]) -> u64;

    /// Returns a code for each chunk of a dense list, and what turns it into a bound of the chunk's weights. There are no
    /// codes where stored bounds do not hold.
    fn chunk_bounds<'d>(&self, dense: &Dense<'d>, multiplier: f32) -> (&'d [u8], CodeScale);
}

/// Some postings of a list.
pub struct Postings<'a> {
    /// Their frequencies or impacts.
    pub values: &'a BlockBuffer,
    /// Their documents.
    pub documents: &'a BlockBuffer,
    /// The number of postings.
    pub count: usize,
}

/// Weighs frequencies by BM25.
#[derive(Clone, Copy)]
pub struct Frequencies<'a> {
    norms: &'a Norms,
    length_codes: &'a [u8],
    block_bounds_hold: bool,
}

impl<'a> Frequencies<'a> {
    /// Weighs with the norms and lengths of an index.
    pub fn new(plan: &Plan, index: &'a Index) -> Frequencies<'a> {
        Frequencies {
            norms: index.norms(),
            length_codes: index.length_codes(),
            block_bounds_hold: plan.block_bounds_hold,
        }
    }
}

impl Weigher for Frequencies<'_> {
    const COLUMN: Column = Column::Frequency;

    #[inline]
    fn weigh(&self, multiplier: f32, value: u32, document: u32) -> u32 {
        let code = self.length_codes.get(document as usize).copied().unwrap_or(0);
        units(multiplier, saturation(value, self.norms.of(code)))
    }

    #[inline]
    fn least_value(&self, multiplier: f32, least: u32) -> u32 {
        if least <= 1 {
            return 1;
        }
        // The saturation that a weight needs, solved for the value. The norm grows with the length, and 0 is the code of
        // the shortest.
        let saturation = before_rounding(least) / (f64::from(multiplier) * f64::from(ONE));
        if saturation >= 1.0 {
            return u32::MAX;
        }
        (f64::from(self.norms.of(0)) * saturation / (1.0 - saturation)).ceil().max(1.0) as u32
    }

    #[inline]
    fn largest_bound(&self, list: &List<'_>, blocks: Range<usize>, multiplier: f32) -> u32 {
        let saturation = if self.block_bounds_hold { list.saturation_bound(blocks) } else { 1.0 };
        units(multiplier, saturation)
    }

    #[inline(always)]
    fn weigh_block<L: Lanes>(&self, lanes: L, multiplier: f32, postings: &Postings<'_>, out: &mut BlockBuffer) {
        let Postings { values: frequencies, documents, count } = *postings;
        let (norms, length_codes) = (self.norms, self.length_codes);
        lanes.weigh_frequencies(&BlockToWeigh { multiplier, frequencies, documents, norms, length_codes }, count, out);
    }

    #[inline(always)]
    fn add_chunk<L: Lanes>(&self, lanes: L, list: (&Dense<'_>, f32), chunk: usize, scores: &mut [u32; CHUNK]) -> u64 {
        let (dense, multiplier) = list;
        let (values, bits) = dense.packed_frequencies();
        let (word, rank) = (dense.word(chunk), dense.rank(chunk) as usize);
        let length_codes = self.length_codes.get(chunk * CHUNK..).unwrap_or(&[]);
        lanes.add_frequencies(&ChunkToWeigh { multiplier, word, rank, values, bits, length_codes }, self.norms, scores)
    }

    fn chunk_bounds<'d>(&self, dense: &Dense<'d>, multiplier: f32) -> (&'d [u8], CodeScale) {
        if !self.block_bounds_hold {
            return (&[], CodeScale::default());
        }
        (dense.chunk_saturations(), CodeScale::new(saturation_step(multiplier)))
    }
}

/// Weighs impacts by the query weight of their term.
#[derive(Clone, Copy)]
pub struct Impacts;

impl Weigher for Impacts {
    const COLUMN: Column = Column::Impact;

    #[inline]
    fn weigh(&self, multiplier: f32, value: u32, _document: u32) -> u32 {
        impact_units(multiplier, value)
    }

    #[inline]
    fn least_value(&self, multiplier: f32, least: u32) -> u32 {
        if least <= 1 { 1 } else { (before_rounding(least) / f64::from(multiplier)).ceil().max(1.0) as u32 }
    }

    #[inline]
    fn largest_bound(&self, list: &List<'_>, blocks: Range<usize>, multiplier: f32) -> u32 {
        impact_units(multiplier, blocks.map(|block| list.impact_bound(block)).max().unwrap_or(0))
    }

    #[inline(always)]
    fn weigh_block<L: Lanes>(&self, lanes: L, multiplier: f32, postings: &Postings<'_>, out: &mut BlockBuffer) {
        lanes.weigh_impacts(multiplier, postings.values, postings.count, out);
    }

    #[inline(always)]
    fn add_chunk<L: Lanes>(&self, lanes: L, list: (&Dense<'_>, f32), chunk: usize, scores: &mut [u32; CHUNK]) -> u64 {
        let (dense, multiplier) = list;
        let (word, rank) = (dense.word(chunk), dense.rank(chunk) as usize);
        let (values, bits, length_codes) = (dense.impacts(), 8, &[][..]);
        lanes.add_impacts(&ChunkToWeigh { multiplier, word, rank, values, bits, length_codes }, scores)
    }

    fn chunk_bounds<'d>(&self, dense: &Dense<'d>, multiplier: f32) -> (&'d [u8], CodeScale) {
        (dense.chunk_impacts(), CodeScale::new(impact_step(multiplier)))
    }
}

/// What the exact product of a weight's factors has at least, if the weight is at least `least`, which is above 1: half a
/// unit less, and less by one part in 2^20 for the roundings in `f32`.
#[inline]
fn before_rounding(least: u32) -> f64 {
    (f64::from(least) - 0.5) * (1.0 - 1.0 / f64::from(1 << 20))
}

/// The units that one code of a chunk's largest saturation stands for: its product with the code, rounded up, bounds the
/// chunk's weights.
pub fn saturation_step(multiplier: f32) -> f64 {
    // A weight is `multiplier · saturation · 65536` with three roundings, each up by at most one part in 2^24, and rounded
    // to a whole number; a saturation is at most its code / 255, rounded. One part in 2^20 covers all of them.
    f64::from(multiplier) * f64::from(ONE) / 255.0 * (1.0 + 1.0 / f64::from(1 << 20))
}

/// The units that a chunk's largest impact is multiplied by to bound the chunk's weights.
pub fn impact_step(multiplier: f32) -> f64 {
    // With an integral multiplier the product is the weight itself; others are rounded.
    let step = f64::from(multiplier);
    if step.fract() == 0.0 { step } else { step * (1.0 + 1.0 / f64::from(1 << 20)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanner_index::weight::Bm25;

    /// Compares the least value with weights, which grow with the value.
    fn check_least_value(weigher: &impl Weigher, multiplier: f32, least: u32, largest_weight: impl Fn(u32) -> u32) {
        let found = weigher.least_value(multiplier, least);
        let case = format!("{multiplier}, {least}: {found}");
        assert!(found == 1 || largest_weight(found - 1) < least, "{case}");
        // Not much too low either, but where saturations hardly differ, and where nothing weighs enough.
        if found < 100 && largest_weight(found) < least && least <= largest_weight(u32::MAX) {
            assert!(largest_weight(found + 1 + found / 100) >= least, "{case}");
        }
    }

    #[test]
    fn no_smaller_value_than_the_least_one_weighs_enough() {
        for multiplier in [0.0, 1e-4, 0.7, 1.0, 3.0, 12.5] {
            for (k1, b) in [(0.9, 0.4), (1.2, 0.75), (2.0, 1.0), (0.5, 0.0)] {
                let norms = Bm25 { k1, b }.norms(95.0);
                let codes: Vec<u8> = (0..=255).collect();
                let weigher = Frequencies { norms: &norms, length_codes: &codes, block_bounds_hold: true };
                let largest_weight = |value| (0..256).map(|document| weigher.weigh(multiplier, value, document)).max();
                for value in [1, 2, 3, 4, 7, 20, 63, 64, 1000, 1 << 24, u32::MAX] {
                    let weight = largest_weight(value).unwrap();
                    for least in [weight.saturating_sub(1), weight, weight + 1] {
                        check_least_value(&weigher, multiplier, least, |value| largest_weight(value).unwrap());
                    }
                }
                let above_all = (multiplier * ONE) as u32 + 2;
                assert_eq!(weigher.least_value(multiplier, above_all), u32::MAX);
                assert_eq!([0, 1].map(|least| weigher.least_value(multiplier, least)), [1, 1]);
            }
            for impact in 1..=255 {
                let weight = Impacts.weigh(multiplier, impact, 7);
                for least in [weight - 1, weight, weight + 1] {
                    check_least_value(&Impacts, multiplier, least, |impact| Impacts.weigh(multiplier, impact, 7));
                }
            }
        }
    }

    #[test]
    fn no_weight_is_above_the_bound_of_its_code() {
        let multipliers = [0.0f32, 1e-6, 0.001, 0.0132, 0.5, 1.0, 1.5, 3.0, 7.77, 126.0, 127.4, 128.0, 5000.3, 6e4];
        for multiplier in multipliers {
            let scale = CodeScale::new(saturation_step(multiplier));
            for code in 0..=255u8 {
                let (weight, bound) = (units(multiplier, f32::from(code) / 255.0), scale.bound(code));
                assert!(code == 0 && bound == 0 || weight <= bound, "{multiplier} · {code}: {weight} > {bound}");
                assert!(u64::from(bound) <= scale.largest());
                // A unit more than the weight before rounding, or one for each code where a step is many units.
                let exact = f64::from(multiplier) * f64::from(code) / 255.0 * 65536.0;
                let slack = if multiplier < 0.2 { 1.0 } else { 256.0 };
                assert!(f64::from(bound) <= exact * 1.00001 + 1.0 + slack, "{multiplier} · {code}: {bound}");
            }
            let scale = CodeScale::new(impact_step(multiplier));
            for impact in 1..=255u8 {
                let (weight, bound) = (impact_units(multiplier, impact.into()), scale.bound(impact));
                assert!(weight <= bound, "{multiplier} · {impact}: {weight} > {bound}");
                assert!(multiplier.fract() != 0.0 || weight == bound);
            }
        }
    }
}
