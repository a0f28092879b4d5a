//! The jobs that wait for a device, and the batches that they become. Pure: nothing here touches a device.
//!
//! A batch is made when a slot is free, from what has arrived until then. So batches grow with the load, and no job
//! waits for others while the device is idle.

use super::submission::{Job, Unanswered};
use super::upload;
use crate::query::answer::{Answer, Scored};
use crate::query::cost::{FEW_LAUNCHES, SMALL_BATCH};
use crate::query::document_set::DocumentSet;
use crate::query::plan::Plan;
use lanner_index::open::{Column, ListSpan};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// The most plans in a batch (decision 17).
pub const LARGEST_BATCH: usize = 1024;
/// The longest predicted time of a batch of more than [`SMALL_BATCH`] plans. Longer batches answer no more queries a
/// second, and let those that come next wait (decision 17: 1,024 ORs of 3.4 us each).
const LONGEST_BATCH: Duration = Duration::from_micros(3500);

/// How a small batch is submitted to the device; large batches always use [`SmallBatches::TimedCommands`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SmallBatches {
    /// [`SmallBatches::SingleQueries`] for few plans, else [`SmallBatches::Graph`].
    #[default]
    Auto,
    /// Each plan as a single query, two at a time, one in each stream, if no list has to be uploaded.
    SingleQueries,
    /// All commands together, which the driver runs as a CUDA graph.
    Graph,
    /// One batch, each command submitted separately.
    Commands,
    /// As [`SmallBatches::Commands`], with the time of each kernel recorded by the device.
    TimedCommands,
}

/// Jobs, or one stage of a single job, to be answered by one batch.
#[derive(Debug)]
pub struct Request {
    /// The jobs; all plans read the same column.
    pub jobs: Vec<Job>,
    /// The stages of the plans to be run.
    pub stages: Range<usize>,
    /// Of a single job: the work and the trace of its earlier stages, which found too few hits.
    pub before: Answer<Scored>,
}

/// The rules by which jobs become batches.
#[derive(Clone, Copy)]
pub struct Rules<'a> {
    /// Which lists batches upload; `None` if none.
    pub uploads: Option<&'a dyn Fn(ListSpan) -> bool>,
    pub small_batches: SmallBatches,
    /// The most bytes of lists that a batch uploads, unless a single plan needs more.
    pub upload_limit: usize,
    /// The most filters of a batch.
    pub most_filters: usize,
}

/// Jobs in the order of their arrival, by column, and requests that come before them.
#[derive(Debug, Default)]
pub struct Queue {
    /// Further stages of single queries, and halves of batches that did not fit. The next one is last.
    first: Vec<Request>,
    /// Jobs whose plans read frequencies, with the number of their arrival.
    frequencies: VecDeque<(u64, Job)>,
    /// The same for impacts.
    impacts: VecDeque<(u64, Job)>,
    arrivals: u64,
}

impl Queue {
    /// Adds a job whose plan [runs in batches](runs_in_batches).
    pub fn push(&mut self, job: Job) {
        self.arrivals += 1;
        let jobs = match job.column() {
            Column::Frequency => &mut self.frequencies,
            Column::Impact => &mut self.impacts,
        };
        jobs.push_back((self.arrivals, job));
    }

    /// Takes the next request: those that come first, else the jobs of the column whose first job has waited longest,
    /// as many as the rules allow. Cancelled jobs end here.
    pub fn pop(&mut self, rules: &Rules<'_>) -> Option<Request> {
        loop {
            if let Some(request) = self.first.pop() {
                return Some(request);
            }
            let arrival = |jobs: &VecDeque<(u64, Job)>| jobs.front().map_or(u64::MAX, |(arrival, _)| *arrival);
            let is_impact = arrival(&self.impacts) < arrival(&self.frequencies);
            let jobs = if is_impact { &mut self.impacts } else { &mut self.frequencies };
            if jobs.is_empty() {
                return None;
            }
            // The OR of a single AND+OR runs only if its AND finds too few hits.
            let (count, stages) = match rules.answers_single_query(jobs) {
                true => (1, 0..1),
                false => (rules.size_of_batch(jobs), 0..usize::MAX),
            };
            let mut taken = Vec::with_capacity(count);
            for (_, job) in jobs.drain(..count) {
                match job.is_cancelled() {
                    true => job.end(Err(Unanswered::Cancelled)),
                    false => taken.push(job),
                }
            }
            if !taken.is_empty() {
                return Some(Request { jobs: taken, stages, before: Answer::default() });
            }
        }
    }

    /// Puts a request before all others.
    pub fn put_first(&mut self, request: impl IntoIterator<Item = Request>) {
        self.first.extend(request);
    }

    pub fn is_empty(&self) -> bool {
        self.first.is_empty() && self.frequencies.is_empty() && self.impacts.is_empty()
    }

    /// Puts the halves of a request back, before all others; returns the job of a request for one, which has no halves.
    pub fn halve(&mut self, mut request: Request) -> Option<Job> {
        if request.jobs.len() <= 1 {
            return request.jobs.pop();
        }
        let jobs = request.jobs.split_off(request.jobs.len() / 2);
        let second = Request { jobs, stages: request.stages.clone(), before: request.before.clone() };
        self.put_first([second, request]);
        None
    }
}

impl Rules<'_> {
    /// Whether the next job is answered as a single query, a stage at a time: where few jobs wait.
    fn answers_single_query(&self, jobs: &VecDeque<(u64, Job)>) -> bool {
        let most_launches = match self.small_batches {
            SmallBatches::Auto => FEW_LAUNCHES,
            SmallBatches::SingleQueries => usize::MAX,
            SmallBatches::Graph | SmallBatches::Commands | SmallBatches::TimedCommands => 1,
        };
        let launches = || jobs.iter().map(|(_, job)| job.launches()).sum::<usize>();
        let uploads = |job: &Job| self.uploads.is_some_and(|uploads| job.spans().any(uploads));
        jobs.len() <= SMALL_BATCH && launches() <= most_launches && !jobs.iter().any(|(_, job)| uploads(job))
    }

    /// How many jobs the next batch takes.
    fn size_of_batch(&self, jobs: &VecDeque<(u64, Job)>) -> usize {
        let most = size_within(jobs.iter().map(|(_, job)| job.cost()), LONGEST_BATCH).min(LARGEST_BATCH);
        let most = size_with_filters(jobs.iter().take(most).map(|(_, job)| job.filter()), self.most_filters);
        let Some(uploads) = self.uploads else {
            return most;
        };
        let is_uploaded = |span: &ListSpan| uploads(*span);
        let lists = |(_, job): &(u64, Job)| job.spans().filter(is_uploaded).collect::<Vec<_>>().into_iter();
        let lists = jobs.iter().take(most).map(lists);
        upload::first_within(lists, self.upload_limit)
    }
}

/// How many of the first jobs are predicted to take at most this long, but more than [`SMALL_BATCH`] if there are more.
fn size_within(costs: impl Iterator<Item = Duration>, longest: Duration) -> usize {
    let mut time = Duration::ZERO;
    let fits = |(number, cost): &(usize, Duration)| {
        time += *cost;
        *number <= SMALL_BATCH || time <= longest
    };
    costs.take(LARGEST_BATCH).enumerate().take_while(fits).count()
}

/// How many of the first jobs have at most this many filters together.
fn size_with_filters<'a>(filters: impl Iterator<Item = Option<&'a Arc<DocumentSet>>>, most: usize) -> usize {
    let mut seen: Vec<*const DocumentSet> = Vec::new();
    let fits = |filter: &Option<&Arc<DocumentSet>>| {
        let Some(filter) = filter.map(Arc::as_ptr) else {
            return true;
        };
        // Most often the one before.
        if !seen.iter().rev().any(|&seen| seen == filter) {
            seen.push(filter);
        }
        seen.len() <= most
    };
    filters.take_while(fits).count()
}

/// Whether a plan can have hits at all.
pub fn can_have_hits(plan: &Plan) -> bool {
    plan.k > 0 && !plan.range.is_empty() && !plan.stages.is_empty()
}

/// Whether a plan is answered in batches; those for the papers' algorithms run step by step.
pub fn runs_in_batches(plan: &Plan) -> bool {
    can_have_hits(plan) && plan.stages.iter().all(|stage| !stage.algorithm.needs_device())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::submission::{Offer, Submission};
    use crate::query::plan::tests::{plan_of_lists, plan_over};
    use crate::query::score::ScoreModel;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Plans that read frequencies and impacts in turn; `k` numbers them.
    fn plans(count: usize) -> Vec<Plan> {
        let lists = plan_of_lists(&[100, 200]).lists;
        let plan = |number| {
            let plan = Plan { k: number + 1, lists: lists.clone(), ..plan_over(0..10) };
            if number % 2 == 0 { Plan { score: ScoreModel::Impact, ..plan } } else { plan }
        };
        (0..count).map(plan).collect()
    }

    fn jobs(plans: Vec<Plan>) -> Vec<Job> {
        Submission::without_rows(plans).jobs().collect()
    }

    fn queue(count: usize) -> Queue {
        let mut queue = Queue::default();
        jobs(plans(count)).into_iter().for_each(|job| queue.push(job));
        queue
    }

    fn numbers(request: &Request) -> Vec<usize> {
        request.jobs.iter().map(|job| job.plan().k - 1).collect()
    }

    fn batches(mut queue: Queue, rules: Rules<'_>) -> Vec<(Vec<usize>, Range<usize>)> {
        std::iter::from_fn(|| queue.pop(&rules)).map(|request| (numbers(&request), request.stages.clone())).collect()
    }

    const RESIDENT: Rules<'_> =
        Rules { uploads: None, small_batches: SmallBatches::Auto, upload_limit: 0, most_filters: 1 };

    #[test]
    fn a_batch_has_one_column_and_few_jobs_are_single_queries() {
        assert_eq!(batches(queue(3), RESIDENT), [(vec![0], 0..1), (vec![1], 0..1), (vec![2], 0..1)]);
        let together = Rules { small_batches: SmallBatches::Graph, ..RESIDENT };
        let all = 0..usize::MAX;
        assert_eq!(batches(queue(3), together), [(vec![0, 2], all.clone()), (vec![1], all.clone())]);
        let uploading = Rules { uploads: Some(&|_| true), ..RESIDENT };
        assert_eq!(batches(queue(2), uploading), [(vec![0], all.clone()), (vec![1], all.clone())]);
        // Lists are uploaded, but not theirs.
        let uploading = Rules { uploads: Some(&|_| false), ..RESIDENT };
        assert_eq!(batches(queue(2), uploading), batches(queue(2), RESIDENT));
        let sizes: Vec<usize> = batches(queue(4096), RESIDENT).iter().map(|(jobs, _)| jobs.len()).collect();
        assert_eq!(sizes, [LARGEST_BATCH; 4]);
    }

    #[test]
    fn a_batch_ends_with_its_predicted_time() {
        let size = |micros: u64, count| {
            size_within(std::iter::repeat_n(Duration::from_micros(micros), count), Duration::from_micros(1000))
        };
        assert_eq!([size(0, 5000), size(1, 5000), size(2, 5000)], [LARGEST_BATCH, 1000, 500]);
        assert_eq!([size(900, 5000), size(900, 3), size(1, 0)], [SMALL_BATCH + 1, 3, 0]);
    }

    #[test]
    fn a_batch_has_no_more_filters_than_it_may() {
        let sets: Vec<Arc<DocumentSet>> = (0..3).map(|_| Arc::default()).collect();
        let size = |letters: &str, most| {
            let filter = |letter: char| sets.get("abc".find(letter).unwrap_or(3));
            size_with_filters(letters.chars().map(filter), most)
        };
        assert_eq!([size("", 1), size("-aa-aba", 1), size("-aa-abac", 2), size("abcabc", 3)], [0, 5, 7, 6]);
    }

    #[test]
    fn what_arrives_while_a_batch_runs_is_the_next_batch() {
        let mut queue = queue(100);
        assert_eq!(numbers(&queue.pop(&RESIDENT).unwrap()), (0..100).step_by(2).collect::<Vec<_>>());
        jobs(vec![Plan { k: 1001, ..plan_over(0..10) }]).into_iter().for_each(|job| queue.push(job));
        assert_eq!(numbers(&queue.pop(&RESIDENT).unwrap()), (1..100).step_by(2).chain([1000]).collect::<Vec<_>>());
        assert!(queue.pop(&RESIDENT).is_none() && queue.is_empty());
    }

    #[test]
    fn cancelled_jobs_are_in_no_batch() {
        let flag = Arc::new(AtomicBool::new(false));
        let offer = |plan| Offer { is_cancelled: Some(Arc::clone(&flag)), ..Offer::from(plan) };
        let (mut queue, cancelled) = (queue(100), Submission::without_rows(plans(50).into_iter().map(offer).collect()));
        cancelled.jobs().for_each(|job| queue.push(job));
        flag.store(true, Ordering::Relaxed);
        let batches: Vec<usize> = batches(queue, RESIDENT).iter().map(|(jobs, _)| jobs.len()).collect();
        assert_eq!(batches, [50, 50]);
        let outcomes = cancelled.wait();
        assert_eq!(outcomes.len(), 50, "they have outcomes all the same");
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(Unanswered::Cancelled))));
    }

    #[test]
    fn halves_of_a_request_come_next_and_one_job_is_returned() {
        let mut queue = queue(128);
        let request = queue.pop(&RESIDENT).expect("a batch");
        let (all, first) = (numbers(&request), numbers(&request)[..32].to_vec());
        assert!(queue.halve(request).is_none());
        let halves = [queue.pop(&RESIDENT), queue.pop(&RESIDENT)].map(|half| numbers(&half.expect("a half")));
        assert_eq!((halves[0].clone(), halves.concat()), (first, all));
        let single = Request { jobs: jobs(plans(1)), stages: 0..1, before: Answer::default() };
        assert_eq!(queue.halve(single).map(|job| job.plan().k), Some(1));
    }
}
