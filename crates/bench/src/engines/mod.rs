//! The engines that run in this process: how they build an index and answer a query.

mod lanner_engine;
mod tantivy_engine;

use crate::error::{BenchError, Result};
use crate::machine::cores;
use crate::suite::{BuildEngine, QueryEngine};
use lanner::{Mode, Searcher};
use lanner_index::open::Ids;
use lanner_index::text::Analyzer;
use lanner_index::weight::Bm25;
use std::path::Path;

pub use lanner_engine::{LannerVariant, build as build_lanner};

/// An open index that answers queries.
pub trait Engine: Sync {
    /// Returns the external ids of the best k documents, best first.
    fn answer(&self, text: &str, mode: Mode, k: usize) -> Result<Ids>;

    /// Finds the best k documents without looking up their external ids; returns how many there are.
    fn documents(&self, text: &str, mode: Mode, k: usize) -> Result<usize>;
}

/// What to build, the same for every engine.
#[derive(Clone, Debug)]
pub struct BuildTask<'a> {
    pub input: &'a Path,
    pub folder: &'a Path,
    pub analyzer: Analyzer,
    /// The parameters of BM25, for engines that let the user choose them.
    pub bm25: Bm25,
    pub threads: usize,
    pub memory_bytes: usize,
}

impl<'a> BuildTask<'a> {
    /// A build on all cores with 1 GiB of memory.
    pub fn new(input: &'a Path, folder: &'a Path, analyzer: Analyzer, bm25: Bm25) -> BuildTask<'a> {
        BuildTask { input, folder, analyzer, bm25, threads: cores(), memory_bytes: 1 << 30 }
    }
}

/// Builds an index and returns its number of documents; `variant` applies to Lanner.
pub fn build(engine: BuildEngine, task: &BuildTask<'_>, variant: &LannerVariant) -> Result<u64> {
    match engine {
        BuildEngine::Lanner => lanner_engine::build(task, variant),
        BuildEngine::TantivySingle => tantivy_engine::build_single(task),
        BuildEngine::TantivyWriter => tantivy_engine::build_with_writer(task),
    }
}

/// Opens an index.
pub fn open(engine: QueryEngine, folder: &Path, analyzer: &Analyzer) -> Result<Box<dyn Engine>> {
    Ok(match engine {
        QueryEngine::Lanner => Box::new(Searcher::open(folder)?),
        QueryEngine::Tantivy => Box::new(tantivy_engine::TantivyEngine::open(folder, analyzer)?),
        QueryEngine::TantivyIdsInMemory => {
            Box::new(tantivy_engine::TantivyEngine::open(folder, analyzer)?.with_ids_in_memory()?)
        }
    })
}

/// Returns the engine that reads the index of a builder.
pub fn reader_of(engine: BuildEngine) -> QueryEngine {
    match engine {
        BuildEngine::Lanner => QueryEngine::Lanner,
        BuildEngine::TantivySingle | BuildEngine::TantivyWriter => QueryEngine::Tantivy,
    }
}

/// Returns the sizes of the parts of an index: sections of Lanner's, files of Tantivy's by kind; in sum, the folder.
pub fn parts(engine: QueryEngine, folder: &Path) -> Result<Vec<(String, u64)>> {
    match engine {
        QueryEngine::Lanner => lanner_engine::parts(folder),
        QueryEngine::Tantivy | QueryEngine::TantivyIdsInMemory => tantivy_engine::parts(folder),
    }
}

/// Returns the files of a folder with their sizes.
fn files(folder: &Path) -> Result<Vec<(String, u64)>> {
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
