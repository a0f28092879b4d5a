//! An opened list, whose blocks are decoded on demand.
//!
//! Opening checks that header and directory lie inside the bytes of the list. In a damaged file their contents may
//! still be wrong; decoding then gives wrong numbers, but stays inside the list and never panics.

use super::dense::Dense;
use super::layout::{ColumnPart, ListLayout};
use super::summary::{Largest, Summary};
use crate::codec::{BLOCK, Codec, Codecs, Packed};
use crate::format::dense::is_marked_dense;
use crate::format::list::{
    ALL_ONES, LONG_HEADER_BYTES, LongLayout, SHARED_HEADER_BYTES, SHARED_START, STORED_K, UNIT, blocks_of,
    largest_and_kth, postings_in_block,
};
use crate::format::segment::{WINDOW, u16_at, u32_at};
use crate::format::varint;
use crate::weight::{Norms, saturation, saturation_of};
use std::ops::Range;

/// A buffer for the numbers of one block.
pub type BlockBuffer = [u32; BLOCK];

/// The two kinds of values that a posting can have beside its document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Column {
    /// The number of occurrences of the term in the document.
    Frequency,
    /// An 8-bit weight computed by the build.
    Impact,
}

/// The settings that all lists of a segment share.
#[derive(Clone, Copy)]
pub struct ListContext {
    /// How columns are packed.
    pub codecs: Codecs,
    /// Whether blocks hold frequencies.
    pub has_frequencies: bool,
    /// Whether blocks hold impacts.
    pub has_impacts: bool,
    /// Whether lists with many documents are dense.
    pub has_dense: bool,
    /// Documents of the segment.
    pub documents: u32,
}

impl ListContext {
    /// Windows of the segment.
    pub fn windows(&self) -> usize {
        self.documents.div_ceil(WINDOW) as usize
    }
}

/// The postings of one term.
#[derive(Clone, Copy)]
pub struct List<'a> {
    postings: u32,
    documents: &'static dyn Codec,
    weights: &'static dyn Codec,
    body: Body<'a>,
}

#[derive(Clone, Copy)]
enum Body<'a> {
    Short(Short<'a>),
    Long { bytes: &'a [u8], layout: LongLayout, shared: Shared<'a> },
    Dense { bytes: &'a [u8], dense: Dense<'a> },
}

/// The shared parts of documents, frequencies and impacts, which codecs store once for all blocks.
type Shared<'a> = [&'a [u8]; 3];

/// The parts of a short list.
#[derive(Clone, Copy)]
struct Short<'a> {
    first: u32,
    documents: Option<Packed<'a>>,
    frequencies: Option<Packed<'a>>,
    impacts: Option<Packed<'a>>,
}

impl<'a> List<'a> {
    /// Opens a list of fewer than 128 postings; `None` if the bytes are no such list.
    pub fn short(context: &ListContext, bytes: &'a [u8]) -> Option<List<'a>> {
        let (&head, mut rest) = bytes.split_first()?;
        let postings = u32::from(head & !ALL_ONES);
        let count = postings as usize;
        if count == 0 {
            return None;
        }
        let (documents, weights) = (context.codecs.documents.codec(), context.codecs.weights.codec());
        let first = varint::read_u32(&mut rest)?;
        let others = if count > 1 { Some(read_packed(&mut rest, documents, count - 1)?) } else { None };
        let has_frequencies = context.has_frequencies && head & ALL_ONES == 0;
        let frequencies = if has_frequencies { Some(read_packed(&mut rest, weights, count)?) } else { None };
        let impacts = if context.has_impacts { Some(read_packed(&mut rest, weights, count)?) } else { None };
        let body = Body::Short(Short { first, documents: others, frequencies, impacts });
        rest.is_empty().then_some(List { postings, documents, weights, body })
    }

    /// Opens a list of at least 128 postings; `None` if the bytes are no such list.
    pub fn long(context: &ListContext, bytes: &'a [u8]) -> Option<List<'a>> {
        let header = bytes.get(..LONG_HEADER_BYTES)?;
        let postings = u32_at(header, 0);
        let (documents, weights) = (context.codecs.documents.codec(), context.codecs.weights.codec());
        if is_marked_dense(header) {
            let dense = Dense::open(context, bytes)?;
            return Some(List { postings, documents, weights, body: Body::Dense { bytes, dense } });
        }
        let layout = LongLayout {
            blocks: blocks_of(postings),
            windows: u32_at(header, 4) as usize,
            has_frequencies: context.has_frequencies,
            has_impacts: context.has_impacts,
        };
        let is_sane = postings as usize >= BLOCK && (layout.windows == 0 || layout.windows == context.windows());
        let body = Body::Long { bytes, layout, shared: read_shared(bytes)? };
        (is_sane && layout.payload() <= bytes.len()).then_some(List { postings, documents, weights, body })
    }

    /// Where the arrays of the list lie within its `length` bytes.
    pub(super) fn layout(&self, length: usize) -> ListLayout {
        match self.body {
            Body::Short(Short { first, documents, frequencies, impacts }) => {
                // The columns are the end of the list, each after its directory byte.
                let mut end = length;
                let [impacts, frequencies, documents] = [impacts, frequencies, documents].map(|column| {
                    let packed = column?;
                    let start = end - packed.bytes.len();
                    end = start - 1;
                    Some(ColumnPart { byte: packed.byte, start })
                });
                ListLayout::Short { first, documents, frequencies, impacts }
            }
            Body::Long { bytes, layout, shared } => {
                let mut end = u32_at(bytes, SHARED_START) as usize * UNIT + SHARED_HEADER_BYTES;
                let shared = shared.map(|part| {
                    let start = end;
                    end += part.len();
                    start..end
                });
                ListLayout::Long { layout, shared }
            }
            Body::Dense { dense, .. } => ListLayout::Dense { layout: *dense.layout() },
        }
    }

    /// Documents that hold the term.
    pub fn postings(&self) -> u32 {
        self.postings
    }

    /// The list as a bitmap, if it is one.
    #[inline]
    pub fn dense(&self) -> Option<&Dense<'a>> {
        match &self.body {
            Body::Dense { dense, .. } => Some(dense),
            Body::Short(_) | Body::Long { .. } => None,
        }
    }

    /// The number of blocks. In a sparse list all but the last have 128 postings; a block of a dense list has the
    /// postings of 128 consecutive documents, possibly none.
    pub fn blocks(&self) -> usize {
        match &self.body {
            Body::Dense { dense, .. } => dense.blocks(),
            Body::Short(_) | Body::Long { .. } => blocks_of(self.postings),
        }
    }

    /// The last document of a block. For a short or dense list only an upper bound of its documents.
    #[inline]
    pub fn last_document(&self, block: usize) -> u32 {
        match &self.body {
            Body::Short(_) => u32::MAX,
            Body::Dense { .. } => (block * BLOCK + BLOCK - 1) as u32,
            Body::Long { bytes, layout, .. } => u32_at(bytes, layout.last() + 4 * block),
        }
    }

    /// The first block from `block` on whose last document is at least `target`; `blocks()` if there is none.
    pub fn find_block(&self, block: usize, target: u32) -> usize {
        let (bytes, layout) = match &self.body {
            Body::Short(_) => return block,
            Body::Dense { dense, .. } => return (target as usize / BLOCK).clamp(block, dense.blocks().max(block)),
            Body::Long { bytes, layout, .. } => (bytes, layout),
        };
        let last = &bytes[layout.last()..layout.offset()];
        let (last, _) = last.as_chunks::<4>();
        let is_before = |last: &[u8; 4]| u32::from_le_bytes(*last) < target;
        // Gallop from the current block: targets are near more often than far.
        let (mut low, mut step) = (block, 1);
        while low + step <= last.len() && is_before(&last[low + step - 1]) {
            low += step;
            step *= 2;
        }
        let high = (low + step).min(last.len());
        low + last[low.min(high)..high].partition_point(is_before)
    }

    /// Decodes the documents of a block and returns how many there are.
    pub fn decode_documents(&self, block: usize, out: &mut BlockBuffer) -> usize {
        let count = postings_in_block(self.postings, block);
        match &self.body {
            Body::Short(short) => {
                out[0] = short.first;
                if let Some(others) = short.documents {
                    let base = short.first.wrapping_add(1);
                    self.documents.decode_documents(others, base, &mut out[1..count]);
                }
            }
            Body::Long { bytes, layout, shared } => {
                let base = if block == 0 { 0 } else { self.last_document(block - 1).wrapping_add(1) };
                let packed = packed_documents(bytes, layout, shared, block);
                self.documents.decode_documents(packed, base, &mut out[..count]);
            }
            Body::Dense { dense, .. } => return dense.decode_documents(block, out),
        }
        count
    }

    /// Decodes a column of a block and returns how many values there are; all are 1 if the column is not stored.
    pub fn decode_values(&self, column: Column, block: usize, out: &mut BlockBuffer) -> usize {
        if let Body::Dense { dense, .. } = &self.body {
            return dense.decode_values(column, block, out);
        }
        let count = postings_in_block(self.postings, block);
        match self.packed_values(column, block) {
            Some(packed) => self.weights.decode_values(packed, &mut out[..count]),
            None => out[..count].fill(1),
        }
        count
    }

    /// Decodes one value of a block, without the others if the codec can; 1 if the column is not stored.
    pub fn value_at(&self, column: Column, block: usize, index: usize) -> u32 {
        if let Body::Dense { dense, .. } = &self.body {
            return dense.value_at(column, block, index);
        }
        let count = postings_in_block(self.postings, block);
        self.packed_values(column, block).map_or(1, |packed| self.weights.value_at(packed, count, index))
    }

    /// Decodes some values of a block of a sparse list, as [`List::value_at`] does each.
    pub fn values_at(&self, column: Column, block: usize, indexes: impl Iterator<Item = usize>, out: &mut [u32]) {
        let count = postings_in_block(self.postings, block);
        match self.packed_values(column, block) {
            Some(packed) => {
                for (value, index) in out.iter_mut().zip(indexes) {
                    *value = self.weights.value_at(packed, count, index);
                }
            }
            None => out.fill(1),
        }
    }

    /// Bytes of the documents, frequencies and impacts of a block; 0 for a column that is not stored.
    pub fn column_bytes(&self, block: usize) -> [usize; 3] {
        let count = postings_in_block(self.postings, block);
        let documents = match &self.body {
            Body::Short(short) => short.documents.map_or(0, |packed| packed.bytes.len()),
            Body::Long { bytes, layout, shared } => {
                self.documents.length(packed_documents(bytes, layout, shared, block), count)
            }
            Body::Dense { .. } => return [0; 3],
        };
        let weights = [Column::Frequency, Column::Impact]
            .map(|column| self.packed_values(column, block).map_or(0, |packed| self.weights.length(packed, count)));
        [documents, weights[0], weights[1]]
    }

    /// The bytes of a block of a sparse list, up to the start of the next block; empty for other lists. In a damaged
    /// file they still lie inside the list.
    pub fn block_bytes(&self, block: usize) -> &'a [u8] {
        let Body::Long { bytes, layout, .. } = &self.body else {
            return &[];
        };
        let (offsets, _) = bytes[layout.offset()..layout.first_block()].as_chunks();
        let start_of = |block: usize| {
            offsets.get(block).map(|&offset| layout.payload() + u32::from_le_bytes(offset) as usize * UNIT)
        };
        // The shared part follows the last block, if there is one.
        let shared = u32_at(bytes, SHARED_START) as usize * UNIT;
        let end = start_of(block + 1).unwrap_or(if shared > 0 { shared } else { bytes.len() }).min(bytes.len());
        start_of(block).and_then(|start| bytes.get(start..end)).unwrap_or(&[])
    }

    /// Bytes of the header, the directory and the header of the shared parts; `None` for a short list, which has none.
    pub fn directory_bytes(&self) -> Option<usize> {
        match &self.body {
            Body::Short(_) => None,
            Body::Dense { dense, .. } => Some(dense.directory_bytes()),
            Body::Long { bytes, layout, .. } if u32_at(bytes, SHARED_START) == 0 => Some(layout.payload()),
            Body::Long { layout, .. } => Some(layout.payload() + SHARED_HEADER_BYTES),
        }
    }

    /// Bytes of documents, frequencies and impacts outside the blocks: the shared parts of codecs, or all of a dense
    /// list.
    pub fn shared_bytes(&self) -> [usize; 3] {
        match &self.body {
            Body::Short(_) => [0; 3],
            Body::Dense { dense, .. } => dense.column_bytes(),
            Body::Long { shared, .. } => shared.map(<[u8]>::len),
        }
    }

    /// An upper bound of the saturations in some blocks.
    #[inline]
    pub fn saturation_bound(&self, blocks: Range<usize>) -> f32 {
        match &self.body {
            Body::Dense { dense, .. } => blocks.map(|block| dense.saturation_bound(block)).fold(0.0, f32::max),
            Body::Long { bytes, layout, .. } if layout.has_frequencies => {
                let start = layout.frequency_bound();
                let codes = bytes[start + 2 * blocks.start..start + 2 * blocks.end].as_chunks().0;
                saturation_of(codes.iter().map(|&code| u16::from_le_bytes(code)).max().unwrap_or(0))
            }
            _ => 1.0,
        }
    }

    /// An upper bound of the impacts in a block.
    #[inline]
    pub fn impact_bound(&self, block: usize) -> u32 {
        match &self.body {
            Body::Dense { dense, .. } => dense.impact_bound(block),
            Body::Long { bytes, layout, .. } if layout.has_impacts => u32::from(bytes[layout.impact_bound() + block]),
            _ => 255,
        }
    }

    /// Windows in the directory: all of the segment for a list with many blocks, none for others.
    pub fn windows(&self) -> usize {
        match &self.body {
            Body::Short(_) | Body::Dense { .. } => 0,
            Body::Long { layout, .. } => layout.windows,
        }
    }

    /// The first block that can hold a document of a window.
    pub fn first_block(&self, window: usize) -> usize {
        match &self.body {
            Body::Long { bytes, layout, .. } if window < layout.windows => {
                (u32_at(bytes, layout.first_block() + 4 * window) as usize).min(layout.blocks)
            }
            _ => 0,
        }
    }

    /// An upper bound of the saturations in a window; 0 if the list has no postings there.
    pub fn window_saturation_bound(&self, window: usize) -> f32 {
        match &self.body {
            Body::Dense { dense, .. } => dense.window_saturation_bound(window),
            Body::Long { bytes, layout, .. } if window < layout.windows && layout.has_frequencies => {
                saturation_of(u16_at(bytes, layout.frequency_window_bound() + 2 * window))
            }
            _ => 1.0,
        }
    }

    /// An upper bound of the impacts in a window; 0 if the list has no postings there.
    pub fn window_impact_bound(&self, window: usize) -> u32 {
        match &self.body {
            Body::Dense { dense, .. } => dense.window_impact_bound(window),
            Body::Long { bytes, layout, .. } if window < layout.windows && layout.has_impacts => {
                u32::from(bytes[layout.impact_window_bound() + window])
            }
            _ => 255,
        }
    }

    fn summary(&self) -> Summary<'a> {
        let header = match self.body {
            Body::Short(_) => None,
            Body::Long { bytes, .. } | Body::Dense { bytes, .. } => Some(bytes),
        };
        Summary { postings: self.postings, is_dense: self.dense().is_some(), header }
    }

    /// The largest saturations: stored for long lists, computed for short ones.
    pub fn largest(&self, norms: &Norms, length_codes: &[u8]) -> Largest {
        if let Some(stored) = self.summary().largest() {
            return stored;
        }
        let (mut documents, mut frequencies) = ([0; BLOCK], [0; BLOCK]);
        let count = self.decode_documents(0, &mut documents);
        self.decode_values(Column::Frequency, 0, &mut frequencies);
        let mut saturations = [0.0f32; BLOCK];
        for i in 0..count {
            let code = length_codes.get(documents[i] as usize).copied().unwrap_or(0);
            saturations[i] = saturation(frequencies[i], norms.of(code));
        }
        Largest::of(&mut saturations[..count])
    }

    /// The largest impact, and the k-th largest for each k of [`STORED_K`] (0 if there are fewer postings).
    pub fn largest_impacts(&self) -> (u32, [u32; STORED_K.len()]) {
        if let Some(stored) = self.summary().largest_impacts() {
            return stored;
        }
        let mut impacts = [0; BLOCK];
        let count = self.decode_values(Column::Impact, 0, &mut impacts);
        largest_and_kth(&mut impacts[..count], u32::cmp)
    }

    /// The packed values of a column in a block; `None` if the column is not stored.
    fn packed_values(&self, column: Column, block: usize) -> Option<Packed<'a>> {
        let (bytes, layout, shared) = match (&self.body, column) {
            (Body::Short(short), Column::Frequency) => return short.frequencies,
            (Body::Short(short), Column::Impact) => return short.impacts,
            (Body::Dense { .. }, _) => return None,
            (Body::Long { bytes, layout, shared }, _) => (*bytes, layout, shared),
        };
        let count = postings_in_block(self.postings, block);
        let documents = packed_documents(bytes, layout, shared, block);
        let after = |rest: &'a [u8], length: usize| rest.get(length..).unwrap_or(&[]);
        let mut rest = after(documents.bytes, self.documents.length(documents, count));
        if layout.has_frequencies {
            let byte = bytes[layout.frequency_byte() + block];
            let packed = Packed { byte, bytes: rest, shared: shared[1], block };
            if column == Column::Frequency {
                return Some(packed);
            }
            rest = after(rest, self.weights.length(packed, count));
        }
        (column == Column::Impact && layout.has_impacts).then(|| {
            let byte = bytes[layout.impact_byte() + block];
            Packed { byte, bytes: rest, shared: shared[2], block }
        })
    }
}

/// The packed documents of a block of a sparse list. The bytes reach to the end of the list.
fn packed_documents<'a>(bytes: &'a [u8], layout: &LongLayout, shared: &Shared<'a>, block: usize) -> Packed<'a> {
    let start = layout.payload() + u32_at(bytes, layout.offset() + 4 * block) as usize * UNIT;
    let byte = bytes[layout.document_byte() + block];
    Packed { byte, bytes: bytes.get(start..).unwrap_or(&[]), shared: shared[0], block }
}

/// Reads a directory byte and the payload after it from the front of `bytes`.
fn read_packed<'a>(bytes: &mut &'a [u8], codec: &dyn Codec, count: usize) -> Option<Packed<'a>> {
    let byte = varint::take(bytes, 1)?[0];
    let length = codec.length(Packed::alone(byte, bytes), count);
    Some(Packed::alone(byte, varint::take(bytes, length)?))
}

/// Finds the shared parts of a sparse list; `None` if they lie outside the list.
fn read_shared(bytes: &[u8]) -> Option<Shared<'_>> {
    let start = u32_at(bytes, SHARED_START) as usize;
    if start == 0 {
        return Some([&[]; 3]);
    }
    let (header, mut rest) = bytes.get(start * UNIT..)?.split_at_checked(SHARED_HEADER_BYTES)?;
    let mut shared: Shared = [&[]; 3];
    for (column, part) in shared.iter_mut().enumerate() {
        *part = varint::take(&mut rest, u32_at(header, 4 * column) as usize * UNIT)?;
    }
    Some(shared)
}
