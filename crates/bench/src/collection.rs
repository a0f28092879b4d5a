//! The documents of a suite, ready as one file.

use crate::error::BenchError;
use crate::scale::{self, Generator, Source, write_jsonl};
use crate::suite::{CollectionPart, ScalePart};
use lanner_index::build::{BuildOptions, Quiet, build};
use lanner_index::corpus::{Corpus, CorpusOptions};
use lanner_index::text::Analyzer;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Words that made-up documents are drawn from.
const SYNTHETIC_WORDS: f64 = 3e5;

/// The collection of a suite as one file, made in `temporary` unless it is there already.
pub fn prepare(part: &CollectionPart, data: &Path, temporary: &Path) -> Result<PathBuf, BenchError> {
    let path = unscaled(part, data, temporary)?;
    let Some(scale) = part.scale else {
        return Ok(path);
    };
    let scaled = temporary.join("scaled.jsonl.zst");
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    write_jsonl(&generator(&path, scale)?, &scaled, threads)?;
    Ok(scaled)
}

/// Builds our index of the collection of a suite; scaled documents are not written for it.
pub fn build_index(
    part: &CollectionPart,
    data: &Path,
    folder: &Path,
    options: &BuildOptions,
) -> Result<(), BenchError> {
    let temporary = tempfile::tempdir().map_err(BenchError::io(folder))?;
    let path = unscaled(part, data, temporary.path())?;
    if let Some(scale) = part.scale {
        return scale::build_index(&generator(&path, scale)?, folder, options);
    }
    let nothing_stored = CorpusOptions { store: Vec::new(), ..CorpusOptions::default() };
    build(folder, Corpus::open(&path, nothing_stored)?, options, &Quiet)?;
    Ok(())
}

/// The collection before it is scaled.
fn unscaled(part: &CollectionPart, data: &Path, temporary: &Path) -> Result<PathBuf, BenchError> {
    let Some(file) = &part.file else {
        let path = temporary.join("synthetic.jsonl");
        write_synthetic(&path, part.synthetic.unwrap_or(0))?;
        return Ok(path);
    };
    data_file(data, file)
}

fn generator(path: &Path, scale: ScalePart) -> Result<Arc<Generator>, BenchError> {
    let corpus = Corpus::open(path, CorpusOptions::default())?;
    let source = Source::read(corpus, &Analyzer::parse("simple")?)?;
    Ok(Arc::new(Generator::new(source, scale.documents, scale.seed)))
}

/// A file of the data folder.
pub fn data_file(data: &Path, file: &str) -> Result<PathBuf, BenchError> {
    let path = data.join(file);
    if path.is_file() { Ok(path) } else { Err(BenchError::MissingData { file: file.to_owned() }) }
}

fn write_synthetic(path: &Path, count: usize) -> Result<(), BenchError> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path).map_err(BenchError::io(path))?);
    for (id, title, text) in synthetic_documents(count) {
        let line = serde_json::json!({ "id": id, "title": title, "text": text });
        writeln!(file, "{line}").map_err(BenchError::io(path))?;
    }
    file.flush().map_err(BenchError::io(path))
}

/// Made-up documents whose words, like real ones, are few and frequent or many and rare; neighbours share topics.
pub fn synthetic_documents(count: usize) -> Vec<(String, String, String)> {
    let mut state = 1u64;
    let mut uniform = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let word = |draw: f64| format!("w{}", SYNTHETIC_WORDS.powf(draw) as u64);
    (0..count)
        .map(|number| {
            let topic = |n: usize| format!("topic{}", number / 8 * 3 + n);
            let length = 30 + (uniform() * 60.0) as usize;
            let words: Vec<String> = (0..length)
                .map(|at| if at % 10 == 9 { topic((uniform() * 3.0) as usize) } else { word(uniform()) })
                .collect();
            (format!("d{number}"), word(uniform()), words.join(" "))
        })
        .collect()
}

/// Made-up queries for made-up documents: a few words of one document each.
pub fn synthetic_queries(count: usize) -> Vec<String> {
    let of_document = |(number, (_, title, text)): (usize, (String, String, String))| {
        let words: Vec<&str> = text.split(' ').skip(number % 7).step_by(9).take(1 + number % 4).collect();
        format!("{title} {}", words.join(" "))
    };
    synthetic_documents(count).into_iter().enumerate().map(of_document).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_in_the_data_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = data_file(folder.path(), "wiki-passages.jsonl.zst").unwrap_err().to_string();
        assert!(error.contains("wiki-passages.jsonl.zst") && error.contains("LANNER_DATA"), "{error}");
    }

    #[test]
    fn made_up_documents_are_the_same_every_time() {
        assert_eq!(synthetic_documents(50), synthetic_documents(50));
        assert_eq!(synthetic_queries(5).len(), 5);
    }
}
