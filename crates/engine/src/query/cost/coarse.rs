//! Coarse predictions, by formulas: good enough to order plans and to divide them.

use crate::query::Algorithm;
use crate::query::plan::{Operation, Plan, PlannedList, Stage};
use lanner_index::codec::BLOCK;
use lanner_index::format::dense::CHUNK;
use std::time::Duration;

/// Costs on one core at 2.8 GHz. They order plans and decide which are split, so a factor of two matters little. The
/// measured figures are least-squares fits over 600 queries of Terabyte-2005 (the half for tuning) on the Wikipedia
/// passages with k = 10, of the times of `lanner search --trace --json --threads 1 --algorithm NAME`.
mod nanoseconds {
    /// A stage, whatever its lists. Measured: 600 for an AND, 3,800 for `scatter`.
    pub const START: f64 = 2000.0;
    /// A posting of an AND. Measured: 1.8.
    pub const CONJUNCTION: f64 = 2.0;
    /// A document of the collection, for each dense list of `scatter`. Measured: 0.036.
    pub const DENSE_DOCUMENT: f64 = 0.05;
    /// A posting of a sparse list in `scatter`. Measured: 2.0, with a relative fit 1.3.
    pub const SCATTER: f64 = 1.5;
    /// A posting of score-at-a-time. Measured: 0.6, with a relative fit 0.8; longer lists do not stay in the caches.
    pub const SCORE_AT_A_TIME: f64 = 1.5;
    /// A posting of MaxScore, skipped or not. Measured: 0.3 where bitmaps let it skip most postings.
    pub const MAXSCORE: f64 = 1.0;
    /// A posting of any other algorithm. Measured: 5.0 for `exhaustive`.
    pub const EXHAUSTIVE: f64 = 4.0;
}

/// Predicts how long one core of the CPU takes for a plan. A coarse figure that orders plans and decides which are
/// split.
pub fn cpu_time(plan: &Plan) -> Duration {
    Duration::from_nanos(plan.stages.iter().map(|stage| cpu_nanoseconds(plan, stage)).sum::<f64>() as u64)
}

/// No algorithm reads more than every posting. An AND reads of each list little more than the postings of the shortest.
pub(super) fn cpu_nanoseconds(plan: &Plan, stage: &Stage) -> f64 {
    let sum = |lists: &mut dyn Iterator<Item = &PlannedList>| lists.map(|list| f64::from(list.postings)).sum::<f64>();
    let (lists, all) = (plan.lists.len() as f64, sum(&mut plan.lists.iter()));
    let shortest = plan.lists.iter().map(|list| list.postings).min().unwrap_or(0);
    let work = match (stage.algorithm.on_cpu(), stage.operation) {
        (Algorithm::Conjunction, Operation::And) => all.min(f64::from(shortest) * lists) * nanoseconds::CONJUNCTION,
        (Algorithm::Scatter, Operation::Or) => {
            let dense = plan.lists.iter().filter(|list| list.is_dense).count() as f64;
            let chunks = dense * f64::from(plan.documents) * nanoseconds::DENSE_DOCUMENT;
            chunks + sum(&mut plan.lists.iter().filter(|list| !list.is_dense)) * nanoseconds::SCATTER
        }
        (Algorithm::ScoreAtATime, _) => {
            plan.budget.map_or(all, |budget| all.min(budget as f64)) * nanoseconds::SCORE_AT_A_TIME
        }
        (Algorithm::Maxscore | Algorithm::BlockMaxMaxscore, Operation::Or) => all * nanoseconds::MAXSCORE,
        _ => all * nanoseconds::EXHAUSTIVE,
    };
    // All but the start is proportional to the range of documents.
    nanoseconds::START + share_of_documents(plan) * work
}

/// An AND of bitmaps looks up half of the documents of the shortest list, and an OR half of those of its dense lists,
/// at the cost of a posting decoded. They decide only how thread blocks are divided among the queries of a batch.
/// Measured in decision 17.
const POSTINGS_PER_MATCH: u64 = 2;
const POSTINGS_PER_LOOKUP: u64 = 2;

/// Predicts the work of one stage on a device, in postings decoded. It divides thread blocks among the plans of a
/// batch.
pub fn device_stage_work(plan: &Plan, operation: Operation) -> u64 {
    let postings = |is_dense: bool| {
        plan.lists.iter().filter(move |list| list.is_dense == is_dense).map(|list| u64::from(list.postings))
    };
    let chunks = u64::from(plan.documents) / u64::from(CHUNK);
    let work = match (operation, postings(false).min()) {
        // Every block that can hold a document of the shortest list is decoded.
        (Operation::And, Some(shortest)) => postings(false).map(|postings| postings.min(BLOCK as u64 * shortest)).sum(),
        (Operation::And, None) => chunks + postings(true).min().unwrap_or(0) / POSTINGS_PER_MATCH,
        (Operation::Or, _) => chunks + postings(false).sum::<u64>() + postings(true).sum::<u64>() / POSTINGS_PER_LOOKUP,
    };
    (work as f64 * share_of_documents(plan)) as u64 + 1
}

pub(super) fn share_of_documents(plan: &Plan) -> f64 {
    plan.range.len() as f64 / f64::from(plan.documents.max(1))
}
