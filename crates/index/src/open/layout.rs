//! Where the arrays of a list lie within its bytes, for a reader that keeps a copy of the bytes elsewhere, as a GPU
//! does.

use crate::format::dense::DenseLayout;
use crate::format::list::LongLayout;
use std::ops::Range;

/// The byte offsets of everything in a list, counted from its first byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListLayout {
    /// A list of fewer than 128 postings.
    Short {
        /// Its first document.
        first: u32,
        /// The documents after the first, if there are any.
        documents: Option<ColumnPart>,
        /// The frequencies; `None` if all are 1 or the index has no frequencies.
        frequencies: Option<ColumnPart>,
        /// The impacts, if the index has them.
        impacts: Option<ColumnPart>,
    },
    /// A sparse list.
    Long {
        /// Its header and directory.
        layout: LongLayout,
        /// The shared parts of documents, frequencies and impacts; empty if the codec has none.
        shared: [Range<usize>; 3],
    },
    /// A bitmap with ranks.
    Dense {
        /// Its arrays.
        layout: DenseLayout,
    },
}

/// A packed column of a short list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnPart {
    /// Its directory byte.
    pub byte: u8,
    /// Offset of its first packed byte.
    pub start: usize,
}
