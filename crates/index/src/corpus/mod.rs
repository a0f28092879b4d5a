//! Readers of document collections: files in, numbered batches of raw records out, documents on demand.
//!
//! Pulling a batch is cheap and serial (read, decompress, cut at a record border), parsing it is dear and
//! can run anywhere: workers share a `Mutex<Corpus>`, hold it for [`Corpus::next_batch`] alone and call
//! [`Batch::documents`] after they let it go. How the input is cut depends on its bytes and the options only,
//! never on threads, memory or the speed of a pipe, so that an index built from it is the same every time.

mod batch;
pub mod ciff;
mod cut;
mod error;
mod files;
mod format;
mod json;
mod lines;
mod schema;
mod stream;
mod text;
mod trec;
mod tsv;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use batch::{Batch, Document, Problem};
pub use error::{CorpusError, Damage};
pub use format::{Format, UnknownFormat};

use cut::{FileCutter, LIMITS, Limits, OpenFile, batch_from_memory};
use files::{FoundFile, Input};
use schema::Schema;

/// What to read and which fields of a record matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorpusOptions {
    /// The format of the input; `None` finds it from names and content.
    pub format: Option<Format>,
    /// The field that holds a document's id. In [`Format::Beir`] the default `id` stands for `_id`.
    pub id_field: String,
    /// The fields to index, in this order.
    pub fields: Vec<String>,
    /// The fields to keep with the document.
    pub store: Vec<String>,
    /// The field that holds term weights, for input that is already tokenized (JSON formats only).
    pub vector_field: Option<String>,
}

impl Default for CorpusOptions {
    fn default() -> Self {
        let title_and_text = vec!["title".to_owned(), "text".to_owned()];
        CorpusOptions {
            format: None,
            id_field: "id".to_owned(),
            fields: title_and_text.clone(),
            store: title_and_text,
            vector_field: None,
        }
    }
}

/// A collection of documents that hands out batches of raw records.
pub struct Corpus {
    supply: Supply,
    schema: Arc<Schema>,
    limits: Limits,
    next_sequence: u64,
    bytes_total: Option<u64>,
    /// Bytes taken from the input files, as they lie on disk.
    bytes_read: Arc<AtomicU64>,
    failed: bool,
}

enum Supply {
    Files { open: Option<OpenFile>, waiting: std::vec::IntoIter<FoundFile> },
    Memory { documents: Box<dyn Iterator<Item = (String, String, String)> + Send>, handed_out: u64 },
}

impl Corpus {
    /// Opens a file, a folder or, for `-`, standard input; gzip and zstd are recognized by content.
    pub fn open(input: &Path, options: CorpusOptions) -> Result<Corpus, CorpusError> {
        Corpus::open_with(input, options, LIMITS)
    }

    fn open_with(input: &Path, options: CorpusOptions, limits: Limits) -> Result<Corpus, CorpusError> {
        let bytes_read = Arc::new(AtomicU64::new(0));
        let found = files::find(input, &options, &bytes_read)?;
        let schema = Schema::new(found.format, &options)?;
        let (open, waiting) = match found.input {
            Input::Stream { stream, relative } => (Some(OpenFile::new(*stream, relative)), Vec::new()),
            Input::Files(files) => (None, files),
        };
        Ok(Corpus {
            supply: Supply::Files { open, waiting: waiting.into_iter() },
            schema: Arc::new(schema),
            limits,
            next_sequence: 0,
            bytes_total: found.bytes_total,
            bytes_read,
            failed: false,
        })
    }

    /// A collection of (id, title, text) from memory, cut by the same rule as files are.
    ///
    /// `options.format` is ignored; the fields are `title` and `text`.
    pub fn from_documents<I>(documents: I, options: CorpusOptions) -> Result<Corpus, CorpusError>
    where
        I: IntoIterator<Item = (String, String, String)>,
        I::IntoIter: Send + 'static,
    {
        Ok(Corpus {
            supply: Supply::Memory { documents: Box::new(documents.into_iter()), handed_out: 0 },
            schema: Arc::new(Schema::new(Format::Text, &options)?),
            limits: LIMITS,
            next_sequence: 0,
            bytes_total: None,
            bytes_read: Arc::new(AtomicU64::new(0)),
            failed: false,
        })
    }

    /// The next batch of records, or `None` at the end of the input. After an error the corpus is at its end.
    pub fn next_batch(&mut self) -> Result<Option<Batch>, CorpusError> {
        if self.failed {
            return Ok(None);
        }
        let content = match &mut self.supply {
            Supply::Memory { documents, handed_out } => {
                Ok(batch_from_memory(documents, handed_out, self.limits, &self.bytes_read))
            }
            Supply::Files { open, waiting } => FileCutter {
                open,
                waiting,
                format: self.schema.format,
                limits: self.limits,
                bytes_read: &self.bytes_read,
            }
            .cut(),
        };
        let content = content.inspect_err(|_| self.failed = true)?;
        if content.is_empty() {
            return Ok(None);
        }
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        Ok(Some(Batch { sequence, content, schema: Arc::clone(&self.schema) }))
    }

    /// The format that was given or found.
    pub fn format(&self) -> Format {
        self.schema.format
    }

    /// The size on disk of all input files; `None` where it cannot be known (a pipe, documents in memory).
    pub fn bytes_total(&self) -> Option<u64> {
        self.bytes_total
    }

    /// Names of the fields that are indexed, in order.
    pub fn fields(&self) -> Vec<String> {
        self.schema.indexed.iter().map(|&slot| self.schema.names[slot].clone()).collect()
    }

    /// Names of the fields that are stored, in order.
    pub fn stored(&self) -> Vec<String> {
        self.schema.stored.iter().map(|&slot| self.schema.names[slot].clone()).collect()
    }

    /// Whether documents come as vectors of weights instead of text.
    pub fn has_vectors(&self) -> bool {
        self.schema.vector_field.is_some()
    }

    /// How much of [`Corpus::bytes_total`] has been read.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }
}
