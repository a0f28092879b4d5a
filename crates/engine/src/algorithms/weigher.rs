//! From a stored value to a weight in units, for each of the two streams of an index.

use crate::plan::Plan;
use lanner_index::open::{Index, List, Stream};
use lanner_index::weight::{Norms, impact_units, saturation, units};

/// Weighs the postings of lists. A list's multiplier is in its plan.
pub trait Weigher: Copy {
    /// The stream that the values come from.
    const STREAM: Stream;

    /// The weight of a posting.
    fn weigh(&self, multiplier: f32, value: u32, document: u32) -> u32;

    /// What bounds the weights of a block.
    fn block_bound(&self, list: &List<'_>, block: usize, multiplier: f32) -> u32;
}

/// Weighs frequencies by BM25.
#[derive(Clone, Copy)]
pub struct Frequencies<'a> {
    norms: &'a Norms,
    length_codes: &'a [u8],
    block_bounds_hold: bool,
}

impl<'a> Frequencies<'a> {
    /// Weighs with the norms of an index.
    pub fn new(plan: &Plan, index: &'a Index) -> Frequencies<'a> {
        Frequencies {
            norms: index.norms(),
            length_codes: index.length_codes(),
            block_bounds_hold: plan.block_bounds_hold,
        }
    }
}

impl Weigher for Frequencies<'_> {
    const STREAM: Stream = Stream::Frequency;

    #[inline]
    fn weigh(&self, multiplier: f32, value: u32, document: u32) -> u32 {
        let code = self.length_codes.get(document as usize).copied().unwrap_or(0);
        units(multiplier, saturation(value, self.norms.of(code)))
    }

    #[inline]
    fn block_bound(&self, list: &List<'_>, block: usize, multiplier: f32) -> u32 {
        let saturation = if self.block_bounds_hold { list.saturation_bound(block) } else { 1.0 };
        units(multiplier, saturation)
    }
}

/// Takes impacts as they are.
#[derive(Clone, Copy)]
pub struct Impacts;

impl Weigher for Impacts {
    const STREAM: Stream = Stream::Impact;

    #[inline]
    fn weigh(&self, multiplier: f32, value: u32, _document: u32) -> u32 {
        impact_units(multiplier, value)
    }

    #[inline]
    fn block_bound(&self, list: &List<'_>, block: usize, multiplier: f32) -> u32 {
        impact_units(multiplier, list.impact_bound(block))
    }
}
