//! The plans that a session has to answer, divided into batches. Pure: nothing here touches a device.

use super::upload;
use crate::query::answer::{Answer, Scored};
use crate::query::cost::{FEW_LAUNCHES, SMALL_BATCH};
use crate::query::plan::Plan;
use lanner_index::open::Column;
use std::ops::Range;

/// The most plans in a batch.
const LARGEST_BATCH: usize = 1024;

/// How a small batch is submitted to the device; large batches always use [`SmallBatches::TimedCommands`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SmallBatches {
    /// [`SmallBatches::SingleQueries`] for few plans, else [`SmallBatches::Graph`].
    #[default]
    Auto,
    /// Each plan as a single query, two at a time, one in each stream, if the lists are resident.
    SingleQueries,
    /// All commands together, which the driver runs as a CUDA graph.
    Graph,
    /// One batch, each command submitted separately.
    Commands,
    /// As [`SmallBatches::Commands`], with the time of each kernel recorded by the device.
    TimedCommands,
}

/// Plans, or one stage of a single plan, to be answered by one batch.
#[derive(Clone, Debug)]
pub struct Request {
    /// The plans, as positions among all plans of the call.
    pub plans: Vec<usize>,
    /// The stages of the plans to be run.
    pub stages: Range<usize>,
    /// Of a single plan: the work and the trace of its earlier stages, which found too few hits.
    pub before: Answer<Scored>,
}

/// The rules by which plans are divided into batches.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Whether lists are resident; if not, each batch uploads those of its plans.
    pub lists_are_resident: bool,
    pub small_batches: SmallBatches,
    /// The most bytes of lists that a batch uploads, unless a single plan needs more.
    pub upload_limit: usize,
}

/// Requests in the order in which they are to be started.
#[derive(Debug, Default)]
pub struct Queue {
    /// The next one is last.
    requests: Vec<Request>,
}

impl Queue {
    /// Divides plans into batches: one column of weights a batch, and no more plans or bytes than the rules allow.
    pub fn new(plans: &[Plan], rules: &Rules) -> Queue {
        let mut requests = Vec::new();
        for column in [Column::Impact, Column::Frequency] {
            let is_chosen = |plan: &Plan| plan.score.column() == column && runs_in_batches(plan);
            let numbers: Vec<usize> = (0..plans.len()).filter(|&number| is_chosen(&plans[number])).collect();
            // The OR of a single AND+OR runs only if its AND finds too few hits.
            let (size, stages) = match rules.answers_single_queries(plans, &numbers) {
                true => (1, 0..1),
                false => (LARGEST_BATCH, 0..usize::MAX),
            };
            for batch in numbers.chunks(size).flat_map(|numbers| rules.divide(plans, numbers)) {
                requests.push(Request { plans: batch.to_vec(), stages: stages.clone(), before: Answer::default() });
            }
        }
        requests.reverse();
        Queue { requests }
    }

    /// Takes the next request.
    pub fn pop(&mut self) -> Option<Request> {
        self.requests.pop()
    }

    /// Puts a request before all others.
    pub fn put_first(&mut self, request: impl IntoIterator<Item = Request>) {
        self.requests.extend(request);
    }

    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Puts the halves of a request back, before all others; a request for one plan cannot be halved: `false`.
    pub fn halve(&mut self, request: Request) -> bool {
        let (first, second) = request.plans.split_at(request.plans.len() / 2);
        if first.is_empty() {
            return false;
        }
        let half = |plans: &[usize]| Request { plans: plans.to_vec(), ..request.clone() };
        self.put_first([half(second), half(first)]);
        true
    }
}

impl Rules {
    /// Whether each plan is answered as a single query, a stage at a time.
    fn answers_single_queries(&self, plans: &[Plan], numbers: &[usize]) -> bool {
        let most_launches = match self.small_batches {
            SmallBatches::Auto => FEW_LAUNCHES,
            SmallBatches::SingleQueries => usize::MAX,
            SmallBatches::Graph | SmallBatches::Commands | SmallBatches::TimedCommands => 1,
        };
        let launches: usize = numbers.iter().map(|&number| plans[number].stages.len()).sum();
        numbers.len() <= SMALL_BATCH && launches <= most_launches && self.lists_are_resident
    }

    /// Divides plans so that no batch uploads too much.
    fn divide<'a>(&self, plans: &[Plan], numbers: &'a [usize]) -> Vec<&'a [usize]> {
        if self.lists_are_resident {
            return vec![numbers];
        }
        upload::divide(numbers, self.upload_limit, |number| plans[number].lists.iter().map(|list| list.span))
    }
}

/// Whether a plan can have hits at all.
pub fn needs_work(plan: &Plan) -> bool {
    plan.k > 0 && !plan.range.is_empty() && !plan.stages.is_empty()
}

/// Whether a plan is answered in batches; those for the papers' algorithms run step by step.
pub fn runs_in_batches(plan: &Plan) -> bool {
    needs_work(plan) && plan.stages.iter().all(|stage| !stage.algorithm.needs_device())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::plan::tests::plan_over;
    use crate::query::score::ScoreModel;

    fn plans(count: usize) -> Vec<Plan> {
        let plan = |number| match number % 2 {
            0 => Plan { score: ScoreModel::Impact, ..plan_over(0..10) },
            _ => plan_over(0..10),
        };
        (0..count).map(plan).collect()
    }

    fn batches(plans: &[Plan], rules: Rules) -> Vec<(Vec<usize>, Range<usize>)> {
        let mut queue = Queue::new(plans, &rules);
        std::iter::from_fn(|| queue.pop()).map(|request| (request.plans, request.stages)).collect()
    }

    const RESIDENT: Rules = Rules { lists_are_resident: true, small_batches: SmallBatches::Auto, upload_limit: 0 };

    #[test]
    fn a_batch_has_one_column_and_few_plans_are_single_queries() {
        assert_eq!(batches(&plans(3), RESIDENT), [(vec![0], 0..1), (vec![2], 0..1), (vec![1], 0..1)]);
        let together = Rules { small_batches: SmallBatches::Graph, ..RESIDENT };
        let all = 0..usize::MAX;
        assert_eq!(batches(&plans(3), together), [(vec![0, 2], all.clone()), (vec![1], all.clone())]);
        let uploading = Rules { lists_are_resident: false, ..RESIDENT };
        assert_eq!(batches(&plans(2), uploading), [(vec![0], all.clone()), (vec![1], all.clone())]);
        let sizes: Vec<usize> = batches(&plans(4096), RESIDENT).iter().map(|(plans, _)| plans.len()).collect();
        assert_eq!(sizes, [LARGEST_BATCH; 4]);
    }

    #[test]
    fn plans_without_work_are_in_no_batch() {
        let nothing = [Plan { k: 0, ..plan_over(0..10) }, plan_over(5..5), Plan { stages: vec![], ..plan_over(0..10) }];
        assert_eq!(batches(&nothing, RESIDENT), []);
    }

    #[test]
    fn halves_of_a_request_come_next_and_one_plan_cannot_be_halved() {
        let mut queue = Queue::new(&plans(64), &RESIDENT);
        let request = queue.pop().expect("a batch");
        let (all, first) = (request.plans.clone(), request.plans[..16].to_vec());
        assert!(queue.halve(request));
        let halves = [queue.pop(), queue.pop()].map(|half| half.expect("a half").plans);
        assert_eq!((halves[0].clone(), halves.concat()), (first, all));
        assert!(!queue.halve(Request { plans: vec![7], stages: 0..1, before: Answer::default() }));
    }
}
