//! Checksums of chunks of a segment, computed when a chunk is first read: a bit that has flipped on the way is found before
//! it changes an answer, and what is never read costs nothing.

use crate::format::segment::{CHUNK_BYTES, chunk_checksum, u32_at};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// When the bytes of an index are checked. Its manifest and header always are, when it is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// Each chunk of 16 KiB when it is first read, by its checksum. A plan checks the lists of its terms before anything
    /// reads them, on any processor. An index without such checksums, from an older version, is not checked.
    #[default]
    Lazy,
    /// Everything when the index is opened, checksums and structures, as [`Index::verify`](super::Index::verify) does.
    Full,
    /// Nothing: in a damaged index answers can be wrong.
    Off,
}

impl Verify {
    /// The names of all choices.
    pub const NAMES: [(&str, Verify); 3] = [("lazy", Verify::Lazy), ("full", Verify::Full), ("off", Verify::Off)];
}

impl std::str::FromStr for Verify {
    type Err = String;

    fn from_str(name: &str) -> Result<Verify, String> {
        let found = Verify::NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, verify)| *verify).ok_or_else(|| format!("unknown choice {name:?}; choose lazy, full or off"))
    }
}

/// Which chunks of a file were found sound.
pub struct Checks {
    /// The checksums: where they lie in the file, which is where the last chunk ends.
    table: Range<usize>,
    /// The checksum of the table, and whether it matches, once it is known.
    checksum: u32,
    is_table_sound: OnceLock<bool>,
    /// A bit for each chunk.
    sound: Box<[AtomicU64]>,
}

/// Why bytes are not as they were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsound {
    /// The checksums themselves are damaged.
    Table,
    /// This chunk is.
    Chunk(usize),
}

impl Checks {
    /// How many chunks there are before a table at an offset.
    pub fn chunks(table_start: usize) -> usize {
        table_start.div_ceil(CHUNK_BYTES)
    }

    /// Nothing is checked yet. The table has four bytes for each chunk.
    pub fn new(table: Range<usize>, checksum: u32) -> Checks {
        let words = Checks::chunks(table.start).div_ceil(64);
        let sound = (0..words).map(|_| AtomicU64::new(0)).collect();
        Checks { table, checksum, is_table_sound: OnceLock::new(), sound }
    }

    /// Checks those chunks with some bytes of the file that were not checked before.
    #[inline]
    pub fn check(&self, file: &[u8], bytes: Range<usize>) -> Result<(), Unsound> {
        let end = bytes.end.min(self.table.start);
        if bytes.start >= end {
            return Ok(());
        }
        let (first, last) = (bytes.start / CHUNK_BYTES, (end - 1) / CHUNK_BYTES);
        for word in first / 64..=last / 64 {
            let from = if word == first / 64 { u64::MAX << (first % 64) } else { u64::MAX };
            let to = if word == last / 64 { u64::MAX >> (63 - last % 64) } else { u64::MAX };
            // Relaxed: the bit says nothing of other memory, and the file does not change.
            let unknown = from & to & !self.sound[word].load(Ordering::Relaxed);
            if unknown != 0 {
                self.check_chunks(file, word, unknown)?;
            }
        }
        Ok(())
    }

    #[cold]
    fn check_chunks(&self, file: &[u8], word: usize, mut unknown: u64) -> Result<(), Unsound> {
        let table = &file[self.table.clone()];
        if !self.is_table_sound.get_or_init(|| crc32fast::hash(table) == self.checksum) {
            return Err(Unsound::Table);
        }
        while unknown != 0 {
            let chunk = 64 * word + unknown.trailing_zeros() as usize;
            if chunk_checksum(file, self.table.start, chunk) != u32_at(table, 4 * chunk) {
                return Err(Unsound::Chunk(chunk));
            }
            self.sound[word].fetch_or(unknown & unknown.wrapping_neg(), Ordering::Relaxed);
            unknown &= unknown - 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::segment::HEADER_BYTES;
    use proptest::prelude::*;

    /// A file of some bytes, and the table after them.
    fn file(bytes: usize) -> (Vec<u8>, Checks) {
        let mut file: Vec<u8> = (0..bytes).map(|at| (at * at / 7) as u8).collect();
        let table: Vec<u8> =
            (0..Checks::chunks(bytes)).flat_map(|chunk| chunk_checksum(&file, bytes, chunk).to_le_bytes()).collect();
        file.extend(&table);
        let checks = Checks::new(bytes..file.len(), crc32fast::hash(&table));
        (file, checks)
    }

    proptest! {
        #[test]
        fn a_flipped_bit_is_found_by_a_read_of_its_chunk_and_by_no_other(
            bytes in HEADER_BYTES + 1..70 * CHUNK_BYTES,
            flipped in any::<prop::sample::Index>(),
            reads in prop::collection::vec((any::<prop::sample::Index>(), 0..3 * CHUNK_BYTES), 1..20),
        ) {
            let (mut file, checks) = file(bytes);
            let flipped = HEADER_BYTES + flipped.index(bytes - HEADER_BYTES);
            file[flipped] ^= 4;
            for (start, length) in reads {
                let start = start.index(bytes);
                let end = start + length;
                let chunk = flipped / CHUNK_BYTES;
                let is_read = end.min(bytes) > start && (start / CHUNK_BYTES..=(end.min(bytes) - 1) / CHUNK_BYTES).contains(&chunk);
                let expected = if is_read { Err(Unsound::Chunk(chunk)) } else { Ok(()) };
                prop_assert_eq!(checks.check(&file, start..end), expected);
            }
        }
    }

    #[test]
    fn a_chunk_is_checked_once_and_the_table_before_it() {
        let (mut file, checks) = file(3 * CHUNK_BYTES);
        checks.check(&file, 0..CHUNK_BYTES).unwrap();
        file[CHUNK_BYTES - 1] ^= 1;
        assert_eq!(checks.check(&file, 0..CHUNK_BYTES), Ok(()), "known");
        *file.last_mut().unwrap() ^= 1;
        assert_eq!(checks.check(&file, 0..2 * CHUNK_BYTES), Ok(()), "so was the table");
        let fresh = Checks::new(3 * CHUNK_BYTES..file.len(), checks.checksum);
        assert_eq!(fresh.check(&file, CHUNK_BYTES..2 * CHUNK_BYTES), Err(Unsound::Table));
    }
}
