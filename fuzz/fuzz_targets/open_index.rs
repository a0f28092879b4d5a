//! An index with patched bytes: opening, verifying, searching and reading documents give errors or answers, no panic.
//!
//! An input names the index to damage, then lists patches. In half of the inputs the checksums are corrected, so that
//! the code behind them is reached.
#![no_main]

use lanner::{Algorithm, DocId, Index, Mode, Query, ScoreModel, Searcher};
use lanner_fuzz::{QUERIES, build_small_index, write_seeds};
use lanner_index::codec::CodecName;
use lanner_index::format::NEWEST;
use lanner_index::format::manifest::Manifest;
use lanner_index::format::segment::{CHECKSUM, HEADER_BYTES, Header};
use libfuzzer_sys::fuzz_target;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

const MODELS: [ScoreModel; 3] = [ScoreModel::Bm25, ScoreModel::Impact, ScoreModel::RankBm25 { alpha: 0.5 }];
const MANIFEST: &str = "manifest-00000001";
const SEGMENT: &str = "segment-00000001";

struct Original {
    manifest: Vec<u8>,
    segment: Vec<u8>,
}

/// The intact indexes, and the folder that each damaged index is written to.
struct Workplace {
    originals: Vec<Original>,
    folder: PathBuf,
}

static WORKPLACE: OnceLock<Workplace> = OnceLock::new();

/// Codecs, whether lists with many documents are bitmaps, and whether there are impacts and ranks. Every codec packs
/// the lists of one index.
fn indexes() -> Vec<(String, bool, bool)> {
    let bitpacked = [("bitpack", true, false), ("bitpack", true, true), ("bitpack", false, false)];
    let mixed = [
        ("documents=bitpack,weights=raw", false, true),
        ("documents=elias-fano,weights=pfor-block", false, true),
        ("documents=qmx,weights=raw", false, true),
        ("rice", false, false),
    ];
    let given = bitpacked.into_iter().chain(mixed).map(|(codec, dense, is_rich)| (codec.to_owned(), dense, is_rich));
    given.chain(CodecName::ALL.map(|codec| (codec.to_string(), false, true))).collect()
}

fn prepare() {
    WORKPLACE.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary folder").keep();
        let original = |(codec, dense, is_rich): (String, bool, bool)| {
            build_small_index(&folder, &codec, dense, is_rich);
            let read = |name: &str| std::fs::read(folder.join(name)).expect("a file of the index");
            let original = Original { manifest: read(MANIFEST), segment: read(SEGMENT) };
            std::fs::remove_dir_all(&folder).expect("the index of before");
            original
        };
        let originals = indexes().into_iter().map(original).collect();
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        Workplace { originals, folder }
    });
    write_seeds(seeds());
}

/// Each index with right and wrong checksums: each section patched, the header patched, the file truncated.
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = vec![vec![], vec![1]];
    for choice in 0..2 * indexes().len() as u8 {
        let patches = (0..=14u8).flat_map(|part| [part, 16, part, 1, 0xFF - part]);
        seeds.push([choice].into_iter().chain(patches).collect());
        seeds.push(vec![choice, 14, 32, 0, 1, 0]);
        seeds.push(vec![choice, 15, 0, 9]);
    }
    seeds
}

/// Reads an input from its front.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn number(&mut self) -> Option<usize> {
        Some(usize::from(self.byte()?) | usize::from(self.byte()?) << 8)
    }
}

/// Applies one patch: a section, the header (part 14), the length (15) or the manifest (others).
fn patch(input: &mut Input<'_>, manifest: &mut Vec<u8>, segment: &mut Vec<u8>, table: &Header) -> Option<()> {
    let (part, at) = (input.byte()?, input.number()?);
    if part == 15 {
        segment.truncate(segment.len() - at % segment.len());
        return Some(());
    }
    let count = usize::from(input.byte()? % 16);
    let target: &mut [u8] = match part {
        0..14 => {
            let entry = table.table.get(usize::from(part))?;
            let (start, length) = (entry.offset as usize, entry.length as usize);
            segment.get_mut(start..start + length)?
        }
        14 => segment.get_mut(..HEADER_BYTES)?,
        _ => manifest,
    };
    let length = target.len();
    for i in 0..count {
        let byte = input.byte()?;
        if length > 0 {
            target[(at + i) % length] = byte;
        }
    }
    Some(())
}

/// Corrects all checksums. A header that cannot be read stays as it is.
fn mend(manifest: &mut Vec<u8>, segment: &mut [u8]) {
    if segment.len() < HEADER_BYTES {
        return;
    }
    // A row of the table: tag, checksum, offset, length.
    for row in (128..HEADER_BYTES).step_by(32) {
        let number = |at: usize| {
            let bytes: [u8; 8] = segment[row + at..row + at + 8].try_into().expect("eight bytes");
            usize::try_from(u64::from_le_bytes(bytes)).unwrap_or(usize::MAX)
        };
        let (start, length) = (number(8), number(16));
        let end = start.saturating_add(length);
        if let Some(bytes) = segment.get(start..end) {
            let checksum = crc32fast::hash(bytes);
            segment[row + 4..row + 8].copy_from_slice(&checksum.to_le_bytes());
        }
    }
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&segment[..CHECKSUM.start]);
    hasher.update(&segment[CHECKSUM.end..HEADER_BYTES]);
    let checksum = hasher.finalize();
    segment[CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
    let body = manifest.iter().position(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    if let Ok(mut decoded) = decode_body(&manifest[body..]) {
        decoded.segments.iter_mut().for_each(|entry| entry.checksum = checksum);
        *manifest = decoded.encode();
    }
}

/// Reads the JSON of a manifest whatever its first line says.
fn decode_body(body: &[u8]) -> Result<Manifest, lanner_index::format::IndexError> {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&NEWEST.to_le_bytes());
    hasher.update(body);
    let line = format!("lanner-manifest {NEWEST} {:08x}\n", hasher.finalize());
    Manifest::decode(Path::new(MANIFEST), &[line.as_bytes(), body].concat())
}

/// Opens, verifies, reads and searches an index, with one score model.
fn exercise(folder: &Path, model: ScoreModel) {
    let Ok(index) = Index::open(folder) else {
        return;
    };
    let verified = index.verify();
    for document in (0..index.documents().min(32)).chain([639, u32::MAX]).map(DocId) {
        let _ = (index.id(document), index.stored(document), index.length(document), index.segment().rank(document.0));
    }
    let _ = (index.find("document-639"), index.ids((0..40).map(DocId)));
    let searcher = Searcher::new(Arc::new(index));
    for text in QUERIES {
        for mode in [Mode::And, Mode::Or, Mode::AndOr] {
            let query = Query::new(text).mode(mode).score(model);
            let search = |algorithm| searcher.search(&query.clone().algorithm(algorithm)).ok();
            let others = [Algorithm::ScoreAtATime, Algorithm::Maxscore, Algorithm::BlockMaxMaxscore].map(search);
            let [auto, exhaustive] = [Algorithm::Auto, Algorithm::Exhaustive].map(search);
            if let (Some(auto), Some(exhaustive), Ok(plan), Ok(_)) =
                (auto, exhaustive, searcher.plan(&query), &verified)
            {
                for other in others.into_iter().flatten().chain([auto]) {
                    let name = other.trace.steps.last().map_or("none", |step| step.name);
                    assert_eq!(other.hits, exhaustive.hits, "{text:?} by {model}, {name}: a wrong answer after verify");
                }
                // All algorithms start from the same seed, which must not exclude a hit.
                let found = plan.lists.iter().map(|list| list.postings as usize).max().unwrap_or(0).min(query.k);
                assert!(
                    mode == Mode::And || exhaustive.hits.len() >= found,
                    "{text:?} by {model}: hits are missing after verify"
                );
            }
            let _ = searcher.explain(&query, DocId(0));
        }
    }
}

fuzz_target!(init: prepare(), |data: &[u8]| {
    let workplace = WORKPLACE.get().expect("made before the first input");
    let mut input = Input(data);
    let choice = usize::from(input.byte().unwrap_or(0));
    let original = &workplace.originals[choice / 2 % workplace.originals.len()];
    let (mut manifest, mut segment) = (original.manifest.clone(), original.segment.clone());
    let path = workplace.folder.join(SEGMENT);
    let table = Header::decode(&path, &segment, segment.len() as u64).expect("the header of the original");
    while patch(&mut input, &mut manifest, &mut segment, &table).is_some() {}
    if choice % 2 == 1 {
        mend(&mut manifest, &mut segment);
    }
    std::fs::write(&path, &segment).expect("space for the segment");
    std::fs::write(workplace.folder.join(MANIFEST), &manifest).expect("space for the manifest");
    exercise(&workplace.folder, MODELS[choice / 6 % MODELS.len()]);
});
