//! Searching an index: part of the public interface.

use crate::device::submission::Submission;
use crate::engine::Engine;
use crate::executors::{Cpu, Executor, GpuOptions, GpuWorker, map_in_threads};
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

/// The most queries that a thread plans before it submits them together: planning them takes less than 100 us, so that
/// the GPU starts early.
const SUBMITTED_TOGETHER: usize = 16;

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
        Searcher { engine: Engine::new(index) }
    }

    /// Answers on a GPU what the GPU can answer.
    pub fn with_gpu(self, gpu: GpuOptions) -> Searcher {
        Searcher { engine: self.engine.gpu(gpu) }
    }

    /// Uses up to this many threads of the CPU for a long query, and for those of a batch that a GPU does not answer.
    pub fn with_threads(self, threads: usize) -> Searcher {
        Searcher { engine: self.engine.threads(threads) }
    }

    /// The index.
    pub fn index(&self) -> &Arc<Index> {
        self.engine.index()
    }

    /// How a query would be answered.
    pub fn plan(&self, query: &Query) -> Result<Plan, PlanError> {
        Planner::new(self.index()).plan(query)
    }

    /// Answers a query: on the GPU if there is one, else on the calling thread, and a long query on those of
    /// [`Searcher::with_threads`].
    pub fn search(&self, query: &Query) -> Result<Answer, SearchError> {
        let start = Instant::now();
        let plan = self.plan(query)?;
        let planned = Step { name: "plan", place: Place::Cpu, duration: start.elapsed() };
        let answers = self.engine.run(std::slice::from_ref(&plan))?;
        let answer = answers.into_iter().next().expect("an executor answers every plan");
        let mut answer = answer.into_hits(plan.score);
        answer.trace.steps.insert(0, planned);
        Ok(answer)
    }

    /// Answers many queries: `answers[i]` belongs to `queries[i]`. Up to `threads` threads answer a query each, or plan
    /// queries for the GPU, if there is one, while it answers those before.
    pub fn search_batch(&self, queries: &[Query], threads: usize) -> Result<Vec<Answer>, SearchError> {
        let numbered: Vec<(usize, &Query)> = (1..).zip(queries).collect();
        let plan =
            |(number, query): (usize, &Query)| self.plan(query).map_err(|error| SearchError::Query { number, error });
        if let Some(gpu) = self.engine.worker() {
            return self.search_batch_on_gpu(gpu, &numbered, threads, plan);
        }
        if let [only] = numbered[..] {
            let plan = plan(only)?;
            let answers = Cpu::new(Arc::clone(self.index()), threads).run(std::slice::from_ref(&plan))?;
            return Ok(answers.into_iter().map(|answer| answer.into_hits(plan.score)).collect());
        }
        let answers = map_in_threads(
            &numbered,
            threads,
            || self.engine.cpu().borrow(),
            |borrowed, query| {
                let plan = plan(*query)?;
                Ok(self.engine.cpu().answer_with(borrowed, &plan)?.into_hits(plan.score))
            },
        );
        answers.into_iter().collect()
    }

    /// Threads plan a few queries at a time and submit them, then make the answers of those that the GPU has answered;
    /// the CPU answers the others.
    fn search_batch_on_gpu<'a>(
        &self,
        gpu: &GpuWorker,
        queries: &[(usize, &'a Query)],
        threads: usize,
        plan: impl Fn((usize, &'a Query)) -> Result<Plan, SearchError> + Sync,
    ) -> Result<Vec<Answer>, SearchError> {
        let size = queries.len().div_ceil(threads.max(1)).clamp(1, SUBMITTED_TOGETHER);
        let groups: Vec<&[(usize, &Query)]> = queries.chunks(size).collect();
        let start = |group: &[(usize, &'a Query)]| -> Result<Arc<Submission>, SearchError> {
            let plans = group.iter().map(|query| plan(*query)).collect::<Result<Vec<Plan>, _>>()?;
            Ok(self.engine.start(gpu, plans.into_iter()))
        };
        let started = map_in_threads(&groups, threads, || (), |(), group| start(group));
        if started.iter().any(Result::is_err) {
            started.iter().flatten().for_each(|submission| submission.cancel());
        }
        let submissions = started.into_iter().collect::<Result<Vec<_>, SearchError>>()?;
        let finish = |submission: &Arc<Submission>| -> Vec<Option<Answer>> {
            let answers = self.engine.finish(gpu, submission).into_iter().enumerate();
            answers.map(|(number, answer)| Some(answer?.into_hits(submission.plan(number).score))).collect()
        };
        let answers = map_in_threads(&submissions, threads, || (), |(), submission| finish(submission));
        let plan_of = |number: usize| submissions[number / size].plan(number % size);
        let hits = |answer: Answer<Scored>, plan: &Plan| answer.into_hits(plan.score);
        Ok(self.engine.answer_missing(answers.into_iter().flatten().collect(), plan_of, hits)?)
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
