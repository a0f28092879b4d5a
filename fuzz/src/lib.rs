//! Shared by the fuzz targets: seeds written by code, collections of any bytes, and a small index to damage or to search.

use lanner_index::build::{BuildOptions, Quiet, build};
use lanner_index::codec::Codecs;
use lanner_index::corpus::{Corpus, CorpusError, CorpusOptions, Format};
use std::io::Cursor;
use std::path::Path;

/// Writes seeds into the folder that `LANNER_SEEDS` names, if it is set; the fuzzer reads them from there.
pub fn write_seeds(seeds: impl IntoIterator<Item = Vec<u8>>) {
    let Some(folder) = std::env::var_os("LANNER_SEEDS") else {
        return;
    };
    std::fs::create_dir_all(&folder).expect("the folder for seeds");
    for (number, seed) in seeds.into_iter().enumerate() {
        std::fs::write(Path::new(&folder).join(format!("seed-{number}")), seed).expect("a seed");
    }
}

/// Seeds for [`read_collection`]: files, each after a byte with the size of a batch.
pub fn write_files(files: &[&[u8]]) {
    write_seeds(files.iter().flat_map(|file| [1, 20].map(|batch_bytes| [&[batch_bytes], *file].concat())));
}

/// Reads bytes as a collection, whole and in batches as small as the first byte says: the documents and problems must be
/// the same.
pub fn read_collection(format: Option<Format>, data: &[u8]) {
    let Some((&batch_bytes, file)) = data.split_first() else { return };
    match (read(format, file, 1 << 20), read(format, file, usize::from(batch_bytes).max(1))) {
        (Ok(whole), Ok(cut)) => assert_eq!(whole, cut),
        (whole, cut) => assert!(whole.is_err() && cut.is_err()),
    }
}

/// The documents and problems of a file, as text.
fn read(format: Option<Format>, file: &[u8], batch_bytes: usize) -> Result<Vec<String>, CorpusError> {
    let options = CorpusOptions { format, ..CorpusOptions::default() };
    let corpus = Corpus::read(Path::new("file"), Cursor::new(file.to_vec()), options)?;
    let mut corpus = in_batches(corpus, batch_bytes);
    let mut seen = Vec::new();
    while let Some(batch) = corpus.next_batch()? {
        batch.documents(&mut |record| {
            seen.push(match record {
                // The fields of a document without text are named for the first of a batch.
                Ok(document) => format!("{:?} {:?} {:?}", document.id, document.indexed, document.stored),
                Err(problem) => problem.to_string(),
            });
        });
    }
    Ok(seen)
}

#[cfg(fuzzing)]
fn in_batches(corpus: Corpus, batch_bytes: usize) -> Corpus {
    corpus.with_batch_bytes(batch_bytes)
}

/// Without the fuzzer, the size of batches is fixed.
#[cfg(not(fuzzing))]
fn in_batches(corpus: Corpus, _batch_bytes: usize) -> Corpus {
    corpus
}

/// Queries over short, long and missing lists, with all of the syntax.
pub const QUERIES: [&str; 5] =
    ["common", "common even rare", "rare^2.5 word7 word8 nowhere", "even third fifth common^0.01", "word1 word2 word3"];

/// Builds an index of 640 documents with lists of a few postings, of less than a block and of several blocks with
/// windows. `dense` stores the longest as bitmaps; `is_rich` adds impacts, impact-ordered lists and ranks.
pub fn build_small_index(folder: &Path, codec: &str, dense: bool, is_rich: bool) {
    let documents = (0..640u32).map(|number| {
        let mut text = format!("common word{} word{}", number % 97, number % 41);
        for (divisor, word) in [(2, "even"), (3, "third third third"), (5, "fifth"), (300, "rare")] {
            if number % divisor == 0 {
                text.push(' ');
                text.push_str(word);
            }
        }
        if number % 100 == 1 {
            // Frequencies too large for the bits of a dense list.
            text.push_str(&" common".repeat(20));
        }
        (format!("document-{number}"), format!("title {}", number % 10), text)
    });
    let corpus = Corpus::from_documents(documents.collect::<Vec<_>>(), CorpusOptions::default()).expect("two fields");
    let ranks = tempfile::NamedTempFile::new().expect("a temporary file");
    let lines: String = (0..640).map(|number| format!("document-{number}\t{}\n", number % 7)).collect();
    std::fs::write(ranks.path(), lines).expect("the ranks");
    let options = BuildOptions {
        threads: 1,
        memory_bytes: 64 << 20,
        codecs: codec.parse::<Codecs>().expect("a known codec"),
        dense,
        impacts: is_rich,
        impact_ordered: is_rich,
        ranks: is_rich.then(|| ranks.path().to_owned()),
        ..BuildOptions::default()
    };
    build(folder, corpus, &options, &Quiet).expect("a build of sound documents");
}
