//! The documents and query logs of suites.

use crate::error::{BenchError, Result};
use crate::machine::cores;
use crate::query_log;
use crate::scale::{self, Generator, Source, write_jsonl};
use crate::suite::{CollectionPart, LogPart, ScalePart};
use lanner_index::build::{BuildOptions, Quiet, build};
use lanner_index::corpus::{Corpus, CorpusOptions};
use lanner_index::text::Analyzer;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Size of the vocabulary of synthetic documents.
const SYNTHETIC_WORDS: f64 = 3e5;

/// Returns the collection of a suite as one file, which is generated in `temporary` if it is scaled or synthetic.
pub fn prepare(part: &CollectionPart, data: &Path, temporary: &Path) -> Result<PathBuf> {
    let path = unscaled(part, data, temporary)?;
    let Some(scale) = part.scale else {
        return Ok(path);
    };
    let scaled = temporary.join("scaled.jsonl.zst");
    write_jsonl(&generator(&path, scale)?, &scaled, cores())?;
    Ok(scaled)
}

/// Builds Lanner's index of the collection of a suite. Scaled documents are not written to disk.
pub fn build_index(part: &CollectionPart, data: &Path, folder: &Path, options: &BuildOptions) -> Result<u64> {
    let temporary = tempfile::tempdir().map_err(BenchError::io(folder))?;
    let path = unscaled(part, data, temporary.path())?;
    if let Some(scale) = part.scale {
        return scale::build_index(&generator(&path, scale)?, folder, options);
    }
    Ok(build(folder, open(&path)?, options, &Quiet)?.documents)
}

/// Opens documents whose fields are indexed, but not stored.
pub fn open(path: &Path) -> Result<Corpus> {
    Ok(Corpus::open(path, CorpusOptions { store: Some(Vec::new()), ..CorpusOptions::default() })?)
}

/// Returns a text that identifies the documents of a collection.
pub fn stamp(part: &CollectionPart, data: &Path) -> Result<String> {
    let source_bytes = match &part.file {
        Some(file) => data_file(data, file)?.metadata().map_or(0, |metadata| metadata.len()),
        None => 0,
    };
    Ok(format!("{part:?}\n{source_bytes} bytes"))
}

/// Reads all queries of a log; without a file they are synthetic.
pub fn read_log(log: &LogPart, part: &CollectionPart, data: &Path) -> Result<Vec<String>> {
    match &log.file {
        Some(file) => query_log::read(&data_file(data, file)?),
        None => Ok(synthetic_queries(part.synthetic.unwrap_or(0))),
    }
}

/// Returns the collection before scaling.
fn unscaled(part: &CollectionPart, data: &Path, temporary: &Path) -> Result<PathBuf> {
    let Some(file) = &part.file else {
        let path = temporary.join("synthetic.jsonl");
        write_synthetic(&path, part.synthetic.unwrap_or(0))?;
        return Ok(path);
    };
    data_file(data, file)
}

fn generator(path: &Path, scale: ScalePart) -> Result<Arc<Generator>> {
    let corpus = Corpus::open(path, CorpusOptions::default())?;
    let source = Source::read(corpus, &Analyzer::parse("simple")?)?;
    Ok(Arc::new(Generator::new(source, scale.documents, scale.seed)))
}

/// Returns the path of a file in the data folder.
pub fn data_file(data: &Path, file: &str) -> Result<PathBuf> {
    let path = data.join(file);
    if path.is_file() { Ok(path) } else { Err(BenchError::MissingData { file: file.to_owned() }) }
}

/// Writes synthetic documents as JSON lines.
pub fn write_synthetic(path: &Path, count: usize) -> Result<()> {
    let line = |(id, title, text)| format!("{}\n", serde_json::json!({ "id": id, "title": title, "text": text }));
    let lines: String = synthetic_documents(count).into_iter().map(line).collect();
    std::fs::write(path, lines).map_err(BenchError::io(path))
}

/// Generates documents (id, title, text) with a skewed word distribution; neighbours share topics.
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

/// Generates queries for [`synthetic_documents`]: a few words of one document each.
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
    fn a_missing_data_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = data_file(folder.path(), "wiki-passages.jsonl.zst").unwrap_err().to_string();
        assert!(error.contains("wiki-passages.jsonl.zst") && error.contains("LANNER_DATA"), "{error}");
    }

    #[test]
    fn synthetic_documents_are_the_same_every_time() {
        assert_eq!(synthetic_documents(50), synthetic_documents(50));
        assert_eq!(synthetic_queries(5).len(), 5);
    }
}
