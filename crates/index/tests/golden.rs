//! Golden indexes: those of earlier versions must open, and the same input must still give the same bytes.
//!
//! `UPDATE=1` rewrites the files, after a deliberate change of the format (see docs/format.md).

mod support;

use lanner_index::DocId;
use lanner_index::build::BuildOptions;
use lanner_index::codec::{BLOCK, CodecName, Codecs};
use lanner_index::format::segment::Section;
use lanner_index::open::{Column, Index, Verify};
use lanner_index::text::{AnalyzerChanges, Stop, StopWords};
use std::fs;
use std::path::{Path, PathBuf};
use support::{build_index, documents, options};

const FILES: [&str; 2] = ["manifest-00000001", "segment-00000001"];

/// The golden indexes: with dense lists (the default), with impact-ordered lists too, with stop words of their own, and one
/// per codec without dense lists.
fn indexes() -> Vec<(String, BuildOptions)> {
    let dense = BuildOptions { impacts: true, ..options() };
    let impact_ordered = BuildOptions { impact_ordered: true, ..dense.clone() };
    let by_codec = CodecName::ALL.into_iter().filter(|codec| !codec.is_for_tests()).map(|codec| {
        let codecs = Codecs { documents: codec, weights: codec };
        (codec.to_string(), BuildOptions { dense: false, codecs, ..dense.clone() })
    });
    let own = Stop::Own(StopWords::parse("absent words").unwrap());
    let changes = AnalyzerChanges { stop_words: Some(own), fold: true, ..AnalyzerChanges::default() };
    let stop_words = BuildOptions { analyzer: dense.analyzer.with(&changes).unwrap(), ..dense.clone() };
    [
        ("dense".to_owned(), dense.clone()),
        ("impact-ordered".to_owned(), impact_ordered),
        ("stop-words".to_owned(), stop_words),
    ]
    .into_iter()
    .chain(by_codec)
    .collect()
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1").join(name)
}

/// An index with short and long lists, impacts, ranks and stored fields; the last block of a list is not full.
fn build_golden(folder: &Path, options: &BuildOptions) {
    let ranks = folder.join("ranks.tsv");
    fs::write(&ranks, "doc-3\t1\ndoc-5\t0.25\n").unwrap();
    let options = BuildOptions { ranks: Some(ranks), ..options.clone() };
    build_index(&folder.join("index"), documents(150, 9), &options).unwrap();
}

#[test]
fn a_build_gives_the_golden_bytes() {
    for (name, options) in indexes() {
        let folder = tempfile::tempdir().unwrap();
        build_golden(folder.path(), &options);
        for file in FILES {
            let built = fs::read(folder.path().join("index").join(file)).unwrap();
            if std::env::var_os("UPDATE").is_some() {
                fs::create_dir_all(golden(&name)).unwrap();
                // Replace the file by a rename: the other test may have mapped it.
                let new = golden(&name).join(format!("{file}.new"));
                fs::write(&new, &built).unwrap();
                fs::rename(new, golden(&name).join(file)).unwrap();
            }
            let kept = fs::read(golden(&name).join(file)).unwrap();
            let differs = kept.iter().zip(&built).position(|(kept, built)| kept != built);
            assert_eq!((kept.len(), differs), (built.len(), None), "{name}/{file}: first difference");
        }
    }
}

#[test]
fn the_golden_indexes_open_and_hold_what_was_put_in() {
    for (name, options) in indexes() {
        let index = Index::open(golden(&name)).unwrap();
        let list = index.list(index.lookup("w0").unwrap().unwrap()).unwrap();
        assert_eq!(list.dense().is_some(), options.dense, "{name}");
        let codecs = index.segment().list_context().codecs;
        assert_eq!([codecs.documents, codecs.weights], [options.codecs.documents, options.codecs.weights], "{name}");
        assert_eq!(index.analyzer().chain(), options.analyzer.chain());
        assert_eq!(index.analyzer().stop_words(), options.analyzer.stop_words());
        holds_what_was_put_in(&index);
    }
}

/// Before each chunk of the file had a checksum, format 1 had no section with these.
#[test]
fn an_index_without_checksums_of_chunks_opens_and_holds_what_was_put_in() {
    for verify in [Verify::Lazy, Verify::Full] {
        let index = Index::open_with(golden("without-checksums"), verify).unwrap();
        assert_eq!(index.segment().section(Section::Checksums), [0; 0]);
        holds_what_was_put_in(&index);
    }
}

fn holds_what_was_put_in(index: &Index) {
    index.verify().unwrap();
    let rows = documents(150, 9);
    let words = |row: &(String, String, String)| format!("{} {}", row.1, row.2);
    for word in ["w0", "w8", "title", "149"] {
        let frequency = |row| words(row).split(' ').filter(|found| *found == word).count() as u32;
        let frequencies = rows.iter().map(frequency).enumerate().filter(|(_, frequency)| *frequency > 0);
        let expected: Vec<(u32, u32)> = frequencies.map(|(document, count)| (document as u32, count)).collect();
        let list = index.list(index.lookup(word).unwrap().unwrap()).unwrap();
        let (mut numbers, mut counts, mut found) = ([0; BLOCK], [0; BLOCK], Vec::new());
        for block in 0..list.blocks() {
            let count = list.decode_documents(block, &mut numbers);
            list.decode_values(Column::Frequency, block, &mut counts);
            found.extend(numbers[..count].iter().copied().zip(counts));
        }
        assert_eq!(found, expected, "{word}");
    }
    for (number, row) in rows.iter().enumerate() {
        let document = DocId(number as u32);
        assert_eq!(index.id(document).unwrap(), row.0);
        assert_eq!(index.length(document) as usize, words(row).split(' ').count());
        assert_eq!(index.stored(document).unwrap(), [("title", row.1.clone()), ("text", row.2.clone())]);
    }
    assert_eq!([3, 4, 5].map(|document| index.segment().rank(document)), [Some(1.0), Some(0.0), Some(0.25)]);
}
