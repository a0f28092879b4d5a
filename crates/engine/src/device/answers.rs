//! What a device returned for a batch, and how the thread that asked makes answers of it.

use super::batch::Batch;
use super::kernels::WorkRow;
use super::layout::Layout;
use crate::algorithms::topk::hit;
use crate::query::answer::{Answer, Scored, Step, Work};
use lanner_gpu::error::GpuError;
use lanner_index::codec::BLOCK;
use lanner_index::format::segment::{u32_at, u64_at};
use std::collections::VecDeque;
use std::mem::offset_of;
use std::ops::Range;
use std::sync::Arc;

/// The most batches whose answers are kept: two in flight, and those that callers have not read yet.
const MOST_KEPT: usize = 16;
/// Longer answers, such as a thousand hits for each query, are not kept.
const MOST_KEPT_BYTES: usize = 1 << 20;

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

/// Answers of batches whose memory is used again once nobody reads them. Allocating a hundred kilobytes for each batch,
/// which another thread then frees, takes the device's thread a tenth of its time.
#[derive(Debug, Default)]
pub struct AnswerMemory {
    /// Oldest first.
    used: VecDeque<Arc<BatchAnswers>>,
}

impl AnswerMemory {
    /// Answers that nobody reads any more, emptied; new ones if all are in use.
    pub fn take(&mut self) -> BatchAnswers {
        let oldest = self.used.pop_front_if(|answers| Arc::strong_count(answers) == 1);
        let BatchAnswers { mut plans, mut keys, .. } = oldest.and_then(Arc::into_inner).unwrap_or_default();
        plans.clear();
        keys.clear();
        BatchAnswers { plans, keys, ..BatchAnswers::default() }
    }

    /// Keeps answers until nobody reads them. Of too many, the oldest are freed.
    pub fn keep(&mut self, answers: &Arc<BatchAnswers>) {
        if answers.keys.capacity() > MOST_KEPT_BYTES {
            return;
        }
        self.used.push_back(Arc::clone(answers));
        if self.used.len() > MOST_KEPT {
            self.used.pop_front();
        }
    }
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
    /// Uses the memory of earlier answers.
    pub fn filled(
        self,
        batch: &Batch,
        layout: &Layout,
        bytes: &[u8],
        bytes_uploaded: u64,
    ) -> Result<BatchAnswers, GpuError> {
        let mut answers = self;
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
        bytes_from_host: batch.bytes_from_host[stage],
    }
}

/// The number of hits of a query of the batch.
fn count(bytes: &[u8], query: usize) -> u32 {
    u32_at(bytes, 4 * query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_once_nobody_reads_the_answers() {
        let mut memory = AnswerMemory::default();
        let with_keys = |keys: usize| Arc::new(BatchAnswers { keys: vec![7; keys], ..BatchAnswers::default() });
        let read = with_keys(100);
        memory.keep(&read);
        assert_eq!(memory.take().keys.capacity(), 0, "somebody reads it");
        drop(read);
        let taken = memory.take();
        assert_eq!((taken.keys.len(), taken.keys.capacity()), (0, 100));
        assert_eq!(memory.take().keys.capacity(), 0, "it is taken");
        memory.keep(&with_keys(MOST_KEPT_BYTES + 1));
        assert!(memory.used.is_empty());
        (0..100).for_each(|_| memory.keep(&with_keys(1)));
        assert_eq!(memory.used.len(), MOST_KEPT);
    }
}
