//! An index as a device serves it. Several can share a device; what is kept for each is keyed by this.

use super::residency::ResidencyReport;
use super::residency::list_map::ListMap;
use crate::query::cost::Costs;
use crate::query::plan::Plan;
use lanner_index::format::segment::Section;
use lanner_index::open::{Index, ListSpan};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// An index that a device serves, and what other threads see of it there. On cache lines of its own: every submission
/// counts a reference to it, and every query reads it.
#[repr(align(128))]
pub struct Served {
    pub index: Arc<Index>,
    /// Told how long batches took.
    pub costs: Arc<Costs>,
    /// Whether the device is open and has the index.
    pub is_open: AtomicBool,
    /// How many bytes of long and of short lists kernels can read where they are; all until it is known. The others are
    /// uploaded with the batches that read them.
    readable: [AtomicUsize; 2],
    /// Whether kernels cannot read the static ranks, which the CPU adds then.
    pub lacks_ranks: AtomicBool,
    /// Which pieces of lists are resident.
    pub list_map: ListMap,
    /// Where lists lie, as of the last batch.
    pub residency: Mutex<ResidencyReport>,
    /// Whether the device has no memory for it.
    pub is_refused: AtomicBool,
    /// Whether there may be queries over it. If not, the device frees what it holds for it.
    pub is_wanted: AtomicBool,
}

impl fmt::Debug for Served {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Served").field("is_open", &self.is_open).finish_non_exhaustive()
    }
}

impl Served {
    pub fn new(index: Arc<Index>, costs: Arc<Costs>) -> Served {
        let [is_open, lacks_ranks, is_refused] = [const { AtomicBool::new(false) }; 3];
        let readable = [const { AtomicUsize::new(usize::MAX) }; 2];
        let list_map = ListMap::new(index.segment().section(Section::LongLists).len());
        let (residency, is_wanted) = (Mutex::default(), AtomicBool::new(true));
        Served { index, costs, is_open, readable, lacks_ranks, list_map, residency, is_refused, is_wanted }
    }
}

impl Served {
    pub fn note_readable(&self, bytes: [usize; 2]) {
        self.readable.iter().zip(bytes).for_each(|(readable, bytes)| readable.store(bytes, Ordering::Relaxed));
    }

    /// Whether a list has to be uploaded with a batch, unless all of it is cached.
    pub fn uploads(&self, span: ListSpan) -> bool {
        span.end > self.readable[usize::from(!span.is_long)].load(Ordering::Relaxed)
    }

    /// Whether lists of a plan are uploaded.
    pub fn uploads_for(&self, plan: &Plan) -> bool {
        plan.lists.iter().any(|list| self.uploads(list.span))
    }

    /// The share of what a plan is predicted to read that a device would read in host memory, or upload.
    pub fn missing_share(&self, plan: &Plan) -> f64 {
        self.list_map.missing_share(plan, |span| self.uploads(span))
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use lanner_index::build::{BuildOptions, Quiet, build};
    use lanner_index::corpus::{Corpus, CorpusOptions};
    use std::sync::LazyLock;

    /// One document, for tests that need any index.
    pub static ANY: LazyLock<Arc<Served>> = LazyLock::new(|| {
        let folder = tempfile::tempdir().unwrap();
        let documents = [("a".to_owned(), String::new(), "falcon".to_owned())];
        let corpus = Corpus::from_documents(documents, CorpusOptions::default()).unwrap();
        build(folder.path(), corpus, &BuildOptions::default(), &Quiet).unwrap();
        Arc::new(Served::new(Arc::new(Index::open(folder.path()).unwrap()), Arc::default()))
    });
}
