//! Every byte of a small index flipped in turn, and every truncation: an error that names the place, never a panic.

mod support;

use lanner_index::build::BuildOptions;
use lanner_index::codec::{BLOCK, qmx};
use lanner_index::format::IndexError;
use lanner_index::format::manifest::Manifest;
use lanner_index::format::segment::{CHECKSUM, Header, Section};
use lanner_index::open::{Index, Stream};
use lanner_index::{DocId, TermId};
use std::fs;
use std::path::Path;
use support::{build_index, documents, options};

/// Reads everything through the same calls that queries use; errors are fine, panics are not.
fn use_all(index: &Index) {
    let (mut documents, mut weights) = ([0; BLOCK], [0; BLOCK]);
    for term in 0..index.segment().header().terms.min(300) {
        let Ok(list) = index.list(TermId(term)) else {
            continue;
        };
        for block in 0..list.blocks().min(50) {
            list.decode_documents(block, &mut documents);
            for stream in [Stream::Frequency, Stream::Impact] {
                list.decode_weights(stream, block, &mut weights);
            }
            list.saturation_bound(block);
            list.impact_bound(block);
            list.find_block(block, documents[0]);
        }
        for window in 0..list.windows().min(10) {
            list.first_block(window);
            list.window_saturation_bound(window);
            list.window_impact_bound(window);
        }
        if let Ok(Some(ordered)) = index.impact_ordered(TermId(term)) {
            for segment in ordered.segments() {
                qmx::decode(segment.stream, 0, &mut vec![0; segment.postings as usize]);
            }
        }
        list.largest(index.norms(), index.length_codes());
        list.largest_impacts();
    }
    for word in ["w0", "w5", "title", "nothing"] {
        let _ = index.lookup(word).map(|term| term.map(|term| index.list(term).map(|list| list.postings())));
    }
    for document in (0..index.documents().min(400)).step_by(13) {
        let _ = (index.id(DocId(document)), index.stored(DocId(document)), index.length(DocId(document)));
        index.segment().rank(document);
    }
    let _ = index.find("doc-7");
}

/// The error of opening or verifying what now lies in the folder, after everything was read through it.
fn error_of(folder: &Path) -> Option<IndexError> {
    match Index::open(folder) {
        Err(error) => Some(error),
        Ok(index) => {
            use_all(&index);
            index.verify().err()
        }
    }
}

fn names_file_and_section(error: &IndexError, file: &str) -> bool {
    match error {
        IndexError::Damaged { path, section, .. } => path.ends_with(file) && !section.is_empty(),
        _ => false,
    }
}

fn small_index(folder: &Path) {
    let ranks = folder.join("ranks.tsv");
    fs::write(&ranks, "doc-1\t0.5\ndoc-0\t2\n").unwrap();
    let options = BuildOptions { impacts: true, impact_ordered: true, ranks: Some(ranks), ..options() };
    build_index(&folder.join("index"), documents(170, 12), &options).unwrap();
}

#[test]
fn every_flipped_byte_is_found_and_named() {
    let folder = tempfile::tempdir().unwrap();
    small_index(folder.path());
    let index = folder.path().join("index");
    assert!(error_of(&index).is_none());
    for file in ["manifest-00000001", "segment-00000001"] {
        let whole = fs::read(index.join(file)).unwrap();
        // A bit of its own for each byte, so that all eight are tried.
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            fs::write(index.join(file), &bytes).unwrap();
            let error = error_of(&index);
            let named = error.as_ref().is_some_and(|error| names_file_and_section(error, file));
            assert!(named, "{file}, byte {at}: {error:?}");
        }
        fs::write(index.join(file), &whole).unwrap();
    }
    assert!(error_of(&index).is_none());
}

#[test]
fn every_truncation_is_found_and_named() {
    let folder = tempfile::tempdir().unwrap();
    small_index(folder.path());
    let index = folder.path().join("index");
    for file in ["manifest-00000001", "segment-00000001"] {
        let whole = fs::read(index.join(file)).unwrap();
        for length in 0..whole.len() {
            fs::write(index.join(file), &whole[..length]).unwrap();
            let error = error_of(&index);
            let named = error.as_ref().is_some_and(|error| names_file_and_section(error, file));
            assert!(named, "{file}, {length} bytes: {error:?}");
        }
        fs::write(index.join(file), &whole).unwrap();
    }
}

#[test]
fn a_segment_of_another_index_is_noticed() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    build_index(one.path(), documents(50, 20), &options()).unwrap();
    build_index(other.path(), documents(51, 20), &options()).unwrap();
    fs::copy(other.path().join("segment-00000001"), one.path().join("segment-00000001")).unwrap();
    assert!(names_file_and_section(&error_of(one.path()).unwrap(), "segment-00000001"));
}

/// A threshold starts at a k-th weight, so one that is too large would keep hits out. No checksum tells: all are right.
#[test]
fn a_kth_weight_that_is_not_the_kth_fails_verification() {
    let folder = tempfile::tempdir().unwrap();
    build_index(folder.path(), documents(300, 12), &options()).unwrap();
    let (path, manifest_path) = (folder.path().join("segment-00000001"), folder.path().join("manifest-00000001"));
    let mut bytes = fs::read(&path).unwrap();
    let mut header = Header::decode(&path, &bytes, bytes.len() as u64).unwrap();
    let entry = header.table.iter_mut().find(|entry| entry.tag == Section::LongLists as u32).unwrap();
    let (start, end) = (entry.offset as usize, (entry.offset + entry.length) as usize);
    // In a long list's header the largest saturation is followed by the tenth.
    assert_ne!(bytes[start + 8..start + 12], bytes[start + 12..start + 16], "the tenth is not the largest");
    bytes.copy_within(start + 8..start + 12, start + 12);
    entry.checksum = crc32fast::hash(&bytes[start..end]);
    let encoded = header.encode();
    bytes[..encoded.len()].copy_from_slice(&encoded);
    fs::write(&path, &bytes).unwrap();
    let mut manifest = Manifest::decode(&manifest_path, &fs::read(&manifest_path).unwrap()).unwrap();
    manifest.segments[0].checksum = u32::from_le_bytes(encoded[CHECKSUM].try_into().unwrap());
    fs::write(&manifest_path, manifest.encode()).unwrap();
    let error = Index::open(folder.path()).unwrap().verify().unwrap_err();
    assert!(matches!(error, IndexError::Damaged { section: "long-lists", .. }), "{error}");
}

#[test]
fn a_newer_format_is_refused_by_its_number() {
    let folder = tempfile::tempdir().unwrap();
    build_index(folder.path(), documents(5, 20), &options()).unwrap();
    let path = folder.path().join("manifest-00000001");
    let text = fs::read_to_string(&path).unwrap();
    let (_, body) = text.split_once('\n').unwrap();
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&9u32.to_le_bytes());
    hasher.update(body.as_bytes());
    fs::write(&path, format!("lanner-manifest 9 {:08x}\n{body}", hasher.finalize())).unwrap();
    let error = Index::open(folder.path()).err().unwrap();
    assert!(error.to_string().contains("index format 9, this version reads 0..=0; rebuild it"), "{error}");
}

#[test]
fn a_folder_without_an_index_says_how_to_make_one() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path().to_owned(), folder.path().join("nowhere")] {
        let error = Index::open(&path).err().unwrap();
        assert!(error.to_string().contains("make one with 'lanner index"), "{error}");
    }
}
