//! The processor: one query a thread.

use super::{Executor, ExecutorError, map_in_threads};
use crate::algorithms::{Known, Task, Workspace};
use crate::answer::{Answer, Place, Step};
use crate::plan::{Plan, Stage};
use crate::query::Algorithm;
use lanner_index::format::IndexError;
use lanner_index::open::Index;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Nanoseconds for decoding, weighing and adding one posting: an order of magnitude, until machines are calibrated.
const NANOSECONDS_A_POSTING: u64 = 4;

/// Answers plans on the threads of this machine.
pub struct Cpu {
    index: Arc<Index>,
    threads: usize,
    /// Workspaces not in use; a thread takes one and brings it back.
    workspaces: Mutex<Vec<Workspace>>,
}

impl Cpu {
    /// Answers plans for an index, a batch on up to `threads` threads at once.
    pub fn new(index: Arc<Index>, threads: usize) -> Cpu {
        Cpu { index, threads, workspaces: Mutex::new(Vec::new()) }
    }

    /// Runs the stages of a plan until one has k hits. A stage starts with the hits of the one before: an OR that
    /// follows an AND does not score its documents again.
    fn answer(&self, plan: &Plan, workspace: &mut Workspace) -> Result<Answer, IndexError> {
        let mut answer = Answer { exact: true, ..Answer::default() };
        for stage in &plan.stages {
            let start = Instant::now();
            let known = Known::new(std::mem::take(&mut answer.hits));
            answer.work += Task { plan, stage, index: &self.index, known: &known }.run(workspace)?;
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
        let postings = plan.stages.iter().map(|stage| postings_of(plan, stage)).sum::<u64>();
        Some(Duration::from_nanos(postings * NANOSECONDS_A_POSTING))
    }

    fn run(&self, plans: &[Plan]) -> Result<Vec<Answer>, ExecutorError> {
        let answers = map_in_threads(
            plans,
            self.threads,
            || Borrowed::new(&self.workspaces),
            |borrowed, plan| self.answer(plan, &mut borrowed.workspace),
        );
        let answers: Result<Vec<Answer>, IndexError> = answers.into_iter().collect();
        Ok(answers?)
    }
}

/// The most postings that a stage looks at, or about that.
fn postings_of(plan: &Plan, stage: &Stage) -> u64 {
    let postings = plan.lists.iter().map(|list| u64::from(list.postings));
    let all: u64 = postings.clone().sum();
    match stage.algorithm {
        Algorithm::Conjunction => all.min(postings.min().unwrap_or(0) * plan.lists.len() as u64),
        Algorithm::ScoreAtATime => all.min(plan.budget.unwrap_or(all)),
        _ => all,
    }
}

/// A workspace taken from the executor, brought back when it is dropped.
struct Borrowed<'a> {
    workspaces: &'a Mutex<Vec<Workspace>>,
    workspace: Workspace,
}

impl<'a> Borrowed<'a> {
    fn new(workspaces: &'a Mutex<Vec<Workspace>>) -> Borrowed<'a> {
        let kept = workspaces.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Borrowed { workspaces, workspace: kept.unwrap_or_default() }
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        let workspace = std::mem::take(&mut self.workspace);
        self.workspaces.lock().unwrap_or_else(PoisonError::into_inner).push(workspace);
    }
}
