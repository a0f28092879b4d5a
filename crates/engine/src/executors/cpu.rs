//! The CPU: one query on each thread, or one query split among all threads.

use super::{Executor, map_in_threads};
use crate::algorithms::topk::TopK;
use crate::algorithms::{EarlierHits, L1_WINDOW, Task, Workspace};
use crate::query::answer::{Answer, Place, Scored, Step};
use crate::query::cost;
use crate::query::plan::{Plan, Stage};
use lanner_index::format::IndexError;
use lanner_index::open::Index;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Parts of a plan start at multiples of this many documents, so that no window of an algorithm is split.
const PART_UNIT: u32 = L1_WINDOW as u32;

/// Answers plans on the threads of this machine.
pub struct Cpu {
    index: Arc<Index>,
    threads: usize,
    split_from: Duration,
    /// Workspaces that no thread is using.
    workspaces: Mutex<Vec<Workspace>>,
}

impl Cpu {
    /// Answers plans for an index, a batch on up to `threads` threads.
    pub fn new(index: Arc<Index>, threads: usize) -> Cpu {
        Cpu { index, threads, split_from: cost::SPLIT_FROM, workspaces: Mutex::new(Vec::new()) }
    }

    /// Splits a single query among the threads if it is predicted to take at least this long.
    pub fn split_from(self, duration: Duration) -> Cpu {
        Cpu { split_from: duration, ..self }
    }

    /// Runs the stages of a plan until one has k hits. A stage starts with the hits of the stage before it: an OR that
    /// follows an AND does not score the AND's documents again.
    fn answer(&self, plan: &Plan, workspace: &mut Workspace) -> Result<Answer<Scored>, IndexError> {
        let mut answer = Answer::default();
        for stage in plan.stages.iter().map(Stage::on_cpu) {
            let start = Instant::now();
            let earlier = EarlierHits::new(std::mem::take(&mut answer.hits));
            answer.work += Task { plan, stage: &stage, index: &self.index, earlier: &earlier }.run(workspace)?;
            answer.hits = workspace.top.take();
            answer.exact = workspace.is_exact;
            let name = stage.algorithm.name();
            answer.trace.steps.push(Step { name, place: Place::Cpu, duration: start.elapsed() });
            if answer.hits.len() >= plan.k {
                break;
            }
        }
        Ok(answer)
    }
}

impl Executor for Cpu {
    /// One query on each thread; a single query is split by ranges of documents if that is faster.
    fn run(&self, plans: &[Plan]) -> Result<Vec<Answer<Scored>>, IndexError> {
        match plans {
            [plan] if self.is_split(plan) => Ok(vec![self.answer_in_parts(plan)?]),
            plans => self.answer_all(plans),
        }
    }
}

impl Cpu {
    fn answer_all(&self, plans: &[Plan]) -> Result<Vec<Answer<Scored>>, IndexError> {
        let answers =
            map_in_threads(plans, self.threads, || self.borrow(), |borrowed, plan| self.answer_with(borrowed, plan));
        answers.into_iter().collect()
    }

    /// A workspace for a thread that answers several plans.
    pub(crate) fn borrow(&self) -> Borrowed<'_> {
        Borrowed::new(&self.workspaces)
    }

    /// Answers a plan on this thread.
    pub(crate) fn answer_with(&self, borrowed: &mut Borrowed<'_>, plan: &Plan) -> Result<Answer<Scored>, IndexError> {
        self.answer(plan, borrowed.workspace.as_mut().expect("there until it is returned"))
    }

    fn is_split(&self, plan: &Plan) -> bool {
        self.threads > 1 && plan.budget.is_none() && cost::cpu_time(plan) >= self.split_from
    }

    /// Splits the documents of a plan among the threads and merges the answers of the parts, stage by stage.
    fn answer_in_parts(&self, plan: &Plan) -> Result<Answer<Scored>, IndexError> {
        let mut answer = Answer::default();
        for staged in plan.staged() {
            let start = Instant::now();
            let answers = self.answer_all(&self.parts(&staged))?;
            answers.iter().for_each(|part| answer.work += part.work);
            answer.hits = TopK::merge(plan.k, answers.iter().map(|part| &part.hits));
            let name = staged.stages[0].on_cpu().algorithm.name();
            answer.trace.steps.push(Step { name, place: Place::Cpu, duration: start.elapsed() });
            if answer.hits.len() >= plan.k {
                break;
            }
        }
        Ok(answer)
    }

    /// One part for each thread, of about the same number of documents.
    fn parts(&self, plan: &Plan) -> Vec<Plan> {
        let length = (plan.range.len() as u32).div_ceil(self.threads as u32).next_multiple_of(PART_UNIT);
        let starts = plan.range.clone().step_by(length as usize);
        starts.map(|start| plan.over(start..start.saturating_add(length))).collect()
    }
}

/// A workspace taken from the executor; dropping it returns the workspace.
pub(crate) struct Borrowed<'a> {
    workspaces: &'a Mutex<Vec<Workspace>>,
    /// `None` only while it is being returned.
    workspace: Option<Workspace>,
}

impl<'a> Borrowed<'a> {
    fn new(workspaces: &'a Mutex<Vec<Workspace>>) -> Borrowed<'a> {
        let kept = workspaces.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Borrowed { workspaces, workspace: Some(kept.unwrap_or_default()) }
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        self.workspaces.lock().unwrap_or_else(PoisonError::into_inner).extend(self.workspace.take());
    }
}
