//! The pieces of a list: what becomes resident by itself.

use lanner_index::format::IndexError;
use lanner_index::format::list::UNIT;
use lanner_index::open::{Column, Index, ListLayout};
use std::ops::Range;

/// A number for each piece, in the order of [`Piece::ALL`].
pub type OfPieces<T> = [T; Piece::ALL.len()];

/// A piece of a long list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Piece {
    /// Of a sparse list: everything before its first block.
    Directory,
    /// Of a sparse list: its blocks, with what they share.
    Blocks,
    /// Of a dense list: the ranks of windows and chunks.
    Ranks,
    /// Of a dense list: its words.
    Words,
    /// Of a dense list: the bounds of chunks for frequencies.
    FrequencyBounds,
    /// Of a dense list: the bounds of chunks for impacts.
    ImpactBounds,
    /// Of a dense list: its frequencies.
    Frequencies,
    /// Of a dense list: its impacts.
    Impacts,
    /// Of a dense list: its frequencies that do not fit their bits.
    Exceptions,
}

impl Piece {
    /// Every piece.
    pub const ALL: [Piece; 9] = [
        Piece::Directory,
        Piece::Blocks,
        Piece::Ranks,
        Piece::Words,
        Piece::FrequencyBounds,
        Piece::ImpactBounds,
        Piece::Frequencies,
        Piece::Impacts,
        Piece::Exceptions,
    ];

    /// The pieces of a sparse list.
    pub const SPARSE: usize = 2;
    /// The pieces of a dense list, which come after those of a sparse one.
    pub const DENSE: usize = Piece::ALL.len() - Piece::SPARSE;

    /// Its name in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Piece::Directory => "directories",
            Piece::Blocks => "blocks",
            Piece::Ranks => "ranks",
            Piece::Words => "words",
            Piece::FrequencyBounds => "bounds for frequencies",
            Piece::ImpactBounds => "bounds for impacts",
            Piece::Frequencies => "frequencies",
            Piece::Impacts => "impacts",
            Piece::Exceptions => "exceptions",
        }
    }

    /// The bounds of chunks for a column.
    pub fn bounds(column: Column) -> Piece {
        match column {
            Column::Frequency => Piece::FrequencyBounds,
            Column::Impact => Piece::ImpactBounds,
        }
    }

    /// The values of a column.
    pub fn values(column: Column) -> Piece {
        match column {
            Column::Frequency => Piece::Frequencies,
            Column::Impact => Piece::Impacts,
        }
    }

    /// What reading a byte of it in host memory costs, next to reading a byte of a long sequence. A read at a random place
    /// costs the bus as much as 900 bytes of a sequence, because the GPU has to find the page first, and nothing else can
    /// start before a directory has been read; but the blocks of a window are not read in one sequence either, and 4 is
    /// faster than 8 for words, ranks and values.
    pub fn cost(self) -> f32 {
        if self == Piece::Blocks { 1.0 } else { 4.0 }
    }

    /// Whether the piece says which others have to be read: those are small, and every search begins with them.
    pub fn is_directory(self) -> bool {
        matches!(self, Piece::Directory | Piece::FrequencyBounds | Piece::ImpactBounds)
    }

    /// The bytes of the piece in a list of `length` bytes, from a multiple of 16 to one, so that they can be copied in
    /// units; empty if the list has no such piece.
    pub fn range(self, layout: &ListLayout, length: usize) -> Range<usize> {
        let range = match (layout, self) {
            (ListLayout::Long { layout, .. }, Piece::Directory) => 0..layout.payload(),
            (ListLayout::Long { layout, .. }, Piece::Blocks) => layout.payload()..length,
            (ListLayout::Dense { layout }, piece) => match piece {
                Piece::Ranks => layout.window_rank()..layout.window_saturation(),
                Piece::Words => layout.words()..layout.frequencies(),
                Piece::FrequencyBounds => layout.chunk_saturation()..layout.chunk_impact(),
                Piece::ImpactBounds => layout.chunk_impact()..layout.window_impact(),
                Piece::Frequencies => layout.frequencies()..layout.impacts(),
                Piece::Impacts => layout.impacts()..layout.exception_rank(),
                Piece::Exceptions => layout.exception_rank()..layout.end(),
                Piece::Directory | Piece::Blocks => 0..0,
            },
            _ => 0..0,
        };
        if range.is_empty() {
            return 0..0;
        }
        let end = range.end.next_multiple_of(UNIT).min(length.next_multiple_of(UNIT));
        range.start / UNIT * UNIT..end
    }
}

/// How many bytes the pieces of all long lists of an index have.
pub fn bytes_of_pieces(index: &Index) -> Result<OfPieces<u64>, IndexError> {
    let segment = index.segment();
    let mut bytes = [0; Piece::ALL.len()];
    let spans = (0..segment.header().terms).filter_map(|term| segment.span(term)).filter(|span| span.is_long);
    for span in spans {
        let layout = segment.layout_at(span)?;
        for piece in Piece::ALL {
            bytes[piece as usize] += piece.range(&layout, span.bytes()).len() as u64;
        }
    }
    Ok(bytes)
}
