//! Building an index: part of the public interface.

use lanner_index::build::{BuildError, BuildOptions, BuildReport, Quiet, build};
use lanner_index::corpus::{Corpus, CorpusOptions, Document};
use std::path::{Path, PathBuf};

/// Builds an index in a folder. An index that is there already stays until the new one is complete, and is then
/// replaced.
///
/// ```
/// use lanner::{BuildOptions, Document, IndexBuilder};
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
/// let documents = (0..1000).map(|n| Document::new(n.to_string()).field("text", format!("document number {n}")));
/// let options = BuildOptions { impacts: true, ..BuildOptions::default() };
/// let report = IndexBuilder::new(folder).options(options).documents(documents)?;
/// assert_eq!(report.documents, 1000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct IndexBuilder {
    folder: PathBuf,
    options: BuildOptions,
    input: CorpusOptions,
}

impl IndexBuilder {
    /// Builds in this folder, which is made if it does not exist, with the default options.
    pub fn new(folder: impl AsRef<Path>) -> IndexBuilder {
        let folder = folder.as_ref().to_path_buf();
        IndexBuilder { folder, options: BuildOptions::default(), input: CorpusOptions::default() }
    }

    /// Sets how the index is built.
    pub fn options(self, options: BuildOptions) -> IndexBuilder {
        IndexBuilder { options, ..self }
    }

    /// Sets which fields of a document are its id, are indexed and are stored; the default indexes and stores `title`
    /// and `text`, or `contents` or `body` in place of an absent text.
    pub fn input(self, input: CorpusOptions) -> IndexBuilder {
        IndexBuilder { input, ..self }
    }

    /// Indexes documents.
    pub fn documents<I>(self, documents: I) -> Result<BuildReport, BuildError>
    where
        I: IntoIterator<Item = Document>,
        I::IntoIter: Send + 'static,
    {
        let corpus = Corpus::from_documents(documents, self.input)?;
        build(&self.folder, corpus, &self.options, &Quiet)
    }

    /// Indexes a file or a folder of JSON, TSV, CSV, TREC, BEIR, bulk files of Elasticsearch or plain text, compressed or
    /// not.
    pub fn files(self, path: impl AsRef<Path>) -> Result<BuildReport, BuildError> {
        let corpus = Corpus::open(path.as_ref(), self.input)?;
        build(&self.folder, corpus, &self.options, &Quiet)
    }
}
