//! Shared by the fuzz targets: seeds written by code, and a small index to damage or to search.

use lanner_index::build::{BuildOptions, Quiet, build};
use lanner_index::codec::Codecs;
use lanner_index::corpus::{Corpus, CorpusOptions};
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
