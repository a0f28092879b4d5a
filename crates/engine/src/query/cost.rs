//! The cost of plans: the only place that predicts time or work. Constants name the measurement behind them where there
//! is one; the factors of [`cpu_time`] are coarse.

use super::Algorithm;
use super::plan::{Operation, Plan, PlannedList, Stage};
use std::time::Duration;

/// A single query predicted to take at least this long is split among the threads of the CPU: starting them takes some
/// tens of microseconds.
pub const SPLIT_FROM: Duration = Duration::from_micros(400);

/// With at least this many lists MaxScore has little to skip (docs/algorithms.md, "What `auto` chooses").
pub const MANY_LISTS: usize = 16;
/// With k at least this large MaxScore has little to skip (docs/algorithms.md, "What `auto` chooses").
pub const LARGE_K: usize = 1000;

/// A device answers plans of up to this many launches sooner as single queries than as a batch: eight ORs take 161
/// instead of 213 us on an H200, sixteen the same either way (docs/decisions/0015-graphs-and-plans-apart.md).
pub const FEW_LAUNCHES: usize = 12;
/// With up to this many plans, the overhead of starting a batch on a device matters (the same decision).
pub const SMALL_BATCH: usize = 64;

/// Coarse costs on one core at 2.8 GHz. The runs behind them were not kept, so they order plans and are no calibrated
/// prediction.
mod nanoseconds {
    /// A stage, whatever its lists.
    pub const START: f64 = 2000.0;
    /// A posting of an AND.
    pub const CONJUNCTION: f64 = 2.0;
    /// A document of the collection, for each dense list of `scatter`.
    pub const DENSE_DOCUMENT: f64 = 0.05;
    /// A posting of a sparse list in `scatter`.
    pub const SCATTER: f64 = 1.5;
    /// A posting of score-at-a-time.
    pub const SCORE_AT_A_TIME: f64 = 1.5;
    /// A posting of MaxScore, skipped or not.
    pub const MAXSCORE: f64 = 1.0;
    /// A posting of any other algorithm.
    pub const EXHAUSTIVE: f64 = 4.0;
}

/// Predicts how long one core of the CPU takes for a plan. A coarse figure that orders plans and decides which are
/// split.
pub fn cpu_time(plan: &Plan) -> Duration {
    Duration::from_nanos(plan.stages.iter().map(|stage| cpu_nanoseconds(plan, stage)).sum::<f64>() as u64)
}

/// No algorithm reads more than every posting. An AND reads of each list little more than the postings of the shortest.
fn cpu_nanoseconds(plan: &Plan, stage: &Stage) -> f64 {
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

/// Predicts the work of a plan on a device, in postings decoded.
pub fn device_work(plan: &Plan) -> u64 {
    plan.stages.iter().map(|stage| device_stage_work(plan, stage.operation)).sum()
}

/// Predicts the work of one stage on a device, in postings decoded. It divides thread blocks among the plans of a batch.
pub fn device_stage_work(plan: &Plan, operation: Operation) -> u64 {
    let postings = |is_dense: bool| {
        plan.lists.iter().filter(move |list| list.is_dense == is_dense).map(|list| u64::from(list.postings))
    };
    let chunks = u64::from(plan.documents) / 64;
    let work = match (operation, postings(false).min()) {
        // Every block that can hold a document of the shortest list is decoded.
        (Operation::And, Some(shortest)) => postings(false).map(|postings| postings.min(128 * shortest)).sum(),
        // Some of the documents that match are looked up.
        (Operation::And, None) => chunks + postings(true).min().unwrap_or(0) / 2,
        (Operation::Or, _) => chunks + postings(false).sum::<u64>() + postings(true).sum::<u64>() / 8,
    };
    (work as f64 * share_of_documents(plan)) as u64 + 1
}

fn share_of_documents(plan: &Plan) -> f64 {
    plan.range.len() as f64 / f64::from(plan.documents.max(1))
}
