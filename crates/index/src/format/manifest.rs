//! The manifest: one immutable file for each generation of the index, naming its segments and its statistics.
//!
//! The first line is `lanner-manifest FORMAT CRC`, the rest is JSON. A reader takes the highest generation there is.

use super::{IndexError, NEWEST, OLDEST};
use crate::weight::Bm25;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

const MAGIC: &str = "lanner-manifest";
const SECTION: &str = "manifest";

/// What a generation of the index consists of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Counts up with each change of the index.
    pub generation: u64,
    /// The analyzer as the user named it.
    pub analyzer: String,
    /// The analyzer's steps, which queries go through as the documents did.
    pub chain: String,
    /// The indexed fields, concatenated in this order.
    pub fields: Vec<String>,
    /// The stored fields.
    pub stored: Vec<String>,
    /// The parameters of BM25.
    pub bm25: Bm25,
    /// The order in which documents are numbered; that of the input in manifests from before there was a choice.
    #[serde(default)]
    pub order: Order,
    /// The statistics that scores are made with.
    pub statistics: Statistics,
    /// Where impacts come from, if there are any.
    pub impacts: Option<Impacts>,
    /// The segments in the order of their documents.
    pub segments: Vec<SegmentEntry>,
}

/// The order in which documents are numbered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// As they came.
    #[default]
    Given,
    /// By recursive graph bisection: documents with the same terms stand together, so that lists are smaller.
    Bisection,
}

impl std::str::FromStr for Order {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "given" => Ok(Order::Given),
            "bisection" => Ok(Order::Bisection),
            _ => Err(format!("unknown order {name:?}; choose given or bisection")),
        }
    }
}

impl std::fmt::Display for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Order::Given => "given",
            Order::Bisection => "bisection",
        })
    }
}

/// Statistics of a whole collection, of which an index may hold a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    /// Documents.
    pub documents: u64,
    /// Sum of their lengths.
    pub tokens: u64,
}

impl Statistics {
    /// Tokens in a document on average; 0 in an empty collection.
    pub fn average_length(&self) -> f64 {
        if self.documents == 0 { 0.0 } else { self.tokens as f64 / self.documents as f64 }
    }

    /// Tells apart statistics that give postings other weights (FNV-1a over what norms are made from).
    pub fn fingerprint(&self, bm25: &Bm25) -> u64 {
        let numbers = [self.documents, self.tokens, bm25.k1.to_bits(), bm25.b.to_bits()];
        let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
        bytes.fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3))
    }
}

/// How the 8-bit impacts were made.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Impacts {
    /// An impact is a weight times this, rounded, from 1 to 255.
    pub scale: f64,
    /// Whether the weights came with the documents instead of from BM25.
    pub learned: bool,
}

/// One segment of the index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentEntry {
    /// The file's name in the folder.
    pub file: String,
    /// Its bytes.
    pub bytes: u64,
    /// Checksum in its header, so that a file put in its place is noticed.
    pub checksum: u32,
}

impl Manifest {
    /// The manifest as it stands in its file.
    pub fn encode(&self) -> Vec<u8> {
        let json = serde_json::to_string_pretty(self).expect("a manifest has only text keys");
        let body = format!("{json}\n");
        let checksum = checksum_of(NEWEST, body.as_bytes());
        format!("{MAGIC} {NEWEST} {checksum:08x}\n{body}").into_bytes()
    }

    /// Reads and checks a manifest.
    pub fn decode(path: &Path, bytes: &[u8]) -> Result<Manifest, IndexError> {
        let damaged = |what: &str| IndexError::damaged(path, SECTION, what);
        let end = bytes.iter().position(|&byte| byte == b'\n').ok_or_else(|| damaged("its first line has no end"))?;
        let (line, body) = (&bytes[..end], &bytes[end + 1..]);
        let line = str::from_utf8(line).map_err(|_| damaged("its first line is not text"))?;
        let (version, checksum) =
            first_line(line).ok_or_else(|| damaged("its first line is not that of a manifest"))?;
        if checksum != checksum_of(version, body) {
            return Err(damaged("its checksum does not match"));
        }
        if !(OLDEST..=NEWEST).contains(&version) {
            return Err(IndexError::Version { path: path.to_owned(), found: version });
        }
        serde_json::from_slice(body).map_err(|error| damaged(&error.to_string()))
    }

    /// The name of the manifest of a generation.
    pub fn file_name(generation: u64) -> String {
        format!("manifest-{generation:08}")
    }

    /// The generation that a file name stands for.
    pub fn generation_of(name: &str) -> Option<u64> {
        let generation = name.strip_prefix("manifest-")?.parse().ok()?;
        (Manifest::file_name(generation) == name).then_some(generation)
    }

    /// The manifest of the highest generation in a folder.
    pub fn current(folder: &Path) -> Result<Option<PathBuf>, IndexError> {
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(IndexError::io(folder)(error)),
        };
        let mut highest = None;
        for entry in entries {
            let name = entry.map_err(IndexError::io(folder))?.file_name();
            highest = highest.max(name.to_str().and_then(Manifest::generation_of));
        }
        Ok(highest.map(|generation| folder.join(Manifest::file_name(generation))))
    }
}

/// CRC-32 of the format's number and all that follows the first line.
fn checksum_of(version: u32, body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&version.to_le_bytes());
    hasher.update(body);
    hasher.finalize()
}

fn first_line(line: &str) -> Option<(u32, u32)> {
    let mut words = line.split(' ');
    let magic = words.next()?;
    let version = words.next()?.parse().ok()?;
    let checksum =
        words.next().filter(|digits| digits.len() == 8 && !digits.bytes().any(|b| b.is_ascii_uppercase()))?;
    let checksum = u32::from_str_radix(checksum, 16).ok()?;
    (magic == MAGIC && words.next().is_none()).then_some((version, checksum))
}
