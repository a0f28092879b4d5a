//! Small deterministic collections.

use lanner_index::build::{BuildError, BuildOptions, BuildReport, Quiet, build};
use lanner_index::corpus::{Corpus, CorpusOptions};
use lanner_index::text::Analyzer;
use std::path::Path;

/// A document: id, title, text.
pub type Row = (String, String, String);

/// `count` documents over `words` words, `w0`, `w1` and so on; the lower its number, the more frequent a word is.
pub fn documents(count: u32, words: u32) -> Vec<Row> {
    let mut state = 0x2545_F491_4F6C_DD1Du64;
    let mut draw = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let document = |number| {
        let length = draw(60) + 1;
        let word = |_| {
            let rarest = draw(u64::from(words)) + 1;
            format!("w{}", draw(rarest))
        };
        let text: Vec<String> = (0..length).map(word).collect();
        (format!("doc-{number}"), format!("title {number}"), text.join(" "))
    };
    (0..count).map(document).collect()
}

/// Default options of the tests.
pub fn options() -> BuildOptions {
    BuildOptions {
        analyzer: Analyzer::parse("whitespace").unwrap(),
        threads: 1,
        memory_bytes: 64 << 20,
        ..Default::default()
    }
}

/// Builds an index of the documents.
pub fn build_index(folder: &Path, documents: Vec<Row>, options: &BuildOptions) -> Result<BuildReport, BuildError> {
    let corpus = Corpus::from_documents(documents, CorpusOptions::default()).unwrap();
    build(folder, corpus, options, &Quiet)
}
