//! The algorithms that answer by default, one file each, and the code that they share: tasks, workspaces, weighers,
//! cursors.
//!
//! [`Task::run`] answers one stage of a plan: it chooses the weigher by the column that the score model reads, and
//! calls the `cpu` function of the stage's algorithm. An algorithm leaves its hits in [`Workspace::top`].

pub mod block_max_maxscore;
pub mod conjunction;
pub mod cursor;
pub mod dense_list;
pub mod exhaustive;
pub mod lanes;
pub mod maxscore;
pub mod scatter;
pub mod score_at_a_time;
pub mod sparse_list;
pub mod sweep;
pub mod topk;
pub mod weigher;

use crate::query::Algorithm;
use crate::query::answer::{Scored, Work};
use crate::query::plan::{Operation, Plan, Stage};
use crate::query::score::{ScoreModel, static_units};
use cursor::Cursor;
use lanner_index::DocId;
use lanner_index::codec::BLOCK;
use lanner_index::format::IndexError;
use lanner_index::open::{BlockBuffer, Column, Index};
use topk::TopK;
use weigher::{Frequencies, Impacts, Weigher};

/// Documents whose accumulators fit the L1 cache: 32 KiB of 32-bit scores. Not to be confused with the windows of the
/// index, which have 32,768 documents, nor with those of `scatter`, which have a multiple of this.
pub const L1_WINDOW: usize = lanes::CHUNK * lanes::CHUNKS;

/// Memory that a thread keeps from query to query.
#[derive(Default)]
pub struct Workspace {
    /// Whether the last stage gave the exact answer; a budget may have stopped it early.
    pub is_exact: bool,
    /// The hits so far.
    pub top: TopK,
    /// The widest SIMD instructions that the inner loops may use.
    pub simd_level: lanes::SimdLevel,
    /// The accumulators of `exhaustive`.
    accumulators: exhaustive::Accumulators,
    /// The accumulators of `scatter`.
    window: scatter::WindowBuffers,
    /// The candidates of `conjunction`, and the positions of their postings.
    candidates: Box<conjunction::Candidates>,
    positions: Vec<u32>,
    /// Decoded blocks.
    blocks: Vec<BlockBuffer>,
    /// The memory of score-at-a-time.
    score_at_a_time: score_at_a_time::Memory,
}

/// Returns `count` buffers for blocks, with arbitrary contents.
fn block_buffers(blocks: &mut Vec<BlockBuffer>, count: usize) -> std::slice::IterMut<'_, BlockBuffer> {
    if blocks.len() < count {
        blocks.resize(count, [0; BLOCK]);
    }
    blocks[..count].iter_mut()
}

/// One stage of a plan on an index: the input of an algorithm.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The stage to run.
    pub stage: &'a Stage,
    /// The index that the plan was made for.
    pub index: &'a Index,
    /// The hits of the stage before: fewer than k, so all documents that it matches. They are not scored again.
    pub earlier: &'a EarlierHits,
}

/// Hits of an earlier stage.
#[derive(Default)]
pub struct EarlierHits {
    hits: Vec<Scored>,
    /// Their documents, ascending.
    documents: Vec<DocId>,
}

impl EarlierHits {
    /// Wraps the hits of an earlier stage.
    pub fn new(hits: Vec<Scored>) -> EarlierHits {
        let mut documents: Vec<DocId> = hits.iter().map(|hit| hit.document).collect();
        documents.sort_unstable();
        EarlierHits { hits, documents }
    }
}

impl<'a> Task<'a> {
    /// Runs the stage on this thread and leaves its hits in the workspace.
    pub fn run(&self, workspace: &mut Workspace) -> Result<Work, IndexError> {
        workspace.is_exact = true;
        workspace.top.reset(self.plan.k, self.plan.seed_of(self.stage));
        workspace.top.keep(&self.earlier.hits);
        if self.plan.k == 0 || self.plan.range.is_empty() {
            return Ok(Work::default());
        }
        if self.stage.algorithm == Algorithm::ScoreAtATime {
            return score_at_a_time::cpu(self, workspace);
        }
        match self.plan.score.column() {
            Column::Frequency => self.run_with(Frequencies::new(self.plan, self.index), workspace),
            Column::Impact => self.run_with(Impacts, workspace),
        }
    }

    fn run_with<W: Weigher>(&self, weigher: W, workspace: &mut Workspace) -> Result<Work, IndexError> {
        match (self.stage.algorithm, self.stage.operation) {
            (Algorithm::Scatter, Operation::Or) => return scatter::cpu(self, weigher, workspace),
            (Algorithm::Conjunction, Operation::And) => return conjunction::cpu(self, weigher, workspace),
            _ => {}
        }
        let cursors = self.cursors(weigher)?;
        Ok(match (self.stage.algorithm, self.stage.operation) {
            (Algorithm::Maxscore, Operation::Or) => maxscore::cpu(self, cursors, &mut workspace.top),
            (Algorithm::BlockMaxMaxscore, Operation::Or) => block_max_maxscore::cpu(self, cursors, &mut workspace.top),
            _ => exhaustive::cpu(self, cursors, workspace),
        })
    }

    /// A cursor for each list, at its first posting in the plan's range.
    pub fn cursors<W: Weigher>(&self, weigher: W) -> Result<Vec<Cursor<'a, W>>, IndexError> {
        let open = |list| Cursor::open(self.index, list, weigher, self.plan.range.clone());
        self.plan.lists.iter().map(open).collect()
    }

    /// Returns whether a document can become a hit: the filter lets it pass, and it is not a hit already.
    #[inline]
    pub fn passes(&self, document: u32) -> bool {
        let document = DocId(document);
        self.plan.filter.as_ref().is_none_or(|filter| filter.contains(document))
            && (self.earlier.documents.is_empty() || self.earlier.documents.binary_search(&document).is_err())
    }

    /// Returns the share of the static rank in a document's score.
    #[inline]
    pub fn static_part(&self, document: u32) -> u32 {
        match self.plan.score {
            ScoreModel::Bm25 | ScoreModel::Impact => 0,
            // The planner has checked that there are ranks; a document without one comes from a damaged list.
            ScoreModel::RankBm25 { alpha } => static_units(alpha, self.index.segment().rank(document).unwrap_or(0.0)),
        }
    }
}

/// Sums up the work of a stage's cursors.
fn work_of<W: Weigher>(cursors: &[Cursor<'_, W>], documents_scored: u64) -> Work {
    let mut work = Work { documents_scored, ..Work::default() };
    cursors.iter().for_each(|cursor| work += cursor.work());
    work
}
