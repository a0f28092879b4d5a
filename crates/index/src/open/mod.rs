//! An index opened for reading: memory-mapped, checked as far as that is cheap, decoded on demand.

mod checks;
mod dense;
mod documents;
mod export;
mod impact_ordered;
mod layout;
mod list;
mod map;
mod segment;
mod summary;
mod terms;
mod verify;

pub use checks::Verify;
pub use dense::Dense;
pub use documents::{IDS_IN_GROUP, Ids};
pub use export::{ExportError, export_ciff};
pub use impact_ordered::{ImpactOrdered, ImpactSegment};
pub use layout::{ColumnPart, ListLayout};
pub use list::{BlockBuffer, Column, List, ListContext};
pub use map::prefetch_all;
pub use segment::Segment;
pub use summary::{Largest, Summary};
pub use terms::{ListSpan, Terms};
pub use verify::Verified;

use crate::format::IndexError;
use crate::format::manifest::{Manifest, Statistics};
use crate::text::Analyzer;
use crate::weight::Norms;
use crate::{DocId, TermId};
use std::io;
use std::path::Path;

/// How often an index is opened again whose files disappear while it is opened.
const ATTEMPTS: u32 = 100;

/// An index opened for reading.
///
/// It keeps the generation that it opened, even if a build replaces the index meanwhile.
pub struct Index {
    manifest: Manifest,
    analyzer: Analyzer,
    norms: Norms,
    segment: Segment,
    bounds_hold: bool,
    /// Whether the statistics are not those of the manifest.
    has_other_statistics: bool,
}

impl Index {
    /// Opens the current generation of the index in a folder. The time does not depend on the size of the index: only
    /// the manifest, the header and the section table are read. The rest is checked when it is first read.
    pub fn open(folder: impl AsRef<Path>) -> Result<Index, IndexError> {
        Index::open_with(folder, Verify::Lazy)
    }

    /// [`Index::open`], with a choice of when the bytes of the index are checked.
    pub fn open_with(folder: impl AsRef<Path>, verify: Verify) -> Result<Index, IndexError> {
        let folder = folder.as_ref();
        let is_replaced = |opened: &Result<Index, IndexError>| matches!(opened, Err(IndexError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound);
        let open = || Index::open_current(folder, verify == Verify::Lazy);
        // A build may remove the generation after we found it and before we open it: then there is a newer one.
        let mut opened = open();
        for _ in 0..ATTEMPTS {
            if !is_replaced(&opened) {
                break;
            }
            opened = open();
        }
        let index = opened?;
        if verify == Verify::Full {
            index.verify()?;
        }
        Ok(index)
    }

    fn open_current(folder: &Path, is_lazy: bool) -> Result<Index, IndexError> {
        let missing = || IndexError::Missing { path: folder.to_owned() };
        let path = Manifest::current(folder)?.ok_or_else(missing)?;
        let bytes = std::fs::read(&path).map_err(IndexError::io(&path))?;
        let manifest = Manifest::decode(&path, &bytes)?;
        let damaged = |what: String| IndexError::damaged(&path, "manifest", what);
        let [entry] = &manifest.segments[..] else {
            let count = manifest.segments.len();
            return Err(damaged(format!("it names {count} segments; this version reads indexes of one segment")));
        };
        if Path::new(&entry.file).file_name() != Some(entry.file.as_ref()) {
            return Err(damaged(format!("{:?} is not a file of this folder", entry.file)));
        }
        let analyzer = Analyzer::stored(&manifest.chain, &manifest.stop_words);
        let analyzer = analyzer.map_err(|error| damaged(error.to_string()))?;
        let segment = Segment::open(&folder.join(&entry.file), is_lazy)?;
        if segment.checksum() != entry.checksum {
            return Err(IndexError::damaged(segment.path(), "header", "it is not the file that the manifest names"));
        }
        let norms = manifest.bm25.norms(manifest.statistics.average_length());
        let bounds_hold = manifest.statistics.fingerprint(&manifest.bm25) == segment.header().fingerprint;
        Ok(Index { manifest, analyzer, norms, segment, bounds_hold, has_other_statistics: false })
    }

    /// The manifest of the generation that was opened.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The analyzer of documents and queries.
    pub fn analyzer(&self) -> &Analyzer {
        &self.analyzer
    }

    /// The one segment of the index.
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// The statistics that scores are computed with.
    pub fn statistics(&self) -> Statistics {
        self.manifest.statistics
    }

    /// Replaces the statistics by those of a larger collection of which this index is one part.
    pub fn set_statistics(&mut self, statistics: Statistics) {
        self.manifest.statistics = statistics;
        self.norms = self.manifest.bm25.norms(statistics.average_length());
        self.bounds_hold = statistics.fingerprint(&self.manifest.bm25) == self.segment.header().fingerprint;
        self.has_other_statistics = true;
    }

    /// Whether stored bounds and k-th weights were computed with the current statistics; if not, they must not be used.
    pub fn bounds_hold(&self) -> bool {
        self.bounds_hold
    }

    /// The norm of each length code.
    pub fn norms(&self) -> &Norms {
        &self.norms
    }

    /// Documents.
    pub fn documents(&self) -> u32 {
        self.segment.documents()
    }

    /// The number of a term, if it occurs.
    pub fn lookup(&self, term: &str) -> Result<Option<TermId>, IndexError> {
        Ok(self.segment.find_term(term.as_bytes())?.map(|(number, _)| TermId(number)))
    }

    /// The number and the span of the list of each term; `None` for a term that does not occur.
    pub fn find_terms<'t>(
        &self,
        terms: impl IntoIterator<Item = &'t [u8]>,
    ) -> Result<Vec<Option<(TermId, ListSpan)>>, IndexError> {
        let found = self.segment.find_terms(terms)?.into_iter();
        Ok(found.map(|found| found.map(|(number, span)| (TermId(number), span))).collect())
    }

    /// The list of a term.
    pub fn list(&self, term: TermId) -> Result<List<'_>, IndexError> {
        self.segment.list(term.0)
    }

    /// Opens the list at a span from [`Index::find_terms`].
    pub fn list_at(&self, span: ListSpan) -> Result<List<'_>, IndexError> {
        self.segment.list_at(span)
    }

    /// Reads the header of the list at a span, without opening the list.
    pub fn summary_at(&self, span: ListSpan) -> Result<Summary<'_>, IndexError> {
        self.segment.summary_at(span)
    }

    /// The impact-ordered list of a term; `None` if its list is short or the index has no impact-ordered lists.
    pub fn impact_ordered(&self, term: TermId) -> Result<Option<ImpactOrdered<'_>>, IndexError> {
        self.segment.impact_ordered(term.0)
    }

    /// The length codes of all documents.
    pub fn length_codes(&self) -> &[u8] {
        self.segment.length_codes()
    }

    /// The exact length of a document in tokens.
    pub fn length(&self, document: DocId) -> u32 {
        self.segment.length(document.0)
    }

    /// The external id of a document.
    pub fn id(&self, document: DocId) -> Result<String, IndexError> {
        self.segment.id(document.0)
    }

    /// The external ids of several documents, in one allocation.
    pub fn ids(&self, documents: impl ExactSizeIterator<Item = DocId> + Clone) -> Result<Ids, IndexError> {
        self.segment.ids(documents.map(|document| document.0))
    }

    /// The document with an external id.
    pub fn find(&self, id: &str) -> Result<Option<DocId>, IndexError> {
        Ok(self.segment.find(id)?.map(DocId))
    }

    /// The stored fields of a document with their names.
    pub fn stored(&self, document: DocId) -> Result<Vec<(&str, String)>, IndexError> {
        let names = self.manifest.stored.iter().map(String::as_str);
        Ok(names.zip(self.segment.stored(document.0)?).collect())
    }

    /// Reads everything and checks every checksum, then every structure.
    pub fn verify(&self) -> Result<Verified, IndexError> {
        verify::verify(self)
    }
}
