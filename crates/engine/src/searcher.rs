//! Searching an index: part of the public interface.

use crate::engine::{Engine, SearchError};
use crate::executors::GpuOptions;
use crate::explain::Explanation;
use crate::query::Query;
use crate::query::answer::{Answer, Hit};
use crate::query::document_set::DocumentSet;
use crate::query::plan::Plan;
use crate::query::planner::PlanError;
use crate::schedule::Policy;
use crate::snippet::Snippet;
use lanner_index::DocId;
use lanner_index::corpus::Document;
use lanner_index::format::IndexError;
use lanner_index::open::{Ids, Index};
use std::path::Path;
use std::sync::Arc;

/// Answers queries over one index. It can be shared among threads.
///
/// ```
/// # use lanner::{Document, IndexBuilder, Query, Searcher};
/// # let folder = tempfile::tempdir()?;
/// # let document = |id: &str, text: &str| Document::new(id).field("text", text);
/// # IndexBuilder::new(folder.path()).documents([document("a", "falcons in pairs"), document("b", "one falcon")])?;
/// let searcher = Searcher::open(folder.path())?;
/// let only_b = searcher.filter(["b"])?;
/// let answer = searcher.search(&Query::new("falcon").filter(only_b))?;
/// assert_eq!(searcher.id(answer.hits[0].document)?, "b");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Searcher {
    engine: Engine,
}

impl Searcher {
    /// Opens the index in a folder.
    pub fn open(folder: impl AsRef<Path>) -> Result<Searcher, IndexError> {
        Ok(Searcher::new(Arc::new(Index::open(folder)?)))
    }

    /// Searches an index that is already open.
    pub fn new(index: Arc<Index>) -> Searcher {
        Searcher { engine: Engine::new(index) }
    }

    /// Searches with an engine, which has more options and more ways to ask.
    pub fn with_engine(engine: Engine) -> Searcher {
        Searcher { engine }
    }

    /// Uses a GPU for what it is predicted to answer sooner than the CPU.
    ///
    /// # Panics
    ///
    /// If a query was asked before: the threads that answer it share the options.
    pub fn gpu(self, gpu: GpuOptions) -> Searcher {
        Searcher { engine: self.engine.gpu(gpu) }
    }

    /// Uses up to this many threads of the CPU for a long query, and for a batch.
    ///
    /// # Panics
    ///
    /// If a query was asked before: the threads that answer it share the options.
    pub fn threads(self, threads: usize) -> Searcher {
        Searcher { engine: self.engine.threads(threads) }
    }

    /// Chooses who answers a query: the CPU or the GPU.
    ///
    /// # Panics
    ///
    /// If a query was asked before: the threads that answer it share the options.
    pub fn policy(self, policy: Policy) -> Searcher {
        Searcher { engine: self.engine.policy(policy) }
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The index.
    pub fn index(&self) -> &Arc<Index> {
        self.engine.index()
    }

    /// How a query would be answered.
    pub fn plan(&self, query: &Query) -> Result<Plan, PlanError> {
        self.engine.plan(query)
    }

    /// Answers a query, as [`Engine::search`].
    pub fn search(&self, query: &Query) -> Result<Answer, SearchError> {
        self.engine.search(query)
    }

    /// Answers many queries, as [`Engine::search_batch`]: `answers[i]` belongs to `queries[i]`.
    pub fn search_batch(&self, queries: &[Query]) -> Result<Vec<Answer>, SearchError> {
        self.engine.search_batch(queries)
    }

    /// The external ids of hits, in their order.
    pub fn ids(&self, hits: &[Hit]) -> Result<Ids, IndexError> {
        self.index().ids(hits.iter().map(|hit| hit.document))
    }

    /// The external id of a document.
    pub fn id(&self, document: DocId) -> Result<String, IndexError> {
        self.index().id(document)
    }

    /// The documents with these external ids, as a filter for queries. Ids that the index does not have are ignored: no
    /// hit can have them.
    pub fn filter<I: AsRef<str>>(&self, ids: impl IntoIterator<Item = I>) -> Result<DocumentSet, IndexError> {
        let found = ids.into_iter().map(|id| self.index().find(id.as_ref()));
        found.filter_map(Result::transpose).collect()
    }

    /// A document as the index stores it: its external id and its stored fields.
    pub fn document(&self, document: DocId) -> Result<Document, IndexError> {
        let fields = self.index().stored(document)?;
        let fields = fields.into_iter().map(|(name, text)| (name.to_owned().into(), text)).collect();
        Ok(Document { id: self.index().id(document)?, fields })
    }

    /// A passage of about `longest` characters around the words of a query, from the stored field `text` or else the
    /// last stored field; empty if no field is stored.
    pub fn snippet(&self, query: &Query, document: &Document, longest: usize) -> Result<Snippet, PlanError> {
        let text = document.get("text").or_else(|| document.fields.last().map(|(_, text)| text.as_str()));
        let terms = query.terms(self.index().analyzer())?.into_iter().map(|term| term.term).collect();
        Ok(Snippet::new(text.unwrap_or(""), &terms, self.index().analyzer(), longest))
    }

    /// Why a document has its score for a query; `None` if the index has no such document.
    pub fn explain(&self, query: &Query, document: DocId) -> Result<Option<Explanation>, PlanError> {
        Ok(Explanation::new(&self.plan(query)?, self.index(), document)?)
    }
}
