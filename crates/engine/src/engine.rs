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

/// Plans that one thread submits together: few enough that the device starts early, and many enough for a batch that
/// uses all of an H200.
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
        let submission = self.prepare(gpu, plans);
        gpu.submit(&submission);
        submission
    }

    fn prepare(&self, gpu: &GpuWorker, plans: impl Iterator<Item = Plan>) -> Arc<Submission> {
        Submission::new(&self.index, plans, |plan| gpu.supports(plan))
    }

    /// Waits for the GPU. `answers[i]` belongs to plan `i` of the submission; those that the GPU did not answer are
    /// missing.
    pub(crate) fn finish(&self, gpu: &GpuWorker, submission: &Submission) -> Vec<Option<Answer<Scored>>> {
        let (mut unsupported, mut fallen_back) = (0, 0);
        let mut answer = |outcome: Outcome| {
            match &outcome {
                Outcome::Unanswered(Why::Unsupported) => unsupported += 1,
                Outcome::Unanswered(_) => fallen_back += 1,
                Outcome::Answered(_) | Outcome::InBatch(..) => {}
            }
            outcome.answer()
        };
        let answers: Vec<Option<Answer<Scored>>> = submission.wait().into_iter().map(&mut answer).collect();
        let count = |counter: &AtomicU64, number: usize| _ = counter.fetch_add(number as u64, Ordering::Relaxed);
        count(&gpu.counters().answered, answers.len() - unsupported - fallen_back);
        count(&gpu.counters().unsupported, unsupported);
        count(&gpu.counters().fallen_back, fallen_back);
        answers
    }

    /// Answers on the CPU the plans whose answers are missing; `hits` makes the hits of these.
    pub(crate) fn answer_missing<'a, H>(
        &self,
        answers: Vec<Option<Answer<H>>>,
        plan: impl Fn(usize) -> &'a Plan,
        hits: impl Fn(Answer<Scored>, &Plan) -> Answer<H>,
    ) -> Result<Vec<Answer<H>>, IndexError> {
        let missing = (0..answers.len()).filter(|&number| answers[number].is_none());
        let plans: Vec<Plan> = missing.map(|number| plan(number).clone()).collect();
        let found = if plans.is_empty() { Vec::new() } else { self.cpu.run(&plans)? };
        let mut found = found.into_iter().zip(&plans).map(|(answer, plan)| hits(answer, plan));
        let answer = |answer: Option<_>| answer.unwrap_or_else(|| found.next().expect("the CPU answers every plan"));
        Ok(answers.into_iter().map(answer).collect())
    }
}

impl Executor for Engine {
    fn run(&self, plans: &[Plan]) -> Result<Vec<Answer<Scored>>, IndexError> {
        let Some(gpu) = &self.gpu else {
            return self.cpu.run(plans);
        };
        let submissions = plans.chunks(SUBMITTED_TOGETHER).map(|plans| self.prepare(gpu, plans.iter().cloned()));
        let submissions = gpu.drive(submissions);
        let mut answers = Vec::with_capacity(plans.len());
        submissions.iter().for_each(|submission| answers.extend(self.finish(gpu, submission)));
        self.answer_missing(answers, |number| &plans[number], |answer, _| answer)
    }
}
