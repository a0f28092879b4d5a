//! The engine: owns the index and the workers, and decides who answers what.

use crate::device::submission::{Outcome, Submission, Why};
use crate::executors::{Counters, Cpu, Executor, GpuOptions, GpuWorker};
use crate::query::answer::{Answer, Scored};
use crate::query::plan::Plan;
use lanner_gpu::error::GpuError;
use lanner_index::format::IndexError;
use lanner_index::open::Index;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Plans that one thread submits together.
const SUBMITTED_TOGETHER: usize = 256;

/// Answers plans for one index, on a GPU if there is one. What the GPU does not support, or fails to answer, the CPU
/// answers.
pub struct Engine {
    index: Arc<Index>,
    cpu: Cpu,
    gpu: Option<GpuWorker>,
}

impl Engine {
    /// Answers on the calling thread alone.
    pub fn new(index: Arc<Index>) -> Engine {
        Engine { cpu: Cpu::new(Arc::clone(&index), 1), index, gpu: None }
    }

    /// Answers on a GPU, if it can.
    pub fn gpu(self, options: GpuOptions) -> Engine {
        Engine { gpu: Some(GpuWorker::start(Arc::clone(&self.index), options)), ..self }
    }

    /// Uses this many threads of the CPU for a batch.
    pub fn threads(self, threads: usize) -> Engine {
        Engine { cpu: Cpu::new(Arc::clone(&self.index), threads), ..self }
    }

    /// The index.
    pub fn index(&self) -> &Arc<Index> {
        &self.index
    }

    /// The CPU, for threads that keep a workspace from plan to plan.
    pub(crate) fn cpu(&self) -> &Cpu {
        &self.cpu
    }

    /// The GPU, if there is or may be one.
    pub(crate) fn worker(&self) -> Option<&GpuWorker> {
        self.gpu.as_ref()
    }

    /// Opens the GPU now instead of with the first plan.
    pub fn connect(&self) -> Result<(), GpuError> {
        self.gpu.as_ref().map_or(Ok(()), GpuWorker::connect)
    }

    /// What the GPU has done so far, if there is one.
    pub fn counters(&self) -> Option<&Counters> {
        self.gpu.as_ref().map(GpuWorker::counters)
    }

    /// Submits plans to the GPU as far as it supports them, and returns at once; [`Engine::finish`] has the answers.
    /// The rows of the plans are made here, on the calling thread.
    pub(crate) fn start(&self, gpu: &GpuWorker, plans: impl Iterator<Item = Plan>) -> Arc<Submission> {
        let submission = Submission::new(&self.index, plans, |plan| gpu.supports(plan));
        gpu.submit(&submission);
        submission
    }

    /// Waits for the GPU, and adds the answers to `answers`; `answer` answers the plans that the GPU did not.
    pub(crate) fn finish(
        &self,
        gpu: &GpuWorker,
        submission: &Submission,
        answers: &mut Vec<Answer<Scored>>,
        answer: impl FnOnce(&[Plan]) -> Result<Vec<Answer<Scored>>, IndexError>,
    ) -> Result<(), IndexError> {
        let (first, mut unsupported) = (answers.len(), 0);
        let mut left = Vec::new();
        for (position, outcome) in submission.wait().into_iter().enumerate() {
            unsupported += usize::from(matches!(outcome, Outcome::Unanswered(Why::Unsupported)));
            answers.push(outcome.answer().unwrap_or_else(|| {
                left.push(position);
                Answer::default()
            }));
        }
        let count = |counter: &AtomicU64, number: usize| _ = counter.fetch_add(number as u64, Ordering::Relaxed);
        count(&gpu.counters().answered, answers.len() - first - left.len());
        count(&gpu.counters().unsupported, unsupported);
        count(&gpu.counters().fallen_back, left.len() - unsupported);
        if !left.is_empty() {
            let plans: Vec<Plan> = left.iter().map(|&position| submission.plan(position).clone()).collect();
            let found = answer(&plans)?;
            assert_eq!(found.len(), left.len(), "the CPU answers what the GPU does not");
            left.into_iter().zip(found).for_each(|(position, answer)| answers[first + position] = answer);
        }
        Ok(())
    }
}

impl Executor for Engine {
    fn run(&self, plans: &[Plan]) -> Result<Vec<Answer<Scored>>, IndexError> {
        let Some(gpu) = &self.gpu else {
            return self.cpu.run(plans);
        };
        // The device answers the first plans while the rows of the next are made.
        let submissions: Vec<Arc<Submission>> =
            plans.chunks(SUBMITTED_TOGETHER).map(|plans| self.start(gpu, plans.iter().cloned())).collect();
        let mut answers = Vec::with_capacity(plans.len());
        for submission in submissions {
            self.finish(gpu, &submission, &mut answers, |left| self.cpu.run(left))?;
        }
        Ok(answers)
    }
}
