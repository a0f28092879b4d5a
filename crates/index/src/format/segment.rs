//! A segment file: a header, a table of sections, and the sections, each with a checksum.

use super::{IndexError, NEWEST, OLDEST};
use crate::codec::{CodecName, Codecs};
use std::path::Path;

/// The first bytes of a segment file.
pub const MAGIC: [u8; 8] = *b"LANNERsg";
/// Bytes of the header with its table.
pub const HEADER_BYTES: usize = 1024;
/// Sections start at multiples of this many bytes.
pub const ALIGNMENT: u64 = 128;
/// Bytes of a chunk of the file with a checksum of its own. The first chunk has no header, which has its own.
pub const CHUNK_BYTES: usize = 16 * 1024;
/// Consecutive documents in a window.
pub const WINDOW: u32 = 32_768;
/// The most documents of an index; `u32::MAX` means "after the last document".
pub const MAX_DOCUMENTS: u64 = u32::MAX as u64 - 1;

const FIXED_BYTES: usize = 128;
const ENTRY_BYTES: usize = 32;
/// The bytes of the header's own checksum.
pub const CHECKSUM: std::ops::Range<usize> = 12..16;

/// Defines [`Section`] from a table with one row for each: variant, tag, name, and `optional` if segments may lack it.
macro_rules! sections {
    ($($(#[doc = $doc:literal])* $section:ident = $tag:literal, $name:literal $(, $optional:ident)?;)*) => {
        /// What a section holds; the number is its tag in the file.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum Section {
            $($(#[doc = $doc])* $section = $tag,)*
        }

        impl Section {
            /// All sections that this version knows, by tag.
            pub const ALL: [Section; [$($tag),*].len()] = [$(Section::$section),*];

            /// The name in errors, statistics and documentation.
            pub fn name(self) -> &'static str {
                match self {
                    $(Section::$section => $name,)*
                }
            }

            /// Whether a segment may be without it.
            fn is_optional(self) -> bool {
                match self {
                    $(Section::$section => sections!(@is_optional $($optional)?),)*
                }
            }
        }
    };
    (@is_optional optional) => { true };
    (@is_optional) => { false };
}

sections! {
    /// Lists of at least a full block, with their directories.
    LongLists = 1, "long-lists";
    /// Lists of fewer postings than a block.
    ShortLists = 2, "short-lists";
    /// The terms in order, with the spans of their lists.
    Terms = 3, "terms";
    /// A hash table from terms to their numbers.
    Lexicon = 4, "lexicon";
    /// The start of each group of external ids.
    IdGroups = 5, "id-groups";
    /// The external ids, in groups that store a shared prefix once.
    Ids = 6, "ids";
    /// The length code of each document.
    LengthCodes = 7, "length-codes";
    /// The exact length of each document.
    Lengths = 8, "lengths";
    /// The static rank of each document, from 0 to 1, if ranks were given.
    Ranks = 9, "ranks", optional;
    /// The start of each block of stored fields.
    StoredBlocks = 10, "stored-blocks", optional;
    /// The stored fields, in compressed blocks.
    Stored = 11, "stored", optional;
    /// The spans of the impact-ordered lists, if they were asked for.
    ImpactDirectory = 12, "impact-directory", optional;
    /// The postings of long lists a second time, in segments of equal impact.
    ImpactLists = 13, "impact-lists", optional;
    /// A checksum for each chunk of the file before this section, so that a chunk can be checked when it is first read.
    Checksums = 14, "checksums", optional;
}

/// One row of the section table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The section's tag; readers skip those they do not know.
    pub tag: u32,
    /// CRC-32 of the section's bytes.
    pub checksum: u32,
    /// Its offset in the file.
    pub offset: u64,
    /// Its length, without the padding before the next section.
    pub length: u64,
}

/// The header of a segment file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the whole file.
    pub file_bytes: u64,
    /// Documents.
    pub documents: u32,
    /// Distinct terms.
    pub terms: u64,
    /// Pairs of term and document.
    pub postings: u64,
    /// Sum of the lengths of all documents.
    pub tokens: u64,
    /// Fingerprint of the statistics that bounds, k-th weights and impacts were computed with.
    pub fingerprint: u64,
    /// How the columns are packed.
    pub codecs: Codecs,
    /// Whether blocks hold frequencies.
    pub has_frequencies: bool,
    /// Whether blocks hold impacts.
    pub has_impacts: bool,
    /// Whether lists with many documents are dense.
    pub has_dense: bool,
    /// The sections, in the order of the file.
    pub table: Vec<Entry>,
}

impl Header {
    /// Encodes the header with its checksum.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend(MAGIC);
        bytes.extend(NEWEST.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend((HEADER_BYTES as u32).to_le_bytes());
        bytes.extend((self.table.len() as u32).to_le_bytes());
        bytes.extend(self.file_bytes.to_le_bytes());
        bytes.extend(self.documents.to_le_bytes());
        bytes.extend([0; 4]);
        for number in [self.terms, self.postings, self.tokens, self.fingerprint] {
            bytes.extend(number.to_le_bytes());
        }
        let columns = u8::from(self.has_frequencies) | u8::from(self.has_impacts) << 1;
        let has_dense = u8::from(self.has_dense);
        bytes.extend([self.codecs.documents as u8, self.codecs.weights as u8, columns, has_dense]);
        bytes.resize(FIXED_BYTES, 0);
        for entry in &self.table {
            bytes.extend(entry.tag.to_le_bytes());
            bytes.extend(entry.checksum.to_le_bytes());
            bytes.extend(entry.offset.to_le_bytes());
            bytes.extend(entry.length.to_le_bytes());
            bytes.extend([0; 8]);
        }
        assert!(bytes.len() <= HEADER_BYTES, "the table holds at most 28 sections");
        bytes.resize(HEADER_BYTES, 0);
        let checksum = checksum_of(&bytes);
        bytes[CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Decodes and checks the header and section table of a file of `file_bytes` bytes that starts with `bytes`.
    pub fn decode(path: &Path, bytes: &[u8], file_bytes: u64) -> Result<Header, IndexError> {
        let damaged = |what: &str| IndexError::damaged(path, "header", what);
        let bytes = bytes.get(..HEADER_BYTES).ok_or_else(|| damaged("the file is shorter than a header"))?;
        if bytes[..8] != MAGIC {
            return Err(damaged("the first bytes are not those of a segment"));
        }
        let version = u32_at(bytes, 8);
        let is_intact = u32_at(bytes, CHECKSUM.start) == checksum_of(bytes);
        if is_intact && !(OLDEST..=NEWEST).contains(&version) {
            return Err(IndexError::Version { path: path.to_owned(), found: version });
        }
        if !is_intact {
            return Err(damaged("its checksum does not match"));
        }
        let header = Header::fields(bytes).ok_or_else(|| damaged("it names a codec this version does not know"))?;
        if header.file_bytes != file_bytes {
            let what = format!("the file has {file_bytes} bytes, not {}", header.file_bytes);
            return Err(damaged(&what));
        }
        header.check_table().map_err(|what| IndexError::damaged(path, "section table", what))?;
        Ok(header)
    }

    fn fields(bytes: &[u8]) -> Option<Header> {
        let sections = (u32_at(bytes, 20) as usize).min((HEADER_BYTES - FIXED_BYTES) / ENTRY_BYTES);
        let table = bytes[FIXED_BYTES..].chunks_exact(ENTRY_BYTES).take(sections).map(|entry| Entry {
            tag: u32_at(entry, 0),
            checksum: u32_at(entry, 4),
            offset: u64_at(entry, 8),
            length: u64_at(entry, 16),
        });
        Some(Header {
            file_bytes: u64_at(bytes, 24),
            documents: u32_at(bytes, 32),
            terms: u64_at(bytes, 40),
            postings: u64_at(bytes, 48),
            tokens: u64_at(bytes, 56),
            fingerprint: u64_at(bytes, 64),
            codecs: Codecs { documents: CodecName::from_tag(bytes[72])?, weights: CodecName::from_tag(bytes[73])? },
            has_frequencies: bytes[74] & 1 != 0,
            has_impacts: bytes[74] & 2 != 0,
            has_dense: bytes[75] & 1 != 0,
            table: table.collect(),
        })
    }

    /// Checks that sections are aligned, in order and inside the file, and that all mandatory ones are present.
    fn check_table(&self) -> Result<(), String> {
        let mut free = HEADER_BYTES as u64;
        for entry in &self.table {
            let end = entry.offset.checked_add(entry.length).filter(|&end| end <= self.file_bytes);
            if entry.offset < free || entry.offset % ALIGNMENT != 0 || end.is_none() {
                return Err(format!("section {} has an impossible offset or length", entry.tag));
            }
            free = entry.offset + entry.length;
        }
        for section in Section::ALL.into_iter().filter(|section| !section.is_optional()) {
            if self.entry(section).is_none() {
                return Err(format!("section '{}' is missing", section.name()));
            }
        }
        Ok(())
    }

    /// The row of a section in the table.
    pub fn entry(&self, section: Section) -> Option<&Entry> {
        self.table.iter().find(|entry| entry.tag == section as u32)
    }
}

/// CRC-32 of a chunk of a file whose last chunk ends at `end`, without the header in the first one.
pub fn chunk_checksum(file: &[u8], end: usize, chunk: usize) -> u32 {
    crc32fast::hash(&file[HEADER_BYTES.max(chunk * CHUNK_BYTES)..end.min((chunk + 1) * CHUNK_BYTES)])
}

/// CRC-32 of header and table without the four bytes of the checksum itself.
fn checksum_of(header: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&header[..CHECKSUM.start]);
    hasher.update(&header[CHECKSUM.end..]);
    hasher.finalize()
}

/// The little-endian number at a byte offset that the caller has checked.
#[inline]
pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// The little-endian number at a byte offset that the caller has checked.
#[inline]
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().expect("the bytes of the number"))
}

/// The little-endian number at a byte offset that the caller has checked.
#[inline]
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("the bytes of the number"))
}
