//! Searching an index: part of the public interface.

use crate::executors::{Cpu, Executor, GpuExecutor, map_in_threads};
use crate::explain::Explanation;
use crate::query::Query;
use crate::query::answer::{Answer, Hit, Place, Scored, Step};
use crate::query::document_set::DocumentSet;
use crate::query::plan::Plan;
use crate::query::planner::{PlanError, Planner};
use crate::snippet::Snippet;
use lanner_index::DocId;
use lanner_index::corpus::Document;
use lanner_index::format::IndexError;
use lanner_index::open::{Ids, Index};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// A thread that computes scores has at least this many hits; fewer take less time than starting it.
const HITS_PER_THREAD: usize = 1 << 17;

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
    index: Arc<Index>,
    cpu: Cpu,
    /// Answers instead of the calling thread, if it is set.
    gpu: Option<GpuExecutor>,
}

/// Why a query was not answered.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The query cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A query of a batch cannot be planned.
    #[error("query {number}: {error}")]
    Query {
        /// Which query, counting from 1.
        number: usize,
        /// Why.
        error: PlanError,
    },
    /// The index cannot be read.
    #[error(transparent)]
    Index(#[from] IndexError),
}

impl Searcher {
    /// Opens the index in a folder.
    pub fn open(folder: impl AsRef<Path>) -> Result<Searcher, IndexError> {
        Ok(Searcher::new(Arc::new(Index::open(folder)?)))
    }

    /// Searches an index that is already open.
    pub fn new(index: Arc<Index>) -> Searcher {
        Searcher { cpu: Cpu::new(Arc::clone(&index), 1), index, gpu: None }
    }

    /// Answers on a GPU instead of the calling thread; the executor is one for the same index.
    pub fn with_gpu(self, gpu: GpuExecutor) -> Searcher {
        Searcher { gpu: Some(gpu), ..self }
    }

    /// The index.
    pub fn index(&self) -> &Arc<Index> {
        &self.index
    }

    /// How a query would be answered.
    pub fn plan(&self, query: &Query) -> Result<Plan, PlanError> {
        Planner::new(&self.index).plan(query)
    }

    /// Answers a query, on the calling thread unless there is a GPU.
    pub fn search(&self, query: &Query) -> Result<Answer, SearchError> {
        let start = Instant::now();
        let plan = self.plan(query)?;
        let planned = Step { name: "plan", place: Place::Cpu, duration: start.elapsed() };
        let plans = std::slice::from_ref(&plan);
        let answers = match &self.gpu {
            Some(gpu) => gpu.run(plans)?,
            None => self.cpu.run(plans)?,
        };
        let answer = answers.into_iter().next().expect("an executor answers every plan");
        let mut answer = answer.into_hits(plan.score);
        answer.trace.steps.insert(0, planned);
        Ok(answer)
    }

    /// Answers many queries: `answers[i]` belongs to `queries[i]`. Up to `threads` threads answer a query each, or plan
    /// queries for the GPU, if there is one.
    pub fn search_batch(&self, queries: &[Query], threads: usize) -> Result<Vec<Answer>, SearchError> {
        let numbered: Vec<(usize, &Query)> = (1..).zip(queries).collect();
        let plan =
            |(number, query): (usize, &Query)| self.plan(query).map_err(|error| SearchError::Query { number, error });
        if let Some(gpu) = &self.gpu {
            let plans = map_in_threads(&numbered, threads, || (), |(), query| plan(*query));
            let plans = plans.into_iter().collect::<Result<Vec<Plan>, SearchError>>()?;
            return Ok(with_scores(gpu.run(&plans)?, &plans, threads));
        }
        if let [only] = numbered[..] {
            let plans = [plan(only)?];
            return Ok(with_scores(Cpu::new(Arc::clone(&self.index), threads).run(&plans)?, &plans, 1));
        }
        let answers = map_in_threads(
            &numbered,
            threads,
            || self.cpu.borrow(),
            |borrowed, query| {
                let plan = plan(*query)?;
                Ok(self.cpu.answer_with(borrowed, &plan)?.into_hits(plan.score))
            },
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

    /// The documents with these external ids, as a filter for queries. Ids that the index does not have are ignored: no hit
    /// can have them.
    pub fn filter<I: AsRef<str>>(&self, ids: impl IntoIterator<Item = I>) -> Result<DocumentSet, IndexError> {
        let found = ids.into_iter().map(|id| self.index.find(id.as_ref()));
        found.filter_map(Result::transpose).collect()
    }

    /// A document as the index stores it: its external id and its stored fields.
    pub fn document(&self, document: DocId) -> Result<Document, IndexError> {
        let fields = self.index.stored(document)?;
        let fields = fields.into_iter().map(|(name, text)| (name.to_owned().into(), text)).collect();
        Ok(Document { id: self.index.id(document)?, fields })
    }

    /// A passage of about `longest` characters around the words of a query, from the stored field `text` or else the last
    /// stored field; empty if no field is stored.
    pub fn snippet(&self, query: &Query, document: &Document, longest: usize) -> Result<Snippet, PlanError> {
        let text = document.get("text").or_else(|| document.fields.last().map(|(_, text)| text.as_str()));
        let terms = query.terms(self.index.analyzer())?.into_iter().map(|term| term.term).collect();
        Ok(Snippet::new(text.unwrap_or(""), &terms, self.index.analyzer(), longest))
    }

    /// Why a document has its score for a query; `None` if the index has no such document.
    pub fn explain(&self, query: &Query, document: DocId) -> Result<Option<Explanation>, PlanError> {
        Ok(Explanation::new(&self.plan(query)?, &self.index, document)?)
    }
}

/// The answers to plans, with scores.
fn with_scores(answers: Vec<Answer<Scored>>, plans: &[Plan], threads: usize) -> Vec<Answer> {
    assert_eq!(answers.len(), plans.len(), "an executor answers every plan");
    let pairs: Vec<(&Answer<Scored>, &Plan)> = answers.iter().zip(plans).collect();
    let threads = threads.min(answers.iter().map(|answer| answer.hits.len()).sum::<usize>() / HITS_PER_THREAD);
    let hits = map_in_threads(&pairs, threads, || (), |(), (answer, plan)| answer.hits_scored_by(plan.score));
    answers.into_iter().zip(hits).map(|(answer, hits)| answer.with_hits(hits)).collect()
}
