//! The engine: owns the index and the workers, and decides who answers what.

use crate::device::queue::Job;
use crate::executors::{Counters, Cpu, Executor, GpuOptions, GpuWorker};
use crate::outcome::{Outcome, Outcomes, Reply};
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

    /// Whether there is a GPU, or may be one.
    pub fn has_gpu(&self) -> bool {
        self.gpu.is_some()
    }

    /// Opens the GPU now instead of with the first plan.
    pub fn connect(&self) -> Result<(), GpuError> {
        self.gpu.as_ref().map_or(Ok(()), GpuWorker::connect)
    }

    /// What the GPU has done so far, if there is one.
    pub fn counters(&self) -> Option<&Counters> {
        self.gpu.as_ref().map(GpuWorker::counters)
    }

    /// Submits plans to the GPU as far as it supports them, and returns at once; [`Engine::finish`] has the answers. The
    /// rows of the plans are made here, on the calling thread.
    pub(crate) fn start(&self, plans: Vec<Plan>) -> Started {
        let Some(gpu) = &self.gpu else {
            return Started { plans, submitted: Vec::new(), outcomes: Outcomes::expect(0).0 };
        };
        let submitted: Vec<usize> = (0..plans.len()).filter(|&number| gpu.supports(&plans[number])).collect();
        let (outcomes, replies) = Outcomes::expect(submitted.len());
        // A plan whose lists cannot be read is dropped, which ends it unanswered: the CPU reports what is damaged.
        let job = |(&number, reply): (&usize, Reply)| Job::new(&self.index, plans[number].clone(), reply).ok();
        gpu.submit(submitted.iter().zip(replies).filter_map(job).collect());
        Started { plans, submitted, outcomes }
    }

    /// Waits for the GPU. `answer` answers what it did not.
    pub(crate) fn finish(
        &self,
        started: &Started,
        answer: impl FnOnce(&[Plan]) -> Result<Vec<Answer<Scored>>, IndexError>,
    ) -> Result<Vec<Answer<Scored>>, IndexError> {
        let Started { plans, submitted, outcomes } = started;
        let mut answers: Vec<Option<Answer<Scored>>> = plans.iter().map(|_| None).collect();
        let mut answered = 0;
        for (&number, outcome) in submitted.iter().zip(outcomes.wait()) {
            if let Outcome::Answered(answer) = outcome {
                answers[number] = Some(answer);
                answered += 1;
            }
        }
        if let Some(gpu) = &self.gpu {
            let count = |counter: &AtomicU64, number: usize| _ = counter.fetch_add(number as u64, Ordering::Relaxed);
            count(&gpu.counters().answered, answered);
            count(&gpu.counters().unsupported, plans.len() - submitted.len());
            count(&gpu.counters().fallen_back, submitted.len() - answered);
        }
        let left: Vec<usize> = (0..plans.len()).filter(|&number| answers[number].is_none()).collect();
        if !left.is_empty() {
            let plans: Vec<Plan> = left.iter().map(|&number| plans[number].clone()).collect();
            left.into_iter().zip(answer(&plans)?).for_each(|(number, answer)| answers[number] = Some(answer));
        }
        Ok(answers.into_iter().map(|answer| answer.expect("the CPU answers what the GPU does not")).collect())
    }
}

/// Plans of which the GPU answers some.
pub(crate) struct Started {
    pub plans: Vec<Plan>,
    /// The plans that were submitted, as positions.
    submitted: Vec<usize>,
    outcomes: Arc<Outcomes>,
}

impl Executor for Engine {
    fn run(&self, plans: &[Plan]) -> Result<Vec<Answer<Scored>>, IndexError> {
        match self.gpu {
            Some(_) => {
                // The device answers the first plans while the rows of the next are made.
                let started: Vec<Started> =
                    plans.chunks(SUBMITTED_TOGETHER).map(|plans| self.start(plans.to_vec())).collect();
                let finish = |started: &Started| self.finish(started, |left| self.cpu.run(left));
                Ok(started.iter().map(finish).collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
            }
            None => self.cpu.run(plans),
        }
    }
}
