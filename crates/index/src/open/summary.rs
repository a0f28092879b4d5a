//! What a list says about itself as a whole: its postings, and its largest weights.

use crate::format::dense::is_marked_dense;
use crate::format::list::{ALL_ONES, LONG_HEADER_BYTES, STORED_K, largest_and_kth};
use crate::format::segment::u32_at;

/// The largest saturations of a list. They give the bound of its weights and the seed of a threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Largest {
    /// The largest of all.
    pub saturation: f32,
    /// The k-th largest for each k of [`STORED_K`]; 0 if there are fewer postings or it is unknown.
    pub kth: [f32; STORED_K.len()],
}

impl Largest {
    /// The largest of all saturations of a list, which are reordered.
    pub(super) fn of(saturations: &mut [f32]) -> Largest {
        let (saturation, kth) = largest_and_kth(saturations, f32::total_cmp);
        Largest { saturation, kth }
    }
}

/// What the first bytes of a list say about it, without opening it.
#[derive(Clone, Copy)]
pub struct Summary<'a> {
    /// Documents that hold the term.
    pub postings: u32,
    /// Whether the list is a bitmap.
    pub is_dense: bool,
    /// The header of a long list.
    pub(super) header: Option<&'a [u8]>,
}

impl<'a> Summary<'a> {
    /// Reads the first bytes of a list; `None` if they are too few.
    pub fn new(is_long: bool, bytes: &'a [u8]) -> Option<Summary<'a>> {
        if !is_long {
            let postings = u32::from(bytes.first()? & !ALL_ONES);
            return Some(Summary { postings, is_dense: false, header: None });
        }
        let header = bytes.get(..LONG_HEADER_BYTES)?;
        Some(Summary { postings: u32_at(header, 0), is_dense: is_marked_dense(header), header: Some(header) })
    }

    /// The stored largest saturations; `None` for a short list, which has to be decoded for them.
    pub fn largest(&self) -> Option<Largest> {
        self.header.map(|header| {
            let number = |at: usize| f32::from_bits(u32_at(header, at));
            Largest { saturation: number(8), kth: [number(12), number(16), number(20)] }
        })
    }

    /// The stored largest impact and k-th largest impacts; `None` for a short list.
    pub fn largest_impacts(&self) -> Option<(u32, [u32; STORED_K.len()])> {
        self.header.map(|header| (u32::from(header[24]), [header[25], header[26], header[27]].map(u32::from)))
    }
}
