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
//! Modules in order; each knows only those before it (the `tidy` test keeps it so): [`bitmap`], [`topk`], [`score`],
//! [`query`], [`answer`], [`plan`], [`planner`], [`algorithms`], [`kernels`], [`executors`], [`explain`], [`snippet`], [`searcher`],
//! [`oracle`], [`eval`].

pub mod bitmap;

pub mod topk;

pub mod score;

pub mod query;

pub mod answer;

pub mod plan;

pub mod planner;

pub mod algorithms;

pub mod kernels;

pub mod executors;

pub mod explain;

pub mod snippet;

pub mod searcher;

pub mod oracle;

pub mod eval;

pub use answer::Answer;
pub use bitmap::Bitmap;
pub use explain::Explanation;
pub use lanner_index::open::{Ids, Index};
pub use lanner_index::{DocId, build, corpus};
pub use plan::Plan;
pub use query::{Algorithm, Mode, Query};
pub use score::ScoreModel;
pub use searcher::Searcher;
pub use snippet::Snippet;
pub use topk::{Hit, TopK};
