//! Readers of document collections: files in, batches of raw records out, documents on demand.
//!
//! [`Corpus::next_batch`] is cheap and serial: it reads, decompresses and cuts at a record boundary.
//! [`Batch::documents`] parses, which is expensive and runs on any thread. Where the input is cut depends on its bytes
//! and the options, never on threads, memory or the speed of a pipe, so that the same input gives the same index.
//!
//! Other files of text (queries, judgements, runs, ranks) are read whole, as [`Text`].

mod batch;
mod bulk;
pub mod ciff;
mod csv;
mod cut;
mod decompress;
mod detect;
mod document;
mod ends;
mod entities;
mod error;
mod files;
mod format;
mod gzip;
mod json;
mod json_keys;
mod json_stream;
mod left_out;
mod lenient;
mod lines;
mod schema;
mod separators;
mod text;
mod trec;
mod tsv;
mod walk;

#[cfg(test)]
mod tests;

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use batch::{Batch, ParsedDocument, Problem};
pub use decompress::Text;
pub use document::Document;
pub use error::{CorpusError, Damage};
pub use format::{Format, UnknownFormat};
pub use left_out::{LeftOut, Reason};
pub use separators::is_separator;

use cut::{FileCutter, LIMITS, Limits, MemoryCutter, OpenFile};
use files::{Found, Input};
use schema::Schemas;

/// What to read and which fields of a record matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CorpusOptions {
    /// The format of the input; `None` finds the format of each file from its name and content.
    pub format: Option<Format>,
    /// The field that holds a document's id. `None` takes the first of `id`, `_id`, `docno` and `docid` that a record
    /// has and that is not empty; in [`Format::Beir`] `_id` comes first.
    pub id_field: Option<String>,
    /// The fields to index, in this order. `None` means `title` and `text`, where `contents`, or else `body`, stands
    /// for a text that is absent or empty.
    pub fields: Option<Vec<String>>,
    /// The fields to store with the document; `None` means those that `None` indexes.
    pub store: Option<Vec<String>>,
    /// The field that holds term weights, for input that is already tokenized (JSON formats only).
    pub vector_field: Option<String>,
    /// Whether links below a folder are followed. A file or folder is read once, however many links lead to it.
    pub follow_links: bool,
    /// Whether hidden files and folders below a folder are read.
    pub hidden: bool,
}

impl CorpusOptions {
    /// The names of the fields to index.
    pub(super) fn indexed(&self) -> Vec<String> {
        self.fields.clone().unwrap_or_else(usual_fields)
    }

    /// The names of the fields to store.
    pub(super) fn stored(&self) -> Vec<String> {
        self.store.clone().unwrap_or_else(usual_fields)
    }
}

fn usual_fields() -> Vec<String> {
    vec!["title".to_owned(), "text".to_owned()]
}

/// A collection of documents, read batch by batch.
///
/// A folder may mix formats. Files that are not documents are left out and counted ([`Corpus::left_out`]).
pub struct Corpus {
    supply: Supply,
    options: CorpusOptions,
    limits: Limits,
    bytes_total: Option<u64>,
    /// Bytes read from the input files, as they are on disk.
    bytes_read: Arc<AtomicU64>,
    failed: bool,
}

enum Supply {
    Files(Box<FileCutter>),
    Memory(MemoryCutter),
}

impl Corpus {
    /// Opens a file, a folder or, for `-`, standard input; gzip and zstd are recognized by content.
    pub fn open(input: &Path, options: CorpusOptions) -> Result<Corpus, CorpusError> {
        Corpus::open_with(input, options, LIMITS)
    }

    fn open_with(input: &Path, options: CorpusOptions, limits: Limits) -> Result<Corpus, CorpusError> {
        let bytes_read = Arc::new(AtomicU64::new(0));
        let found = files::find(input, &options, &bytes_read)?;
        Corpus::of(found, options, limits, bytes_read)
    }

    /// Reads one file from `input`, plain, gzip or zstd; `name` stands for it in messages and in the detection of its
    /// format.
    pub fn read(name: &Path, input: impl Read + Send + 'static, options: CorpusOptions) -> Result<Corpus, CorpusError> {
        let bytes_read = Arc::new(AtomicU64::new(0));
        let found = files::found_in(input, name, &options, &bytes_read)?;
        Corpus::of(found, options, LIMITS, bytes_read)
    }

    /// Cuts batches at this size, which must not matter for the documents.
    #[cfg(fuzzing)]
    pub fn with_batch_bytes(mut self, batch_bytes: usize) -> Corpus {
        self.limits.batch_bytes = batch_bytes;
        self
    }

    fn of(
        found: Found,
        options: CorpusOptions,
        limits: Limits,
        bytes_read: Arc<AtomicU64>,
    ) -> Result<Corpus, CorpusError> {
        let mut schemas = Schemas::new(options.clone());
        let (open, waiting) = match found.input {
            Input::Single { file, relative, format } => {
                (Some(OpenFile::single(*file, schemas.of(format)?, relative)?), Vec::new())
            }
            Input::Folder(files) => {
                // Options that the named format cannot have are refused before anything is read.
                options.format.map(|format| schemas.of(format)).transpose()?;
                (None, files)
            }
        };
        let cutter = FileCutter {
            open,
            waiting: waiting.into_iter(),
            schemas,
            left_out: found.left_out,
            bytes_read: Arc::clone(&bytes_read),
        };
        Ok(Corpus {
            supply: Supply::Files(Box::new(cutter)),
            options,
            limits,
            bytes_total: found.bytes_total,
            bytes_read,
            failed: false,
        })
    }

    /// A collection from memory, cut by the same rule as files are. `options.format` is ignored.
    pub fn from_documents<I>(documents: I, options: CorpusOptions) -> Result<Corpus, CorpusError>
    where
        I: IntoIterator<Item: Into<Document> + 'static>,
        I::IntoIter: Send + 'static,
    {
        let schema = Schemas::new(options.clone()).of(Format::Jsonl)?;
        let documents = Box::new(documents.into_iter().map(Into::into));
        let cutter = MemoryCutter { documents, schema, documents_cut: 0 };
        Ok(Corpus {
            supply: Supply::Memory(cutter),
            options,
            limits: LIMITS,
            bytes_total: None,
            bytes_read: Arc::default(),
            failed: false,
        })
    }

    /// Returns the next batch of records, or `None` at the end of the input. After an error the corpus is at its end.
    pub fn next_batch(&mut self) -> Result<Option<Batch>, CorpusError> {
        if self.failed {
            return Ok(None);
        }
        let content = match &mut self.supply {
            Supply::Memory(cutter) => Ok(cutter.cut(self.limits, &self.bytes_read)),
            Supply::Files(cutter) => cutter.cut(self.limits),
        };
        let content = content.inspect_err(|_| self.failed = true)?;
        Ok(Some(Batch { content }).filter(|batch| !batch.content.is_empty()))
    }

    /// Returns the size on disk of all input files; `None` if it is unknown (a pipe, documents in memory).
    pub fn bytes_total(&self) -> Option<u64> {
        self.bytes_total
    }

    /// Returns the names of the indexed fields, in order.
    pub fn fields(&self) -> Vec<String> {
        self.options.indexed()
    }

    /// Returns the names of the stored fields, in order.
    pub fn stored(&self) -> Vec<String> {
        self.options.stored()
    }

    /// Whether documents come as vectors of weights instead of text.
    pub fn has_vectors(&self) -> bool {
        self.options.vector_field.is_some()
    }

    /// Returns how much of [`Corpus::bytes_total`] has been read.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// Returns what is wrong with the first files and folders that cannot be read; they are left out. The list is
    /// complete after the last batch.
    pub fn unreadable(&self) -> &[String] {
        match &self.supply {
            Supply::Files(cutter) => cutter.left_out.unreadable(),
            Supply::Memory(_) => &[],
        }
    }

    /// Returns the files left out so far, by kind; the list is complete after the last batch.
    pub fn left_out(&self) -> Vec<LeftOut> {
        match &self.supply {
            Supply::Files(cutter) => cutter.left_out.rows(),
            Supply::Memory(_) => Vec::new(),
        }
    }
}
