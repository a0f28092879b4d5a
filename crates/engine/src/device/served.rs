//! An index as a device serves it. Several can share a device; what is kept for each is keyed by this.

use super::residency::ResidencyReport;
use super::residency::list_map::ListMap;
use crate::query::cost::Costs;
use crate::query::plan::Plan;
use lanner_index::format::segment::Section;
use lanner_index::open::Index;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
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
    /// Whether lists are uploaded with batches, all or some.
    pub uploads_lists: AtomicBool,
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
        let [is_open, uploads_lists, lacks_ranks, is_refused] = [const { AtomicBool::new(false) }; 4];
        let list_map = ListMap::new(index.segment().section(Section::LongLists).len());
        let (residency, is_wanted) = (Mutex::default(), AtomicBool::new(true));
        Served { index, costs, is_open, uploads_lists, lacks_ranks, list_map, residency, is_refused, is_wanted }
    }
}

impl Served {
    /// The share of what a plan is predicted to read that a device would read in host memory, or upload.
    pub fn missing_share(&self, plan: &Plan) -> f64 {
        if self.uploads_lists.load(Ordering::Relaxed) { 1.0 } else { self.list_map.missing_share(plan) }
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
