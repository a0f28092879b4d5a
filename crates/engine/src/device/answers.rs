//! What a device returned for a batch, and how the thread that asked makes answers of it.

use super::batch::Batch;
use super::kernels::{QueryRow, WorkRow};
use super::layout::Layout;
use crate::algorithms::topk::hit;
use crate::query::answer::{Answer, Scored, Step, Work};
use lanner_gpu::error::GpuError;
use lanner_index::codec::BLOCK;
use lanner_index::format::segment::{u32_at, u64_at};
use std::mem::offset_of;
use std::ops::Range;

/// The bytes that a device returned for a batch, with all that is needed to read them. The jobs of the batch share it,
/// and each waiting thread makes its own answers.
#[derive(Debug, Default)]
pub struct BatchAnswers {
    /// The stages of the plans.
    queries: Vec<AnswerRow>,
    /// `stages[plan]`: its stages, as positions in `queries`.
    stages: Vec<Range<usize>>,
    /// Counts of hits, work and keys.
    bytes: Vec<u8>,
    /// Where work and keys begin.
    work: usize,
    keys: usize,
    /// What ran, and for how long.
    pub steps: Vec<Step>,
    /// Bytes that were uploaded for the batch.
    pub bytes_uploaded: u64,
    /// Of a single job: the work and the trace of its earlier stages.
    pub before: Answer<Scored>,
}

/// What is known of the answer of a stage beforehand.
#[derive(Clone, Copy, Debug)]
struct AnswerRow {
    k: u32,
    /// The position of its first key.
    answer: u32,
    /// Blocks of its lists that can hold a document of the plan's range.
    blocks: u64,
}

impl BatchAnswers {
    /// Copies what a device returned for a batch.
    pub fn new(batch: &Batch, layout: &Layout, bytes: &[u8]) -> BatchAnswers {
        let row = |(query, &blocks): (&QueryRow, &u64)| AnswerRow { k: query.k, answer: query.answer, blocks };
        BatchAnswers {
            queries: batch.queries.iter().zip(&batch.blocks).map(row).collect(),
            stages: batch.stages.clone(),
            bytes: bytes[..layout.answers_bytes].to_vec(),
            work: layout.answers_work,
            keys: layout.answers_keys,
            ..BatchAnswers::default()
        }
    }

    /// Checks that a device returned no more hits than were asked for.
    pub fn check(batch: &Batch, bytes: &[u8]) -> Result<(), GpuError> {
        for stages in &batch.stages {
            let query = last_stage(stages, bytes, |query| batch.queries[query].k);
            let (found, k) = (count(bytes, query), batch.queries[query].k);
            if found > k {
                let reason = format!("{found} hits where {k} were asked for");
                return Err(GpuError::Failed { at: "an answer", reason });
            }
        }
        Ok(())
    }

    /// The answer of the job at a position.
    pub fn answer(&self, position: usize) -> Answer<Scored> {
        let query = self.last_stage(position);
        let mut answer = Answer { hits: self.hits(query), exact: true, ..self.before.clone() };
        answer.work += self.work_of(self.stages[position].start..query + 1);
        answer.trace.steps.extend_from_slice(&self.steps);
        answer
    }

    /// Whether the last stage of the job at a position has k hits.
    pub fn is_full(&self, position: usize) -> bool {
        let query = self.last_stage(position);
        count(&self.bytes, query) >= self.queries[query].k
    }

    fn last_stage(&self, position: usize) -> usize {
        last_stage(&self.stages[position], &self.bytes, |query| self.queries[query].k)
    }

    fn hits(&self, query: usize) -> Vec<Scored> {
        let first = self.keys + 8 * self.queries[query].answer as usize;
        let keys = self.bytes[first..first + 8 * count(&self.bytes, query) as usize].as_chunks().0;
        keys.iter().map(|key| hit(u64::from_le_bytes(*key))).collect()
    }

    /// The work done for the stages of a plan, with its share of what was uploaded.
    fn work_of(&self, stages: Range<usize>) -> Work {
        let bytes_uploaded = self.bytes_uploaded / self.stages.len() as u64;
        let mut work = Work { bytes_uploaded, ..Work::default() };
        for stage in stages {
            let row = &self.bytes[self.work + stage * size_of::<WorkRow>()..];
            let blocks_decoded = u64::from(u32_at(row, offset_of!(WorkRow, blocks)));
            let missing = u64_at(row, offset_of!(WorkRow, missing));
            work += Work {
                postings_decoded: (BLOCK as u64 * blocks_decoded).saturating_sub(missing),
                blocks_decoded,
                blocks_skipped: self.queries[stage].blocks.saturating_sub(blocks_decoded),
                documents_scored: u64::from(u32_at(row, offset_of!(WorkRow, documents))),
                bytes_uploaded: 0,
            };
        }
        work
    }
}

/// The stage whose hits are the answer: the first with k hits, else the last.
fn last_stage(stages: &Range<usize>, bytes: &[u8], k: impl Fn(usize) -> u32) -> usize {
    stages.clone().find(|&query| count(bytes, query) >= k(query)).unwrap_or(stages.end - 1)
}

/// The number of hits of a query of the batch.
fn count(bytes: &[u8], query: usize) -> u32 {
    u32_at(bytes, 4 * query)
}
