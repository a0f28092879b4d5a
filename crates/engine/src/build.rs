//! What an [`IndexBuilder`](crate::IndexBuilder) reads and returns: the options of a collection, analyzers, and the report
//! of a build.

pub use lanner_index::build::BuildReport;
pub use lanner_index::corpus::CorpusOptions;
pub use lanner_index::text::{Analyzer, AnalyzerChanges, Language, Stemmer, Stop, StopWords};
