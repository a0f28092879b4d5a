//! Writing the terms with the sizes of their lists, the short lists, and the hash table over the terms.

use super::BuildError;
use super::list::{Encoded, Lists};
use super::write::{SegmentWriter, Spool};
use crate::format::lexicon::{GroupRow, LONG_TERM, LexiconLayout, MAX_TERMS, TERMS_IN_GROUP, hash, short_lengths};
use crate::format::segment::Section;
use crate::format::varint;
use std::path::Path;

/// Some consecutive terms, encoded.
#[derive(Default)]
pub struct EncodedTerms {
    /// Their texts, concatenated.
    pub text: Vec<u8>,
    /// Their lists.
    pub lists: Lists,
    /// For each term: the end of its text, the size of its list, and its postings.
    pub terms: Vec<(usize, Encoded, u32)>,
}

/// The term table, the short lists and the lexicon, spooled while the long lists are written.
pub struct TermsWriter {
    short: Spool,
    entries: Spool,
    /// The hash of each term.
    hashes: Spool,
    rows: Vec<u8>,
    group: Group,
    entries_written: u64,
    short_written: u64,
    long_written: u64,
    terms: u64,
    /// Postings so far.
    pub postings: u64,
}

impl TermsWriter {
    /// Creates the spools in a folder.
    pub fn create(building: &Path) -> Result<TermsWriter, BuildError> {
        Ok(TermsWriter {
            short: Spool::create(building.join("short-lists"))?,
            entries: Spool::create(building.join("terms"))?,
            hashes: Spool::create(building.join("hashes"))?,
            rows: Vec::new(),
            group: Group::default(),
            entries_written: 0,
            short_written: 0,
            long_written: 0,
            terms: 0,
            postings: 0,
        })
    }

    /// Adds the next terms, which sort after the earlier ones.
    pub fn push(&mut self, batch: &EncodedTerms) -> Result<(), BuildError> {
        let (mut entries, mut hashes) = (Vec::new(), Vec::new());
        let mut start = 0;
        for &(end, list, postings) in &batch.terms {
            let text = &batch.text[start..end];
            if self.terms.is_multiple_of(TERMS_IN_GROUP) {
                self.group.finish(&mut entries);
                let group = self.entries_written + entries.len() as u64;
                let row = GroupRow { group, short: self.short_written, long: self.long_written };
                self.rows.extend(row.encode().ok_or(BuildError::TermsTooLarge)?);
            }
            let size = match list {
                Encoded::Empty => 0,
                Encoded::Short(bytes) => {
                    self.short_written += bytes as u64;
                    (bytes as u64) << 1
                }
                Encoded::Long(units) => {
                    self.long_written += units as u64;
                    (units as u64) << 1 | 1
                }
            };
            self.group.push(text, size);
            hashes.extend(hash(text).to_le_bytes());
            self.terms += 1;
            self.postings += u64::from(postings);
            start = end;
        }
        if self.terms > MAX_TERMS {
            return Err(BuildError::TooManyTerms);
        }
        self.entries_written += entries.len() as u64;
        self.entries.write(&entries)?;
        self.hashes.write(&hashes)?;
        self.short.write(&batch.lists.short)
    }

    /// Writes the sections and returns the numbers of terms and postings.
    pub fn finish(mut self, segment: &mut SegmentWriter) -> Result<(u64, u64), BuildError> {
        let mut entries = Vec::new();
        self.group.finish(&mut entries);
        self.entries.write(&entries)?;
        segment.begin(Section::ShortLists)?;
        segment.copy(&mut self.short)?;
        segment.begin(Section::Terms)?;
        segment.write(&self.rows)?;
        segment.copy(&mut self.entries)?;
        segment.section(Section::Lexicon, &lexicon(self.terms, &mut self.hashes)?)?;
        Ok((self.terms, self.postings))
    }
}

/// The group of terms being filled.
#[derive(Default)]
struct Group {
    first: Vec<u8>,
    lengths: Vec<u8>,
    sizes: Vec<u8>,
    texts: Vec<u8>,
}

impl Group {
    fn push(&mut self, text: &[u8], size: u64) {
        let shared = self.first.iter().zip(text).take_while(|(a, b)| a == b).count();
        let others = &text[shared..];
        match short_lengths(shared, others.len()) {
            Some(byte) => self.lengths.push(byte),
            None => {
                self.lengths.push(LONG_TERM);
                varint::write(shared as u64, &mut self.texts);
                varint::write(others.len() as u64, &mut self.texts);
            }
        }
        if self.lengths.len() == 1 {
            self.first.extend_from_slice(text);
        }
        varint::write(size, &mut self.sizes);
        self.texts.extend_from_slice(others);
    }

    /// Appends the group to `out` and starts a new one.
    fn finish(&mut self, out: &mut Vec<u8>) {
        for part in [&mut self.lengths, &mut self.sizes, &mut self.texts] {
            out.append(part);
        }
        self.first.clear();
    }
}

/// Builds the hash table from the hashes of all terms in order.
fn lexicon(terms: u64, hashes: &mut Spool) -> Result<Vec<u8>, BuildError> {
    let layout = LexiconLayout::new(terms);
    let mut starts = vec![0u32; layout.buckets as usize + 1];
    for_each_hash(terms, hashes, |_, hash| starts[layout.bucket(hash) + 1] += 1)?;
    for bucket in 1..starts.len() {
        starts[bucket] += starts[bucket - 1];
    }
    let mut bytes: Vec<u8> = starts.iter().flat_map(|start| start.to_le_bytes()).collect();
    bytes.resize(layout.bytes(), 0);
    for_each_hash(terms, hashes, |number, hash| {
        let next = &mut starts[layout.bucket(hash)];
        let at = layout.entries() + 4 * *next as usize;
        bytes[at..at + 4].copy_from_slice(&layout.entry(hash, number).to_le_bytes());
        *next += 1;
    })?;
    Ok(bytes)
}

fn for_each_hash(terms: u64, hashes: &mut Spool, mut act: impl FnMut(u64, u64)) -> Result<(), BuildError> {
    let (mut reader, mut bytes) = (hashes.reader()?, Vec::new());
    for number in 0..terms {
        reader.bytes(8, &mut bytes)?;
        act(number, bytes.as_chunks::<8>().0.first().map_or(0, |bytes| u64::from_le_bytes(*bytes)));
    }
    Ok(())
}
