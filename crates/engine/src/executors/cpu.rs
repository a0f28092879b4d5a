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

/// The predicted time of a part of a plan with a deadline, which is looked at between parts.
const PART: Duration = Duration::from_millis(1);

/// Answers plans on the threads of this machine.
pub struct Cpu {
    index: Arc<Index>,
    threads: usize,
    split_from: Duration,
    /// How long a part may take between two looks at a deadline.
    part: Duration,
    /// Workspaces that no thread is using.
    workspaces: Mutex<Vec<Workspace>>,
}

impl Cpu {
    /// Answers plans for an index, a batch on up to `threads` threads.
    pub fn new(index: Arc<Index>, threads: usize) -> Cpu {
        Cpu { index, threads, split_from: cost::SPLIT_FROM, part: PART, workspaces: Mutex::new(Vec::new()) }
    }

    /// Splits a single query among the threads if it is predicted to take at least this long.
    pub fn split_from(self, duration: Duration) -> Cpu {
        Cpu { split_from: duration, ..self }
    }

    /// Runs the stages of a plan until one has k hits. A stage starts with the hits of the stage before it: an OR that
    /// follows an AND does not score the AND's documents again.
    ///
    /// `hit` makes the hits of the answer. They are made once, because a second vector shows in the time of a short
    /// AND.
    pub(crate) fn answer<H>(
        &self,
        plan: &Plan,
        workspace: &mut Workspace,
        hit: impl Fn(Scored) -> H,
    ) -> Result<Answer<H>, IndexError> {
        if let Some(deadline) = plan.deadline {
            return Ok(self.answer_until(plan, deadline, workspace)?.map(hit));
        }
        let mut answer = Answer::default();
        let mut earlier = EarlierHits::default();
        // One more for the step that planned the query.
        answer.trace.steps.reserve_exact(1 + plan.stages.len());
        for (number, stage) in plan.stages.iter().map(Stage::on_cpu).enumerate() {
            let start = Instant::now();
            answer.work += Task { plan, stage: &stage, index: &self.index, earlier: &earlier }.run(workspace)?;
            answer.exact = workspace.is_exact;
            let is_last = number + 1 == plan.stages.len() || workspace.top.len() >= plan.k;
            if is_last {
                answer.hits = workspace.top.take(&hit);
            } else {
                earlier = EarlierHits::new(workspace.top.take(|hit| hit));
            }
            let name = stage.algorithm.name();
            answer.trace.steps.push(Step { name, place: Place::Cpu, started: start, duration: start.elapsed() });
            if is_last {
                break;
            }
        }
        Ok(answer)
    }

    /// Answers a plan in parts of about [`PART`], and stops at the deadline with the best hits so far. The k-th
    /// score of a part is the floor of the next.
    fn answer_until(
        &self,
        plan: &Plan,
        deadline: Instant,
        workspace: &mut Workspace,
    ) -> Result<Answer<Scored>, IndexError> {
        let mut answer: Answer<Scored> = Answer::default();
        for staged in plan.staged() {
            let (start, stage) = (Instant::now(), staged.stages[0].on_cpu());
            let before = std::mem::take(&mut answer.hits);
            let mut searched = staged.range.start;
            for mut part in self.parts_within(&staged) {
                if Instant::now() >= deadline {
                    break;
                }
                part.floor =
                    answer.hits.get(plan.k.wrapping_sub(1)).map_or(plan.floor, |hit| hit.units.saturating_add(1));
                let earlier = &EarlierHits::default();
                answer.work += Task { plan: &part, stage: &stage, index: &self.index, earlier }.run(workspace)?;
                answer.exact = workspace.is_exact;
                answer.hits = TopK::merge(plan.k, [&answer.hits, &workspace.top.take(|hit| hit)]);
                searched = part.range.end;
            }
            let name = stage.algorithm.name();
            answer.trace.steps.push(Step { name, place: Place::Cpu, started: start, duration: start.elapsed() });
            if searched < staged.range.end {
                let coverage = (searched - staged.range.start) as f32 / staged.range.len() as f32;
                answer.coverage = coverage.min(1.0 - f32::EPSILON);
                answer.exact = false;
                // The hits of the stage before, as far as this stage has not come to their documents.
                let before: Vec<Scored> = before.into_iter().filter(|hit| hit.document.0 >= searched).collect();
                answer.hits = TopK::merge(plan.k, [&answer.hits, &before]);
            }
            if searched < staged.range.end || answer.hits.len() >= plan.k {
                break;
            }
        }
        Ok(answer)
    }

    /// Divides a plan into parts that are predicted to take no longer than `self.part`. A budget is for a whole plan.
    fn parts_within(&self, plan: &Plan) -> impl Iterator<Item = Plan> {
        let count = match plan.budget {
            Some(_) => 1,
            None => cost::cpu_time(plan).as_nanos().div_ceil(self.part.as_nanos()).clamp(1, 1 << 16) as u32,
        };
        parts(plan, count)
    }

    /// Answers a plan on this thread.
    pub(crate) fn answer_one<H>(&self, plan: &Plan, hit: impl Fn(Scored) -> H) -> Result<Answer<H>, IndexError> {
        self.answer_with(&mut self.borrow(), plan, hit)
    }
}

impl Executor for Cpu {
    /// One query on each thread; a single query is split by ranges of documents if that is faster.
    fn run(&self, plans: &[Plan]) -> Result<Vec<Answer<Scored>>, IndexError> {
        match plans {
            [plan] if self.is_split(plan) => Ok(vec![self.answer_in_parts(plan, |parts| self.answer_all(&parts))?]),
            plans => self.answer_all(plans),
        }
    }
}

impl Cpu {
    fn answer_all(&self, plans: &[Plan]) -> Result<Vec<Answer<Scored>>, IndexError> {
        let answers = map_in_threads(
            plans,
            self.threads,
            || self.borrow(),
            |borrowed, plan| self.answer_with(borrowed, plan, |hit| hit),
        );
        answers.into_iter().collect()
    }

    /// A workspace for a thread that answers several plans.
    pub(crate) fn borrow(&self) -> Borrowed<'_> {
        Borrowed::new(&self.workspaces)
    }

    /// Answers a plan on this thread.
    pub(crate) fn answer_with<H>(
        &self,
        borrowed: &mut Borrowed<'_>,
        plan: &Plan,
        hit: impl Fn(Scored) -> H,
    ) -> Result<Answer<H>, IndexError> {
        self.answer(plan, borrowed.workspace.as_mut().expect("there until it is returned"), hit)
    }

    /// Whether a plan is answered sooner in parts, on several threads.
    pub(crate) fn is_split(&self, plan: &Plan) -> bool {
        self.threads > 1 && plan.budget.is_none() && plan.deadline.is_none() && cost::cpu_time(plan) >= self.split_from
    }

    /// Splits the documents of a plan into a part for each thread, and merges the answers of the parts, stage by stage.
    /// `answer_all` answers the parts.
    pub(crate) fn answer_in_parts(
        &self,
        plan: &Plan,
        answer_all: impl Fn(Vec<Plan>) -> Result<Vec<Answer<Scored>>, IndexError>,
    ) -> Result<Answer<Scored>, IndexError> {
        let mut answer = Answer::default();
        for staged in plan.staged() {
            let start = Instant::now();
            let answers = answer_all(parts(&staged, self.threads as u32).collect())?;
            answers.iter().for_each(|part| answer.work += part.work);
            answer.hits = TopK::merge(plan.k, answers.iter().map(|part| &part.hits));
            let name = staged.stages[0].on_cpu().algorithm.name();
            answer.trace.steps.push(Step { name, place: Place::Cpu, started: start, duration: start.elapsed() });
            if answer.hits.len() >= plan.k {
                break;
            }
        }
        Ok(answer)
    }
}

/// Up to `count` parts of about the same number of documents.
fn parts(plan: &Plan, count: u32) -> impl Iterator<Item = Plan> {
    let length = (plan.range.len() as u32).div_ceil(count).max(1).next_multiple_of(PART_UNIT);
    let starts = plan.range.clone().step_by(length as usize);
    starts.map(move |start| plan.over(start..start.saturating_add(length)))
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
        // After a panic, accumulators may not be zero.
        let workspace = self.workspace.take().filter(|_| !std::thread::panicking());
        self.workspaces.lock().unwrap_or_else(PoisonError::into_inner).extend(workspace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::planner::Planner;
    use crate::query::score::ScoreModel;
    use crate::query::{Mode, Query};
    use lanner_index::build::{BuildOptions, Quiet, build};
    use lanner_index::corpus::{Corpus, CorpusOptions};

    /// Ties are many, and the best documents are not the first ones.
    #[test]
    fn parts_until_a_deadline_give_the_answer_of_the_whole() {
        let folder = tempfile::tempdir().unwrap();
        let text = |number: u32| {
            let word = |(word, step): (&str, u32)| match number % step {
                0 => format!("{word} ").repeat(1 + (number / 9000) as usize),
                _ => String::new(),
            };
            [("falcon", 3), ("heron", 50), ("reed", 7001)].map(word).concat()
        };
        let documents: Vec<_> = (0..40_000).map(|number| (number.to_string(), String::new(), text(number))).collect();
        let corpus = Corpus::from_documents(documents, CorpusOptions::default()).unwrap();
        build(folder.path(), corpus, &BuildOptions { impacts: true, ..BuildOptions::default() }, &Quiet).unwrap();
        let index = Arc::new(Index::open(folder.path()).unwrap());
        let whole = Cpu::new(Arc::clone(&index), 1);
        let in_parts = Cpu { part: Duration::from_nanos(100), ..Cpu::new(Arc::clone(&index), 1) };
        let deadline = Some(Instant::now() + Duration::from_secs(3600));
        let mut several = 0;
        for number in 0..72 {
            let text = ["falcon", "heron falcon", "falcon reed heron", "reed heron"][number % 4];
            let mode = [Mode::And, Mode::Or, Mode::AndOr][number / 4 % 3];
            let score = [ScoreModel::Bm25, ScoreModel::Impact][number / 12 % 2];
            let query = Query::new(text).mode(mode).score(score).k([1, 10, 1000][number / 24]);
            let plan = Planner::new(&index).plan(&query).unwrap();
            several += usize::from(in_parts.parts_within(&plan).count() > 1);
            let expected = whole.answer_one(&plan, |hit| hit).unwrap();
            let found = in_parts.answer_one(&Plan { deadline, ..plan }, |hit| hit).unwrap();
            assert_eq!(found.hits, expected.hits, "{query:?}");
            assert!(found.exact && found.coverage == 1.0);
        }
        assert_eq!(several, 72, "every plan has several parts");
    }
}
