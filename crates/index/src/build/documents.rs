//! The data of documents besides postings: ids, lengths, ranks, and stored fields in compressed blocks.

use super::BuildError;
use super::numbering::renumber;
use super::write::{SegmentWriter, Spool};
use crate::codec::{BLOCK, CodecName};
use crate::format::lexicon::hash;
use crate::format::segment::Section;
use crate::format::varint;
use crate::open::IDS_IN_GROUP;
use crate::weight::length_code;
use std::collections::HashMap;

/// A block of stored fields ends when it has this many bytes.
const STORED_BLOCK_BYTES: usize = 16 * 1024;
const COMPRESSION_LEVEL: i32 = 3;
/// Longer documents count as documents of this length.
pub const MAX_LENGTH: u32 = u32::MAX - 1;

/// Ids and lengths of documents: for each the length of the id (varint), the id, and the length (varint).
#[derive(Default)]
pub struct DocumentRows {
    /// The rows.
    pub bytes: Vec<u8>,
}

impl DocumentRows {
    /// Appends a document. The longest length is `u32::MAX - 1`, since lengths are stored plus one.
    pub fn push(&mut self, id: &str, length: u32) {
        let length = length.min(MAX_LENGTH);
        varint::write(id.len() as u64, &mut self.bytes);
        self.bytes.extend_from_slice(id.as_bytes());
        varint::write(u64::from(length), &mut self.bytes);
    }
}

/// Stored fields of documents, in compressed blocks.
#[derive(Default)]
pub struct StoredBlocks {
    /// The compressed blocks.
    pub bytes: Vec<u8>,
    /// A row for each block.
    pub rows: Vec<StoredRow>,
    /// The block being filled.
    open: Vec<u8>,
    documents: u32,
    first: u32,
}

/// One block of stored fields.
#[derive(Clone, Copy)]
pub struct StoredRow {
    /// Its first document.
    pub first: u32,
    /// Its size when decompressed.
    pub size: u32,
    /// Its size as stored.
    pub compressed: u32,
}

impl StoredBlocks {
    /// Appends a document: the length of all its fields together, then each field after its length.
    pub fn push(&mut self, fields: &[&str]) -> Result<(), BuildError> {
        if fields.is_empty() {
            self.documents += 1;
            return Ok(());
        }
        let mut own = Vec::new();
        for field in fields {
            varint::write(field.len() as u64, &mut own);
            own.extend_from_slice(field.as_bytes());
        }
        self.push_encoded(&own)
    }

    /// Appends a document whose fields are already encoded.
    pub fn push_encoded(&mut self, own: &[u8]) -> Result<(), BuildError> {
        self.documents += 1;
        varint::write(own.len() as u64, &mut self.open);
        self.open.extend_from_slice(own);
        if self.open.len() >= STORED_BLOCK_BYTES {
            self.finish()?;
        }
        Ok(())
    }

    /// Compresses the block being filled.
    pub fn finish(&mut self) -> Result<(), BuildError> {
        if !self.open.is_empty() {
            let start = self.bytes.len();
            let compressed = zstd::bulk::compress(&self.open, COMPRESSION_LEVEL).map_err(BuildError::Memory)?;
            self.bytes.extend_from_slice(&compressed);
            let compressed = (self.bytes.len() - start) as u32;
            self.rows.push(StoredRow { first: self.first, size: self.open.len() as u32, compressed });
            self.open.clear();
        }
        self.first = self.documents;
        Ok(())
    }
}

/// The documents of the whole build, on disk until the segment is written.
pub struct DocumentSpool {
    rows: Spool,
    stored: Spool,
    stored_rows: Vec<StoredRow>,
    row_bytes: u64,
    /// Documents so far.
    pub count: u32,
}

impl DocumentSpool {
    /// Starts with two empty files.
    pub fn new(rows: Spool, stored: Spool) -> DocumentSpool {
        DocumentSpool { rows, stored, stored_rows: Vec::new(), row_bytes: 0, count: 0 }
    }

    /// Appends the documents of the next batch.
    pub fn push(&mut self, count: u32, rows: &DocumentRows, stored: &StoredBlocks) -> Result<(), BuildError> {
        self.rows.write(&rows.bytes)?;
        self.row_bytes += rows.bytes.len() as u64;
        self.stored.write(&stored.bytes)?;
        let base = self.count;
        self.stored_rows.extend(stored.rows.iter().map(|row| StoredRow { first: base + row.first, ..*row }));
        self.count += count;
        Ok(())
    }

    /// Bytes of all rows.
    pub fn row_bytes(&self) -> u64 {
        self.row_bytes
    }

    /// Bytes of all stored fields, before compression.
    pub fn stored_bytes(&self) -> u64 {
        self.stored_rows.iter().map(|row| u64::from(row.size)).sum()
    }

    /// Removes the files.
    pub fn remove(self) -> Result<(), BuildError> {
        self.rows.remove()?;
        self.stored.remove()
    }

    /// Calls `visit` with the number and the encoded fields of every document in order; never if no fields are stored.
    pub fn each_stored(
        &mut self,
        mut visit: impl FnMut(u32, &[u8]) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        let mut reader = self.stored.reader()?;
        let mut block = Vec::new();
        for row in &self.stored_rows {
            reader.bytes(row.compressed as usize, &mut block)?;
            each_of_block(&block, row, &mut visit)?;
        }
        Ok(())
    }

    /// Calls `visit` with the number, id and length of every document in order.
    pub fn each(&mut self, mut visit: impl FnMut(u32, &str, u32) -> Result<(), BuildError>) -> Result<(), BuildError> {
        let count = self.count;
        let mut reader = self.rows.reader()?;
        let mut id = Vec::new();
        for document in 0..count {
            let id_bytes = reader.varint()? as usize;
            reader.bytes(id_bytes, &mut id)?;
            let length = reader.varint()? as u32;
            visit(document, &String::from_utf8_lossy(&id), length)?;
        }
        Ok(())
    }

    /// The documents that have the id of an earlier document, in order, each with its id.
    ///
    /// Ids are compared by hash first, a share of the hashes at a time so that they fit in `memory_bytes`. Ids with
    /// equal hashes are then compared as text.
    pub fn duplicates(&mut self, memory_bytes: usize) -> Result<Vec<(u32, String)>, BuildError> {
        let shares = (self.count as usize * 16).div_ceil(memory_bytes.max(1 << 20)).max(1) as u64;
        let mut suspects = Vec::new();
        for share in 0..shares {
            let mut hashes = Vec::new();
            self.each(|document, id, _| {
                let hash = hash(id.as_bytes());
                if hash % shares == share {
                    hashes.push((hash, document));
                }
                Ok(())
            })?;
            hashes.sort_unstable();
            for same in hashes.chunk_by(|a, b| a.0 == b.0).filter(|same| same.len() > 1) {
                suspects.extend(same.iter().map(|&(_, document)| document));
            }
        }
        if suspects.is_empty() {
            return Ok(Vec::new());
        }
        suspects.sort_unstable();
        let (mut seen, mut duplicates) = (HashMap::new(), Vec::new());
        self.each(|document, id, _| {
            if suspects.binary_search(&document).is_ok() && seen.insert(id.to_owned(), document).is_some() {
                duplicates.push((document, id.to_owned()));
            }
            Ok(())
        })?;
        Ok(duplicates)
    }

    /// The length codes of the kept documents, and the sum of their lengths.
    pub fn length_codes(&mut self, dropped: &[u32]) -> Result<(Vec<u8>, u64), BuildError> {
        let mut codes = Vec::with_capacity(self.count as usize - dropped.len());
        let mut tokens = 0;
        self.each(|document, _, length| {
            if renumber(dropped, document).is_some() {
                codes.push(length_code(length));
                tokens += u64::from(length);
            }
            Ok(())
        })?;
        Ok((codes, tokens))
    }

    /// Writes the ids, lengths and ranks of the kept documents. Returns how many have a rank.
    pub fn write_rows(
        &mut self,
        dropped: &[u32],
        ranks: Option<&HashMap<String, f32>>,
        segment: &mut SegmentWriter,
        mut spools: [Spool; 2],
    ) -> Result<u64, BuildError> {
        let [lengths, ranked] = &mut spools;
        let mut ids = IdWriter::default();
        let mut packer = LengthPacker::default();
        let mut found = 0;
        segment.begin(Section::Ids)?;
        self.each(|document, id, length| {
            if renumber(dropped, document).is_none() {
                return Ok(());
            }
            ids.push(id.as_bytes());
            if ids.bytes.len() >= 64 * 1024 {
                segment.write(&ids.take())?;
            }
            packer.push(length, lengths)?;
            if let Some(ranks) = ranks {
                let rank = ranks.get(id).copied();
                found += u64::from(rank.is_some());
                ranked.write(&rank.unwrap_or(0.0).to_le_bytes())?;
            }
            Ok(())
        })?;
        ids.finish_group();
        segment.write(&ids.take())?;
        segment.section(Section::IdGroups, &ids.groups)?;
        packer.finish(lengths)?;
        segment.begin(Section::Lengths)?;
        segment.write(&packer.rows)?;
        segment.copy(lengths)?;
        if ranks.is_some() {
            segment.begin(Section::Ranks)?;
            segment.copy(ranked)?;
        }
        Ok(found)
    }

    /// Writes the stored fields of the kept documents.
    pub fn write_stored(&mut self, dropped: &[u32], segment: &mut SegmentWriter) -> Result<(), BuildError> {
        if self.stored_rows.is_empty() {
            return Ok(());
        }
        let ends: Vec<u32> = self.stored_rows.iter().skip(1).map(|row| row.first).chain([self.count]).collect();
        let mut reader = self.stored.reader()?;
        let (mut table, mut offset, mut block) = (Vec::new(), 0u64, Vec::new());
        segment.begin(Section::Stored)?;
        for (row, end) in self.stored_rows.iter().zip(ends) {
            reader.bytes(row.compressed as usize, &mut block)?;
            let gone = dropped.partition_point(|&d| d < row.first)..dropped.partition_point(|&d| d < end);
            let first = row.first - gone.start as u32;
            let kept = if gone.is_empty() {
                StoredBlocks { bytes: block.clone(), rows: vec![StoredRow { first, ..*row }], ..Default::default() }
            } else {
                without(&block, row, &dropped[gone], first)?
            };
            for row in &kept.rows {
                table.extend(row.first.to_le_bytes());
                table.extend(row.size.to_le_bytes());
                table.extend(offset.to_le_bytes());
                offset += u64::from(row.compressed);
            }
            segment.write(&kept.bytes)?;
        }
        segment.section(Section::StoredBlocks, &table)
    }
}

/// Compresses a block of stored fields again without its dropped documents.
fn without(block: &[u8], row: &StoredRow, dropped: &[u32], first: u32) -> Result<StoredBlocks, BuildError> {
    let mut kept = StoredBlocks { documents: first, first, ..Default::default() };
    each_of_block(block, row, &mut |document, own| {
        if dropped.binary_search(&document).is_err() {
            kept.push_encoded(own)?;
        }
        Ok(())
    })?;
    kept.finish()?;
    Ok(kept)
}

/// Calls `visit` with the number and the encoded fields of every document of a compressed block.
fn each_of_block(
    block: &[u8],
    row: &StoredRow,
    visit: &mut impl FnMut(u32, &[u8]) -> Result<(), BuildError>,
) -> Result<(), BuildError> {
    let block = zstd::bulk::decompress(block, row.size as usize).map_err(|_| BuildError::DamagedFile)?;
    let mut rest = &block[..];
    let mut document = row.first;
    while !rest.is_empty() {
        let own = varint::read(&mut rest).and_then(|length| varint::take(&mut rest, length as usize));
        visit(document, own.ok_or(BuildError::DamagedFile)?)?;
        document += 1;
    }
    Ok(())
}

/// Writes ids in groups: the common prefix of the group, the lengths of the rests, and the rests.
#[derive(Default)]
struct IdWriter {
    bytes: Vec<u8>,
    groups: Vec<u8>,
    written: u64,
    /// The ids of the current group: `ids[ends[i - 1]..ends[i]]`.
    ids: Vec<u8>,
    ends: Vec<usize>,
}

impl IdWriter {
    fn push(&mut self, id: &[u8]) {
        self.ids.extend_from_slice(id);
        self.ends.push(self.ids.len());
        if self.ends.len() == IDS_IN_GROUP as usize {
            self.finish_group();
        }
    }

    /// Writes the current group, if it is not empty.
    fn finish_group(&mut self) {
        if self.ends.is_empty() {
            return;
        }
        self.groups.extend((self.written + self.bytes.len() as u64).to_le_bytes());
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        let ids: Vec<&[u8]> = starts.zip(&self.ends).map(|(start, &end)| &self.ids[start..end]).collect();
        let shared_with = |id: &&[u8]| id.iter().zip(ids[0]).take_while(|(a, b)| a == b).count();
        let shared = ids.iter().map(shared_with).min().unwrap_or(0);
        varint::write(shared as u64, &mut self.bytes);
        self.bytes.extend_from_slice(&ids[0][..shared]);
        for id in &ids {
            varint::write((id.len() - shared) as u64, &mut self.bytes);
        }
        for id in &ids {
            self.bytes.extend_from_slice(&id[shared..]);
        }
        self.ids.clear();
        self.ends.clear();
    }

    /// Takes the finished groups.
    fn take(&mut self) -> Vec<u8> {
        self.written += self.bytes.len() as u64;
        std::mem::take(&mut self.bytes)
    }
}

/// Packs exact lengths in blocks of 128. The row of a block has its directory byte and, in seven bytes, its start.
#[derive(Default)]
struct LengthPacker {
    block: Vec<u32>,
    rows: Vec<u8>,
    written: u64,
}

impl LengthPacker {
    fn push(&mut self, length: u32, out: &mut Spool) -> Result<(), BuildError> {
        // Codecs store values of at least 1, and a length may be 0.
        self.block.push(length + 1);
        if self.block.len() == BLOCK { self.finish(out) } else { Ok(()) }
    }

    fn finish(&mut self, out: &mut Spool) -> Result<(), BuildError> {
        if self.block.is_empty() {
            return Ok(());
        }
        let mut packed = Vec::new();
        let byte = CodecName::Bitpack.codec().encode_values(&[], &self.block, &mut packed);
        self.rows.extend((self.written << 8 | u64::from(byte)).to_le_bytes());
        self.written += packed.len() as u64;
        self.block.clear();
        out.write(&packed)
    }
}
