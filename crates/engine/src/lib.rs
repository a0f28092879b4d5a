//! Lanner, a search engine whose pair is the CPU and the GPU.
//!
//! An index is built once, in a folder; a [`Searcher`] opens it and answers each [`Query`] with an [`Answer`]. Every
//! answer is exact: all algorithms give the same documents, scores and order.
//!
//! ```
//! use lanner::build::{BuildOptions, Quiet, build};
//! use lanner::corpus::{Corpus, CorpusOptions};
//! use lanner::{Mode, Query, Searcher};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let documents = [
//!         ("lanner", "Lanner falcon", "Lanner falcons hunt in pairs, over open country."),
//!         ("saker", "Saker falcon", "Sakers hunt rodents close to the ground."),
//!         ("heron", "Grey heron", "Herons stand in shallow water and wait."),
//!     ];
//!     let documents = documents.map(|(id, title, text)| (id.to_owned(), title.to_owned(), text.to_owned()));
//!     let corpus = Corpus::from_documents(documents, CorpusOptions::default())?;
//!
//!     let folder = tempfile::tempdir()?;
//!     build(folder.path(), corpus, &BuildOptions::default(), &Quiet)?;
//!
//!     let searcher = Searcher::open(folder.path())?;
//!     let query = Query::new("falcons hunting in pairs^2").mode(Mode::AndOr).k(2);
//!     let answer = searcher.search(&query)?;
//!     let mut found = Vec::new();
//!     for hit in &answer.hits {
//!         let document = searcher.document(hit.document)?;
//!         let snippet = searcher.snippet(&query, &document, 80)?;
//!         println!("{:.3}  {}: {}", f64::from(hit.score) / 65536.0, document.id, snippet.text);
//!         found.push(document.id);
//!     }
//!     assert_eq!(found, ["lanner", "saker"]);
//!     Ok(())
//! }
//! ```
//!
//! Modules in order; each knows only those before it (the `tidy` test keeps it so): `query`, `algorithms`, `device`,
//! `papers`, `executors`, `explain`, `snippet`, `searcher`, `oracle`, [`eval`].

mod query;

mod algorithms;

mod device;

mod papers;

mod executors;

mod explain;

mod snippet;

mod searcher;

mod oracle;

pub mod eval;

pub use algorithms::topk::TopK;
pub use executors::{Cpu, Executor, ExecutorError, GpuExecutor};
pub use explain::Explanation;
pub use lanner_index::open::{Ids, Index};
pub use lanner_index::{DocId, build, corpus};
pub use query::answer::{Answer, Hit};
pub use query::bitmap::Bitmap;
pub use query::plan::Plan;
pub use query::planner::PlanError;
pub use query::score::ScoreModel;
pub use query::{Algorithm, Mode, Query};
pub use searcher::{SearchError, Searcher, StoredDocument};
pub use snippet::Snippet;

/// The modules of the engine, for the benchmarks and tests of this workspace. Not part of the public interface: anything
/// here may change with any version.
#[doc(hidden)]
pub mod internals {
    pub mod algorithms {
        pub use crate::algorithms::*;
    }
    pub mod device {
        pub use crate::device::*;
    }
    pub mod executors {
        pub use crate::executors::*;
    }
    pub mod oracle {
        pub use crate::oracle::*;
    }
    pub mod papers {
        pub use crate::papers::*;
    }
    pub mod query {
        pub use crate::query::*;
    }
}
