//! How an impact-ordered list lies in its section; `build::impact_ordered` writes it, `open::impact_ordered` reads it.
//!
//! Anh, de Kretser and Moffat, *Vector-space ranking with effective early termination*, SIGIR 2001. The postings of a
//! list are divided into *segments* of equal impact, highest first; a segment is one `qmx` stream of its documents in
//! order, with base 0. Only lists of at least a block have one: shorter ones are sorted when they are read.
//! ```text
//! u32  postings      u16  segments      u8  1 if the numbers of the directory have 32 bits, 0 for 16      u8  0
//! end[segments], postings[segments]: where each segment ends, in units of 4 bytes from the first, and how many it has
//! impact[segments]: u8
//! ```
//! The streams start at the next multiple of 16 bytes.

use super::list::UNIT;

/// Bytes of the fixed header.
pub const HEADER_BYTES: usize = 8;
/// Segments end at multiples of this many bytes.
pub const SEGMENT_UNIT: usize = 4;
/// Bytes of a row of the directory section: where a group's sizes start, and its first list.
pub const ROW_BYTES: usize = 16;

/// Where the arrays of an impact-ordered list lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImpactOrderedLayout {
    /// Segments, at most 255.
    pub segments: usize,
    /// Whether the numbers of the directory have 32 bits, not 16.
    pub is_wide: bool,
}

impl ImpactOrderedLayout {
    /// Start of `end[segments]`.
    pub fn end(&self) -> usize {
        HEADER_BYTES
    }

    /// Start of `postings[segments]`.
    pub fn postings(&self) -> usize {
        self.end() + self.number_bytes() * self.segments
    }

    /// Start of `impact[segments]`.
    pub fn impact(&self) -> usize {
        self.postings() + self.number_bytes() * self.segments
    }

    /// Start of the first segment.
    pub fn payload(&self) -> usize {
        (self.impact() + self.segments).next_multiple_of(UNIT)
    }

    /// Bytes of a number of the directory.
    pub fn number_bytes(&self) -> usize {
        if self.is_wide { 4 } else { 2 }
    }
}
