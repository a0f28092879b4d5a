//! What a device returned for a batch, and how the thread that asked makes answers of it.

use super::batch::Batch;
use super::kernels::WorkRow;
use super::layout::Layout;
use crate::algorithms::topk::hit;
use crate::query::answer::{Answer, Scored, Step, Work};
use lanner_gpu::error::GpuError;
use lanner_index::codec::BLOCK;
use lanner_index::format::segment::{u32_at, u64_at};
use std::mem::offset_of;
use std::ops::Range;

/// What a device returned for a batch. The jobs of the batch share it, and each waiting thread makes its own answers.
#[derive(Debug, Default)]
pub struct BatchAnswers {
    plans: Vec<PlanAnswer>,
    /// The keys of all hits.
    keys: Vec<u8>,
    /// What ran, and for how long.
    pub steps: Vec<Step>,
    /// Of a single job: the work and the trace of its earlier stages.
    pub before: Answer<Scored>,
}

/// The answer to a plan.
#[derive(Debug)]
struct PlanAnswer {
    /// Where its keys are, in bytes.
    keys: Range<usize>,
    /// Whether it has k hits.
    is_full: bool,
    work: Work,
}

impl BatchAnswers {
    /// Takes over what a device returned for a batch, for which this many bytes were uploaded. It is an error if there
    /// are more hits than were asked for.
    pub fn new(batch: &Batch, layout: &Layout, bytes: &[u8], bytes_uploaded: u64) -> Result<BatchAnswers, GpuError> {
        let mut answers = BatchAnswers::default();
        answers.plans.reserve_exact(batch.stages.len());
        let share = Work { bytes_uploaded: bytes_uploaded / batch.stages.len() as u64, ..Work::default() };
        for stages in &batch.stages {
            // The first stage with k hits counts, else the last.
            let is_full = |&query: &usize| count(bytes, query) >= batch.queries[query].k;
            let query = stages.clone().find(is_full).unwrap_or(stages.end - 1);
            let (found, k) = (count(bytes, query), batch.queries[query].k);
            if found > k {
                let reason = format!("{found} hits where {k} were asked for");
                return Err(GpuError::Failed { at: "an answer", reason });
            }
            let first = layout.answers_keys + 8 * batch.queries[query].answer as usize;
            let start = answers.keys.len();
            answers.keys.extend_from_slice(&bytes[first..first + 8 * found as usize]);
            let mut work = share;
            (stages.start..query + 1).for_each(|stage| work += work_of(batch, layout, bytes, stage));
            answers.plans.push(PlanAnswer { keys: start..answers.keys.len(), is_full: found == k, work });
        }
        Ok(answers)
    }

    /// The answer of the job at a position.
    pub fn answer(&self, position: usize) -> Answer<Scored> {
        let PlanAnswer { keys, work, .. } = &self.plans[position];
        let keys = self.keys[keys.clone()].as_chunks().0;
        let hits = keys.iter().map(|key| hit(u64::from_le_bytes(*key))).collect();
        let mut answer = Answer { hits, exact: true, ..self.before.clone() };
        answer.work += *work;
        answer.trace.steps.extend_from_slice(&self.steps);
        answer
    }

    /// Whether the job at a position has k hits.
    pub fn is_full(&self, position: usize) -> bool {
        self.plans[position].is_full
    }
}

/// The work done for a stage.
fn work_of(batch: &Batch, layout: &Layout, bytes: &[u8], stage: usize) -> Work {
    let row = &bytes[layout.answers_work + stage * size_of::<WorkRow>()..];
    let blocks_decoded = u64::from(u32_at(row, offset_of!(WorkRow, blocks)));
    let missing = u64_at(row, offset_of!(WorkRow, missing));
    Work {
        postings_decoded: (BLOCK as u64 * blocks_decoded).saturating_sub(missing),
        blocks_decoded,
        blocks_skipped: batch.blocks[stage].saturating_sub(blocks_decoded),
        documents_scored: u64::from(u32_at(row, offset_of!(WorkRow, documents))),
        bytes_uploaded: 0,
    }
}

/// The number of hits of a query of the batch.
fn count(bytes: &[u8], query: usize) -> u32 {
    u32_at(bytes, 4 * query)
}
