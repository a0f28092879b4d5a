//! The algorithms, one file each, and what they share: a task, a workspace, weighers and cursors.

pub mod accumulator_heap;
pub mod accumulators;
pub mod conjunction;
pub mod cursor;
pub mod exhaustive;
pub mod maxscore;
pub mod score_at_a_time;
pub mod sweep;
pub mod weigher;

use crate::answer::Work;
use crate::plan::{Operation, Plan, Stage};
use crate::query::Algorithm;
use crate::score::{ScoreModel, static_units};
use crate::topk::TopK;
use cursor::Cursor;
use lanner_index::DocId;
use lanner_index::format::IndexError;
use lanner_index::open::{Index, Stream};
use weigher::{Frequencies, Impacts, Weigher};

/// Memory that a thread keeps from query to query.
#[derive(Default)]
pub struct Workspace {
    /// Whether the stage that ran last looked at all it had to; a budget may have stopped it.
    pub is_exact: bool,
    /// The hits so far.
    pub top: TopK,
    /// Accumulators of a window of documents.
    accumulators: exhaustive::Accumulators,
    /// What score-at-a-time keeps.
    score_at_a_time: score_at_a_time::Memory,
}

/// One stage of a plan on an index: what an algorithm is given.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The stage of the plan that is to run.
    pub stage: &'a Stage,
    /// The index that the plan was made for.
    pub index: &'a Index,
}

impl<'a> Task<'a> {
    /// Runs the stage on this thread and leaves its hits in the workspace.
    pub fn run(&self, workspace: &mut Workspace) -> Result<Work, IndexError> {
        workspace.is_exact = true;
        workspace.top.reset(self.plan.k, self.plan.seed_of(self.stage));
        if self.plan.k == 0 || self.plan.range.is_empty() {
            return Ok(Work::default());
        }
        if self.stage.algorithm == Algorithm::ScoreAtATime {
            return score_at_a_time::cpu(self, workspace);
        }
        match self.plan.score.stream() {
            Stream::Frequency => self.run_with(Frequencies::new(self.plan, self.index), workspace),
            Stream::Impact => self.run_with(Impacts, workspace),
        }
    }

    fn run_with<W: Weigher>(&self, weigher: W, workspace: &mut Workspace) -> Result<Work, IndexError> {
        let cursors = self.cursors(weigher)?;
        Ok(match (self.stage.algorithm, self.stage.operation) {
            (Algorithm::Conjunction, Operation::And) => conjunction::cpu(self, cursors, &mut workspace.top),
            (Algorithm::Maxscore, Operation::Or) => maxscore::cpu(self, cursors, &mut workspace.top),
            _ => exhaustive::cpu(self, cursors, workspace),
        })
    }

    /// A cursor for each list, at its first posting in the plan's range.
    pub fn cursors<W: Weigher>(&self, weigher: W) -> Result<Vec<Cursor<'a, W>>, IndexError> {
        let open = |list| Cursor::open(self.index, list, weigher, self.plan.range.clone());
        self.plan.lists.iter().map(open).collect()
    }

    /// Whether the filter lets a document pass.
    #[inline]
    pub fn passes(&self, document: u32) -> bool {
        self.plan.filter.as_ref().is_none_or(|filter| filter.contains(DocId(document)))
    }

    /// What a document's static rank adds to its score.
    #[inline]
    pub fn static_part(&self, document: u32) -> u32 {
        match self.plan.score {
            ScoreModel::Bm25 | ScoreModel::Impact => 0,
            ScoreModel::RankBm25 { alpha } => static_units(alpha, self.index.segment().rank(document).unwrap_or(0.0)),
        }
    }
}

/// What the cursors of a stage did, together.
fn work_of<W: Weigher>(cursors: &[Cursor<'_, W>], documents_scored: u64) -> Work {
    let mut work = Work { documents_scored, ..Work::default() };
    cursors.iter().for_each(|cursor| work += cursor.work());
    work
}
