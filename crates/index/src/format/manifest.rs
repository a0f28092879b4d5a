//! The manifest: one immutable file per generation of the index, with its segments, settings and statistics.
//!
//! The first line is `lanner-manifest FORMAT CRC`, the rest is JSON. A reader opens the highest generation.

use super::{IndexError, NEWEST, OLDEST};
use crate::weight::Bm25;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

const MAGIC: &str = "lanner-manifest";
const SECTION: &str = "manifest";

/// One generation of an index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Increases with each build.
    pub generation: u64,
    /// The analyzer as the user named it.
    pub analyzer: String,
    /// The steps of the analyzer, for queries and documents alike.
    pub chain: String,
    /// The words of its step `stop:own`; manifests without that step lack it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop_words: Vec<String>,
    /// The indexed fields, concatenated in this order.
    pub fields: Vec<String>,
    /// The stored fields.
    pub stored: Vec<String>,
    /// The parameters of BM25.
    pub bm25: Bm25,
    /// The order in which documents are numbered; older manifests lack it, and mean the order of the input.
    #[serde(default)]
    pub order: Order,
    /// The statistics that scores are computed with.
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
    /// The order of the input.
    #[default]
    Given,
    /// Recursive graph bisection: similar documents get close numbers, which makes lists smaller.
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

/// Statistics of a whole collection, of which the index may be one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    /// Documents.
    pub documents: u64,
    /// The sum of their lengths.
    pub tokens: u64,
}

impl Statistics {
    /// The average length of a document in tokens; 0 in an empty collection.
    pub fn average_length(&self) -> f64 {
        if self.documents == 0 { 0.0 } else { self.tokens as f64 / self.documents as f64 }
    }

    /// A hash (FNV-1a) of everything that norms depend on: equal fingerprints mean equal weights.
    pub fn fingerprint(&self, bm25: &Bm25) -> u64 {
        let numbers = [self.documents, self.tokens, bm25.k1.to_bits(), bm25.b.to_bits()];
        let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
        bytes.fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3))
    }
}

/// How the 8-bit impacts were computed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Impacts {
    /// An impact is a weight times this, rounded and limited to 1..=255.
    pub scale: f64,
    /// Whether the weights came with the documents, not from BM25.
    pub learned: bool,
}

/// One segment of the index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentEntry {
    /// The file's name in the folder.
    pub file: String,
    /// Its bytes.
    pub bytes: u64,
    /// The checksum in its header, which reveals a file that was swapped.
    pub checksum: u32,
}

impl Manifest {
    /// Encodes the manifest with its first line.
    pub fn encode(&self) -> Vec<u8> {
        let json = serde_json::to_string_pretty(self).expect("a manifest has only text keys");
        let body = format!("{json}\n");
        let checksum = checksum_of(NEWEST, body.as_bytes());
        format!("{MAGIC} {NEWEST} {checksum:08x}\n{body}").into_bytes()
    }

    /// Decodes and checks a manifest.
    pub fn decode(path: &Path, bytes: &[u8]) -> Result<Manifest, IndexError> {
        let damaged = |what: &str| IndexError::damaged(path, SECTION, what);
        let end = bytes.iter().position(|&byte| byte == b'\n').ok_or_else(|| damaged("its first line does not end"))?;
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
        let manifest: Manifest = serde_json::from_slice(body).map_err(|error| damaged(&error.to_string()))?;
        match manifest.wrong_number() {
            Some(what) => Err(damaged(what)),
            None => Ok(manifest),
        }
    }

    /// A number that no index can have.
    fn wrong_number(&self) -> Option<&'static str> {
        let is_scale = |impacts: &Impacts| impacts.scale.is_finite() && impacts.scale > 0.0;
        if !self.bm25.is_valid() {
            return Some("k1 is not from 0 to 1000, or b not from 0 to 1");
        }
        (!self.impacts.as_ref().is_none_or(is_scale)).then_some("the scale of impacts is not above 0")
    }

    /// The name of the manifest of a generation.
    pub fn file_name(generation: u64) -> String {
        format!("manifest-{generation:08}")
    }

    /// The generation in the name of a manifest.
    pub fn generation_of(name: &str) -> Option<u64> {
        let generation = name.strip_prefix("manifest-")?.parse().ok()?;
        (Manifest::file_name(generation) == name).then_some(generation)
    }

    /// The manifest of the highest generation in a folder.
    pub fn current(folder: &Path) -> Result<Option<PathBuf>, IndexError> {
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
                return Err(IndexError::NotFolder { path: folder.to_owned() });
            }
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

/// CRC-32 of the format number and of everything after the first line.
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
