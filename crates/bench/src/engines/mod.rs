//! The engines under measurement: how each builds an index and answers a query, on the same terms.

mod lanner_engine;
mod tantivy_engine;

use crate::error::BenchError;
use crate::suite::{BuildEngine, QueryEngine};
use lanner::Mode;
use lanner_index::corpus::{Corpus, CorpusOptions};
use lanner_index::open::Ids;
use lanner_index::text::Analyzer;
use lanner_index::weight::Bm25;
use std::path::Path;

pub use lanner_engine::{LannerEngine, LannerVariant, build as build_lanner};
pub use tantivy_engine::TantivyEngine;

/// An opened index that answers queries.
pub trait Engine: Sync {
    /// The external ids of the best k documents, best first.
    fn answer(&self, text: &str, mode: Mode, k: usize) -> Result<Ids, BenchError>;
}

/// What to build, the same for every engine.
#[derive(Clone, Debug)]
pub struct BuildTask<'a> {
    /// The documents.
    pub input: &'a Path,
    /// Where the index goes.
    pub folder: &'a Path,
    /// What turns text into terms.
    pub analyzer: Analyzer,
    /// How documents are scored, where the engine lets one choose.
    pub bm25: Bm25,
    /// Threads.
    pub threads: usize,
    /// Memory that the build may use.
    pub memory_bytes: usize,
}

impl BuildTask<'_> {
    /// The reader that every engine uses: title and text are indexed, nothing is stored.
    pub fn corpus(&self) -> Result<Corpus, BenchError> {
        Ok(Corpus::open(self.input, CorpusOptions { store: Vec::new(), ..CorpusOptions::default() })?)
    }
}

/// Builds an index, of ours the variant that is wanted, and returns how many documents it has.
pub fn build(engine: BuildEngine, task: &BuildTask<'_>, variant: &LannerVariant) -> Result<u64, BenchError> {
    match engine {
        BuildEngine::Lanner => lanner_engine::build(task, variant),
        BuildEngine::TantivySingle => tantivy_engine::build_single(task),
        BuildEngine::TantivyWriter => tantivy_engine::build_with_writer(task),
    }
}

/// Opens an index.
pub fn open(engine: QueryEngine, folder: &Path, analyzer: &Analyzer) -> Result<Box<dyn Engine>, BenchError> {
    Ok(match engine {
        QueryEngine::Lanner => Box::new(LannerEngine::open(folder)?),
        QueryEngine::Tantivy => Box::new(TantivyEngine::open(folder, analyzer)?),
        QueryEngine::TantivyIdsInMemory => Box::new(TantivyEngine::open(folder, analyzer)?.with_ids_in_memory()?),
    })
}

/// The engine that reads what a builder wrote.
pub fn reader_of(engine: BuildEngine) -> QueryEngine {
    match engine {
        BuildEngine::Lanner => QueryEngine::Lanner,
        BuildEngine::TantivySingle | BuildEngine::TantivyWriter => QueryEngine::Tantivy,
    }
}

/// The bytes of every part of an index: sections of ours, files of Tantivy's by kind; together the whole folder.
pub fn parts(engine: QueryEngine, folder: &Path) -> Result<Vec<(String, u64)>, BenchError> {
    match engine {
        QueryEngine::Lanner => lanner_engine::parts(folder),
        QueryEngine::Tantivy | QueryEngine::TantivyIdsInMemory => tantivy_engine::parts(folder),
    }
}

/// Every file of a folder with its size.
fn files(folder: &Path) -> Result<Vec<(String, u64)>, BenchError> {
    let entries = std::fs::read_dir(folder).map_err(BenchError::io(folder))?;
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(BenchError::io(folder))?;
        let metadata = entry.metadata().map_err(BenchError::io(folder))?;
        if metadata.is_file() {
            files.push((entry.file_name().to_string_lossy().into_owned(), metadata.len()));
        }
    }
    files.sort();
    Ok(files)
}
