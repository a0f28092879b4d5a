//! The front door: an index opened for searching.

use crate::executors::{Cpu, Executor, ExecutorError, map_in_threads};
use crate::explain::Explanation;
use crate::query::Query;
use crate::query::answer::Hit;
use crate::query::answer::{Answer, Place, Step};
use crate::query::plan::Plan;
use crate::query::planner::{PlanError, Planner};
use crate::snippet::Snippet;
use lanner_index::DocId;
use lanner_index::format::IndexError;
use lanner_index::open::{Ids, Index};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Answers queries over one index.
pub struct Searcher {
    index: Arc<Index>,
    cpu: Cpu,
    /// What answers instead of the processor.
    executor: Option<Box<dyn Executor + Send + Sync>>,
}

/// Why a query was not answered.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// There is no plan for it.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// There is no plan for a query of a batch.
    #[error("query {number}: {error}")]
    Query {
        /// Which query, counting from 1.
        number: usize,
        /// Why.
        error: PlanError,
    },
    /// The plan did not run.
    #[error(transparent)]
    Executor(#[from] ExecutorError),
}

/// What the index stores of a document.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct StoredDocument {
    /// Its external id.
    pub id: String,
    /// Its stored fields with their names, in the order of the index.
    pub fields: Vec<(String, String)>,
}

impl StoredDocument {
    /// A stored field by name.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, text)| text.as_str())
    }
}

impl Searcher {
    /// Opens the index in a folder.
    pub fn open(folder: impl AsRef<Path>) -> Result<Searcher, IndexError> {
        Ok(Searcher::new(Arc::new(Index::open(folder)?)))
    }

    /// Searches an index that is already open.
    pub fn new(index: Arc<Index>) -> Searcher {
        Searcher { cpu: Cpu::new(Arc::clone(&index), 1), index, executor: None }
    }

    /// Leaves queries to an executor of the same index instead of the calling thread; batches go to it whole.
    pub fn with_executor(self, executor: Box<dyn Executor + Send + Sync>) -> Searcher {
        Searcher { executor: Some(executor), ..self }
    }

    /// The index.
    pub fn index(&self) -> &Arc<Index> {
        &self.index
    }

    /// How a query would be answered.
    pub fn plan(&self, query: &Query) -> Result<Plan, PlanError> {
        Planner::new(&self.index).plan(query)
    }

    /// Answers a query, on this thread unless there is an executor.
    pub fn search(&self, query: &Query) -> Result<Answer, SearchError> {
        let start = Instant::now();
        let plan = self.plan(query)?;
        let planned = Step { name: "plan", place: Place::Cpu, duration: start.elapsed() };
        let plans = std::slice::from_ref(&plan);
        let answers = match &self.executor {
            Some(executor) => executor.run(plans)?,
            None => self.cpu.run(plans)?,
        };
        let mut answer = answers.into_iter().next().expect("an executor answers every plan");
        answer.trace.steps.insert(0, planned);
        Ok(answer)
    }

    /// Answers many queries on up to `threads` threads, one query a thread at a time, or plans them there for the
    /// executor, if there is one; answers stand in their order.
    pub fn search_batch(&self, queries: &[Query], threads: usize) -> Result<Vec<Answer>, SearchError> {
        let numbered: Vec<(usize, &Query)> = (1..).zip(queries).collect();
        let plan =
            |(number, query): (usize, &Query)| self.plan(query).map_err(|error| SearchError::Query { number, error });
        if let Some(executor) = &self.executor {
            let plans = map_in_threads(&numbered, threads, || (), |(), query| plan(*query));
            return Ok(executor.run(&plans.into_iter().collect::<Result<Vec<Plan>, SearchError>>()?)?);
        }
        if let [only] = numbered[..] {
            return Ok(Cpu::new(Arc::clone(&self.index), threads).run(&[plan(only)?])?);
        }
        let answers = map_in_threads(
            &numbered,
            threads,
            || self.cpu.borrow(),
            |borrowed, query| Ok(self.cpu.answer_with(borrowed, &plan(*query)?)?),
        );
        answers.into_iter().collect()
    }

    /// The external ids of hits, in their order.
    pub fn ids(&self, hits: &[Hit]) -> Result<Ids, IndexError> {
        self.index.ids(hits.iter().map(|hit| hit.document))
    }

    /// The external id of a document.
    pub fn id(&self, document: DocId) -> Result<String, IndexError> {
        self.index.id(document)
    }

    /// What the index stores of a document.
    pub fn document(&self, document: DocId) -> Result<StoredDocument, IndexError> {
        let fields = self.index.stored(document)?;
        let fields = fields.into_iter().map(|(name, text)| (name.to_owned(), text)).collect();
        Ok(StoredDocument { id: self.index.id(document)?, fields })
    }

    /// Up to about `longest` characters of a stored document around the words of a query: of its field `text`, or of
    /// the last one stored; empty where none is.
    pub fn snippet(&self, query: &Query, document: &StoredDocument, longest: usize) -> Result<Snippet, PlanError> {
        let text = document.field("text").or_else(|| document.fields.last().map(|(_, text)| text.as_str()));
        let terms = query.terms(self.index.analyzer())?.into_iter().map(|term| term.term).collect();
        Ok(Snippet::new(text.unwrap_or(""), &terms, self.index.analyzer(), longest))
    }

    /// Why a document has its score for a query; `None` where the index has no such document.
    pub fn explain(&self, query: &Query, document: DocId) -> Result<Option<Explanation>, PlanError> {
        Ok(Explanation::new(&self.plan(query)?, &self.index, document)?)
    }
}
