//! The layout of an impact-ordered list; `build::impact_ordered` writes it, `open::impact_ordered` reads it.
//!
//! Anh, de Kretser and Moffat, *Vector-space ranking with effective early termination*, SIGIR 2001. The postings of a
//! list are divided into *segments* of equal impact, highest first. A segment has its documents in ascending order,
//! packed by `qmx` with base 0. Only lists of at least a block have an impact-ordered copy: shorter ones are sorted
//! when read.
//! ```text
//! u32  postings      u16  segments      u8  1 if the numbers of the directory have 32 bits, 0 for 16      u8  0
//! end[segments]       the end of each segment, in units of 4 bytes from the start of the first
//! postings[segments]  the postings of each segment
//! impact[segments]    u8
//! ```
//! The segments start at the next multiple of 16 bytes.

use super::list::{UNIT, arrays};

/// Bytes of the fixed header.
pub const HEADER_BYTES: usize = 8;
/// Segments end at multiples of this many bytes.
pub const SEGMENT_UNIT: usize = 4;
/// Bytes of a row of the directory section: the start of the sizes of a group of terms, and of its first list.
pub const ROW_BYTES: usize = 16;

/// Where the arrays of an impact-ordered list start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImpactOrderedLayout {
    /// Segments, at most 255.
    pub segments: usize,
    /// Whether the numbers of the directory have 32 bits instead of 16.
    pub is_wide: bool,
}

impl ImpactOrderedLayout {
    arrays! {
        self from HEADER_BYTES;
        /// `end[segments]`.
        end: self.number_bytes() * self.segments;
        /// `postings[segments]`.
        postings: self.number_bytes() * self.segments;
        /// `impact[segments]`.
        impact: self.segments;
        /// the first segment.
        align payload
    }

    /// Bytes of a number of the directory.
    pub fn number_bytes(&self) -> usize {
        if self.is_wide { 4 } else { 2 }
    }
}
