//! The processor: one query a thread.

use super::{Executor, ExecutorError, map_in_threads};
use crate::algorithms::topk::TopK;
use crate::algorithms::{EarlierHits, Task, Workspace};
use crate::query::Algorithm;
use crate::query::answer::{Answer, Place, Step};
use crate::query::plan::{Operation, Plan, PlannedList, Stage};
use lanner_index::format::IndexError;
use lanner_index::open::Index;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A query that takes at least this long by itself is divided among the threads: starting them costs some tens of
/// microseconds.
const SPLIT_FROM: Duration = Duration::from_micros(400);
/// Parts of a plan start at multiples of so many documents: no algorithm's window is divided.
const PART_UNIT: u32 = 8192;

/// Answers plans on the threads of this machine.
pub struct Cpu {
    index: Arc<Index>,
    threads: usize,
    split_from: Duration,
    /// Workspaces not in use; a thread takes one and brings it back.
    workspaces: Mutex<Vec<Workspace>>,
}

impl Cpu {
    /// Answers plans for an index, a batch on up to `threads` threads at once.
    pub fn new(index: Arc<Index>, threads: usize) -> Cpu {
        Cpu { index, threads, split_from: SPLIT_FROM, workspaces: Mutex::new(Vec::new()) }
    }

    /// Divides a query that comes alone among the threads if it is estimated to take at least so long.
    pub fn split_from(self, duration: Duration) -> Cpu {
        Cpu { split_from: duration, ..self }
    }

    /// Runs the stages of a plan until one has k hits. A stage starts with the hits of the one before: an OR that
    /// follows an AND does not score its documents again.
    fn answer(&self, plan: &Plan, workspace: &mut Workspace) -> Result<Answer, IndexError> {
        let mut answer = Answer { exact: true, ..Answer::default() };
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
    fn name(&self) -> &str {
        "cpu"
    }

    /// A coarse figure that orders plans: no algorithm looks at more than every posting, and an AND at little more than
    /// the shortest list times the number of lists.
    fn estimate(&self, plan: &Plan) -> Option<Duration> {
        let nanoseconds = plan.stages.iter().map(|stage| nanoseconds(plan, stage)).sum::<f64>();
        Some(Duration::from_nanos(nanoseconds as u64))
    }

    /// One query a thread; a query alone by ranges of documents, where that is faster.
    fn run(&self, plans: &[Plan]) -> Result<Vec<Answer>, ExecutorError> {
        match plans {
            [plan] if self.is_split(plan) => Ok(vec![self.answer_in_parts(plan)?]),
            plans => self.answer_all(plans),
        }
    }
}

impl Cpu {
    fn answer_all(&self, plans: &[Plan]) -> Result<Vec<Answer>, ExecutorError> {
        let answers =
            map_in_threads(plans, self.threads, || self.borrow(), |borrowed, plan| self.answer_with(borrowed, plan));
        answers.into_iter().collect()
    }

    /// A workspace for a thread that answers several plans.
    pub(crate) fn borrow(&self) -> Borrowed<'_> {
        Borrowed::new(&self.workspaces)
    }

    /// Answers a plan on this thread.
    pub(crate) fn answer_with(&self, borrowed: &mut Borrowed<'_>, plan: &Plan) -> Result<Answer, ExecutorError> {
        Ok(self.answer(plan, borrowed.workspace.get_or_insert_default())?)
    }

    fn is_split(&self, plan: &Plan) -> bool {
        let is_long = self.estimate(plan).is_some_and(|estimate| estimate >= self.split_from);
        self.threads > 1 && is_long && plan.budget.is_none()
    }

    /// Divides the documents of a plan among the threads and merges the answers of the parts, stage after stage.
    fn answer_in_parts(&self, plan: &Plan) -> Result<Answer, ExecutorError> {
        let mut answer = Answer { exact: true, ..Answer::default() };
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

    /// As many parts as threads, of about as many documents each.
    fn parts(&self, plan: &Plan) -> Vec<Plan> {
        let length = (plan.range.len() as u32).div_ceil(self.threads as u32).next_multiple_of(PART_UNIT);
        let starts = plan.range.clone().step_by(length as usize);
        starts.map(|start| plan.over(start..start.saturating_add(length))).collect()
    }
}

/// Nanoseconds that a stage takes, coarsely: constants of one core with 2.8 GHz, which order plans.
fn nanoseconds(plan: &Plan, stage: &Stage) -> f64 {
    let sum = |lists: &mut dyn Iterator<Item = &PlannedList>| lists.map(|list| f64::from(list.postings)).sum::<f64>();
    let (lists, all) = (plan.lists.len() as f64, sum(&mut plan.lists.iter()));
    let shortest = plan.lists.iter().map(|list| list.postings).min().unwrap_or(0);
    // Ranges divide everything but the start.
    let share = plan.range.len() as f64 / f64::from(plan.documents.max(1));
    let work = match (stage.algorithm.on_cpu(), stage.operation) {
        (Algorithm::Conjunction, Operation::And) => all.min(f64::from(shortest) * lists) * 2.0,
        (Algorithm::Scatter, Operation::Or) => {
            let dense = plan.lists.iter().filter(|list| list.is_dense).count() as f64;
            let chunks = dense * f64::from(plan.documents) * 0.05;
            chunks + sum(&mut plan.lists.iter().filter(|list| !list.is_dense)) * 1.5
        }
        (Algorithm::ScoreAtATime, _) => plan.budget.map_or(all, |budget| all.min(budget as f64)) * 1.5,
        (Algorithm::Maxscore | Algorithm::BlockMaxMaxscore, Operation::Or) => all,
        _ => all * 4.0,
    };
    2000.0 + share * work
}

/// A workspace taken from the executor, brought back when it is dropped.
pub(crate) struct Borrowed<'a> {
    workspaces: &'a Mutex<Vec<Workspace>>,
    /// There is always one until then.
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
        let workspace = self.workspace.take();
        self.workspaces.lock().unwrap_or_else(PoisonError::into_inner).extend(workspace);
    }
}
