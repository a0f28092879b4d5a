//! Lanner, a search engine for the CPU and for NVIDIA GPUs.
//!
//! [`IndexBuilder`] builds an index once, in a folder. A [`Searcher`] opens it and answers each [`Query`] with an
//! [`Answer`]. Answers are exact: every algorithm, on the CPU and on the GPU, gives the same documents, scores and
//! ranking.
//!
//! ```
//! use lanner::{Document, IndexBuilder, Query, Searcher};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let folder = tempfile::tempdir()?;
//!     IndexBuilder::new(&folder).documents([
//!         Document::new("lanner").field("title", "Lanner falcon").field("text", "Lanner falcons hunt in pairs."),
//!         Document::new("saker").field("title", "Saker falcon").field("text", "Sakers hunt close to the ground."),
//!         Document::new("heron").field("title", "Grey heron").field("text", "Herons stand in shallow water."),
//!     ])?;
//!
//!     let searcher = Searcher::open(&folder)?;
//!     let query = Query::new("falcons hunting in pairs^2").k(2);
//!     for hit in searcher.search(&query)?.hits {
//!         let document = searcher.document(hit.document)?;
//!         println!("{:.3}  {}: {}", hit.score, document.id, searcher.snippet(&query, &document, 80)?.text);
//!     }
//!     Ok(())
//! }
//! ```
//!
//! To answer on a GPU, say so:
//!
//! ```no_run
//! # use lanner::{GpuOptions, Searcher};
//! let searcher = Searcher::open("birds")?.gpu(GpuOptions::driver().memory(8 << 30));
//! # Ok::<(), lanner::IndexError>(())
//! ```
//!
//! The root has what most programs need. [`answer`] has what belongs to an answer: its trace, ids, snippets, futures
//! and streams. [`build`] has the options of a collection and the report of a build. [`error`] has the errors, those of
//! the root too. [`eval`] compares rankings with judgements.
//!
//! Modules in order; each knows only those before it (the `tidy` test keeps it so): `query`, `algorithms`, `device`,
//! `papers`, `executors`, `schedule`, `engine`, `calibrate`, `explain`, `snippet`, `searcher`, `index_builder`,
//! `oracle`, [`eval`], `percentile`, [`answer`], [`build`], [`error`].

mod query;

mod algorithms;

mod device;

mod papers;

mod executors;

mod schedule;

mod engine;

mod calibrate;

mod explain;

mod snippet;

mod searcher;

mod index_builder;

mod oracle;

pub mod eval;

mod percentile;

pub mod answer;

pub mod build;

pub mod error;

pub use engine::{Engine, SearchError};
pub use executors::GpuOptions;
pub use index_builder::IndexBuilder;
pub use lanner_index::DocId;
pub use lanner_index::build::{BuildError, BuildOptions};
pub use lanner_index::corpus::Document;
pub use lanner_index::format::IndexError;
pub use lanner_index::open::{Index, Verify};
pub use query::answer::{Answer, Hit};
pub use query::document_set::DocumentSet;
pub use query::plan::Plan;
pub use query::score::ScoreModel;
pub use query::{Algorithm, Mode, Query};
pub use schedule::Policy;
pub use searcher::Searcher;

/// The modules of the engine, for the program, benchmarks and tests of this workspace. Not part of the public
/// interface: anything here may change with any version.
#[doc(hidden)]
pub mod internals {
    pub mod algorithms {
        pub use crate::algorithms::*;
    }
    pub mod device {
        pub use crate::device::*;
    }
    pub mod calibrate {
        pub use crate::calibrate::*;
    }
    pub mod engine {
        pub use crate::engine::*;
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
    pub use crate::percentile::percentile;
    pub mod query {
        pub use crate::query::*;
    }
}

/// The program in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
