//! Features of a plan: what its time depends on, as far as the plan says it.
//!
//! gpu-ir predicts from the two shortest lists, the sum of lengths and the number of terms; cooperative from LOS, UBOC
//! and UBOCT. Our algorithms need more: which lists are dense, how much of them bounds exclude, and how many documents
//! an AND still has after each list.

use super::coarse::{cpu_nanoseconds, device_stage_work, share_of_documents};
use crate::query::Algorithm;
use crate::query::plan::{Operation, Plan, Stage};
use lanner_index::codec::BLOCK;
use lanner_index::format::dense::CHUNK;

/// The number of features that a model uses.
pub const COUNT: usize = 16;

/// The lists that are looked at one by one, the shortest of an AND and the strongest of an OR; of the others, only sums
/// count. Beyond this many, an AND has hardly a candidate left. An OR with more lists counts all its postings as
/// essential.
const LISTS: usize = 16;

/// The features of a plan. Lengths of lists are the postings expected in the range of the plan: a part is like a plan
/// over a smaller collection. All counts are `f64`, as models use them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Features {
    /// Lists.
    pub terms: f64,
    /// The length of the shortest list: cooperative's LOS.
    pub shortest: f64,
    /// The length of the second shortest list; 0 if there is one list.
    pub second: f64,
    /// The sum of the lengths of all lists.
    pub sum: f64,
    /// The sum of log2 of the lengths of all lists but the shortest: the comparisons of one binary search in each. With
    /// a thread for each posting of the shortest list, as in cooperative, this is UBOCT, the comparisons of a thread.
    pub comparisons: f64,
    /// Dense lists.
    pub dense_lists: f64,
    /// The sum of their lengths.
    pub dense_postings: f64,
    /// The sum of the lengths of the sparse lists.
    pub sparse_postings: f64,
    /// Chunks of 64 documents in the range of the plan.
    pub chunks: f64,
    /// The number of hits asked for.
    pub k: f64,
    /// The share of the documents that the range of the plan has.
    pub share: f64,
    /// Bytes of all lists, which are uploaded if they are not resident.
    pub bytes: f64,
    /// The AND of the plan, if it has one.
    pub and: Option<AndFeatures>,
    /// The OR of the plan, if it has one.
    pub or: Option<OrFeatures>,
}

/// The features of an AND. Numbers of candidates are those expected if terms were independent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AndFeatures {
    /// What all stages have.
    pub stage: StageFeatures,
    /// Candidates looked up in sparse lists, over all of these.
    pub sparse_lookups: f64,
    /// Candidates looked up in dense lists, over all of these.
    pub dense_lookups: f64,
    /// Blocks of sparse lists that can hold a candidate.
    pub blocks: f64,
    /// Documents in all lists.
    pub matches: f64,
    /// Words of dense lists that are intersected if all lists are dense.
    pub words: f64,
}

/// The features of an OR.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OrFeatures {
    /// What all stages have.
    pub stage: StageFeatures,
    /// Postings of the sparse lists that are essential while the threshold is the seed.
    pub essential: f64,
    /// The sum of the bounds of the dense lists, divided by the seed. From 1 on, documents of dense lists alone can
    /// enter.
    pub dense_reach: f64,
    /// The largest score divided by the seed: how far the seed is from excluding everything.
    pub reach: f64,
}

/// The features of any stage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StageFeatures {
    /// The coarse prediction for one core of the CPU, in nanoseconds.
    pub coarse_ns: f64,
    /// The predicted work on a device, in postings decoded.
    pub device_work: f64,
    /// Whether the algorithm is one that the planner chooses; calibration measures no others.
    pub is_default: bool,
}

/// Where [`Features::values`] has what formulas use.
pub(super) mod position {
    pub const AND_WORK: usize = 13;
    pub const AND_BYTES: usize = 14;
    pub const AND_COARSE: usize = 15;
    pub const OR_WORK: usize = 12;
    pub const OR_BYTES: usize = 13;
    pub const OR_COARSE: usize = 14;
}

/// Quotients of a bound and the seed are capped at this.
const MOST_REACH: f64 = 8.0;

impl Features {
    /// The features of a plan. This runs for every query: it allocates nothing.
    pub fn of(plan: &Plan) -> Features {
        let share = share_of_documents(plan);
        let mut features = Features {
            terms: plan.lists.len() as f64,
            chunks: plan.range.len() as f64 / f64::from(CHUNK),
            k: plan.k as f64,
            share,
            ..Features::default()
        };
        let (mut shortest, mut logarithms) = (Shortest::default(), 0.0);
        for list in plan.lists.iter() {
            let length = Length { postings: f64::from(list.postings) * share, is_dense: list.is_dense };
            features.add(length, list.span.bytes());
            logarithms += log2(length.postings);
            shortest.add(length);
        }
        let lists = shortest.lists();
        features.shortest = lists.first().map_or(0.0, |list| list.postings);
        features.second = lists.get(1).map_or(0.0, |list| list.postings);
        features.comparisons = logarithms - log2(features.shortest);
        for stage in plan.stages.iter() {
            let of_stage = StageFeatures::of(plan, stage);
            match stage.operation {
                Operation::And => features.and = Some(features.of_and(of_stage, lists, plan.range.len() as f64)),
                Operation::Or => features.or = Some(features.of_or(of_stage, plan)),
            }
        }
        features
    }

    fn add(&mut self, Length { postings, is_dense }: Length, bytes: usize) {
        self.sum += postings;
        self.bytes += bytes as f64;
        if is_dense {
            self.dense_lists += 1.0;
            self.dense_postings += postings;
        } else {
            self.sparse_postings += postings;
        }
    }

    fn of_and(&self, stage: StageFeatures, lists: &[Length], documents: f64) -> AndFeatures {
        let mut and = AndFeatures { stage, ..AndFeatures::default() };
        let Some((driver, others)) = lists.split_first() else {
            return and;
        };
        if driver.is_dense {
            and.words = self.chunks * self.terms;
        }
        let mut candidates = driver.postings;
        for other in others {
            if other.is_dense {
                and.dense_lookups += candidates;
            } else {
                and.sparse_lookups += candidates;
                and.blocks += candidates.min(other.postings / BLOCK as f64);
            }
            candidates *= other.postings / documents.max(1.0);
        }
        and.matches = candidates;
        and
    }

    fn of_or(&self, stage: StageFeatures, plan: &Plan) -> OrFeatures {
        let seed = f64::from(plan.seed.unwrap_or(1).max(1));
        let dense_bound: f64 = plan.lists.iter().filter(|list| list.is_dense).map(|list| f64::from(list.bound)).sum();
        OrFeatures {
            stage,
            essential: self.essential(plan, seed - dense_bound),
            dense_reach: (dense_bound / seed).min(MOST_REACH),
            reach: (f64::from(plan.largest_score) / seed).min(MOST_REACH),
        }
    }

    /// The postings of the essential sparse lists. The weakest lists whose bounds together stay below `spare` are not
    /// essential.
    fn essential(&self, plan: &Plan, mut spare: f64) -> f64 {
        let mut weakest_first = [(0, 0); LISTS];
        let mut count = 0;
        if spare <= 0.0 || plan.lists.len() > LISTS {
            return self.sparse_postings;
        }
        for list in plan.lists.iter().filter(|list| !list.is_dense) {
            weakest_first[count] = (list.bound, list.postings);
            count += 1;
        }
        weakest_first[..count].sort_unstable();
        let mut essential = self.sparse_postings;
        for &(bound, postings) in &weakest_first[..count] {
            if f64::from(bound) >= spare {
                break;
            }
            spare -= f64::from(bound);
            essential -= f64::from(postings) * self.share;
        }
        essential.max(0.0)
    }

    /// Cooperative's UBOC: the comparisons if each posting of the shortest list is searched for in all others.
    pub fn uboc(&self) -> f64 {
        self.shortest * self.comparisons
    }

    /// The operations of the plan.
    pub fn operations(&self) -> impl Iterator<Item = Operation> {
        [self.and.map(|_| Operation::And), self.or.map(|_| Operation::Or)].into_iter().flatten()
    }

    /// What all stages have, of the stage with an operation.
    pub fn stage(&self, operation: Operation) -> Option<StageFeatures> {
        match operation {
            Operation::And => self.and.map(|and| and.stage),
            Operation::Or => self.or.map(|or| or.stage),
        }
    }

    /// The numbers from which a model predicts the time of an operation; zeros if the plan has no such stage.
    pub(super) fn values(&self, operation: Operation) -> [f64; COUNT] {
        let Features { terms, shortest, second, sum, comparisons, dense_lists, k, chunks, bytes, .. } = *self;
        match operation {
            Operation::And => {
                let AndFeatures { stage, sparse_lookups, dense_lookups, blocks, matches, words } =
                    self.and.unwrap_or_default();
                let StageFeatures { coarse_ns, device_work, .. } = stage;
                let uboc = shortest * comparisons;
                [
                    terms,
                    shortest,
                    second,
                    sum,
                    comparisons,
                    uboc,
                    dense_lists,
                    sparse_lookups,
                    dense_lookups,
                    blocks,
                    matches,
                    words,
                    k,
                    device_work,
                    bytes,
                    coarse_ns,
                ]
            }
            Operation::Or => {
                let OrFeatures { stage, essential, dense_reach, reach } = self.or.unwrap_or_default();
                let StageFeatures { coarse_ns, device_work, .. } = stage;
                let Features { dense_postings, sparse_postings, .. } = *self;
                let reached = if dense_reach >= 1.0 { dense_postings } else { 0.0 };
                [
                    terms,
                    shortest,
                    sum,
                    dense_lists * chunks,
                    chunks,
                    sparse_postings,
                    essential,
                    dense_postings,
                    reached,
                    dense_reach,
                    reach,
                    k,
                    device_work,
                    bytes,
                    coarse_ns,
                    k * terms,
                ]
            }
        }
    }
}

impl StageFeatures {
    fn of(plan: &Plan, stage: &Stage) -> StageFeatures {
        let is_default = match stage.algorithm {
            Algorithm::Conjunction | Algorithm::Scatter => true,
            Algorithm::Maxscore | Algorithm::BlockMaxMaxscore => true,
            Algorithm::Auto | Algorithm::Exhaustive | Algorithm::ScoreAtATime | Algorithm::Accumulators => false,
            Algorithm::TermAtATime | Algorithm::MergePath | Algorithm::SkipSearch | Algorithm::ParallelMergeFind => {
                false
            }
        };
        StageFeatures {
            coarse_ns: cpu_nanoseconds(plan, stage),
            device_work: device_stage_work(plan, stage.operation) as f64,
            is_default,
        }
    }
}

/// The binary logarithm of a length; 0 for less than one posting.
fn log2(length: f64) -> f64 {
    f64::from((length.max(1.0) as f32).log2())
}

/// The length of a list, as far as it is in the range of the plan.
#[derive(Clone, Copy, Default)]
struct Length {
    postings: f64,
    is_dense: bool,
}

/// The shortest lists of a plan, in order.
#[derive(Default)]
struct Shortest {
    lengths: [Length; LISTS],
    count: usize,
}

impl Shortest {
    fn add(&mut self, length: Length) {
        let mut at = self.count;
        if self.count < LISTS {
            self.count += 1;
        } else if self.lengths[LISTS - 1].postings <= length.postings {
            return;
        } else {
            at = LISTS - 1;
        }
        while at > 0 && self.lengths[at - 1].postings > length.postings {
            self.lengths[at] = self.lengths[at - 1];
            at -= 1;
        }
        self.lengths[at] = length;
    }

    fn lists(&self) -> &[Length] {
        &self.lengths[..self.count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::plan::PlannedList;
    use crate::query::plan::tests::plan_over;
    use lanner_index::TermId;
    use lanner_index::open::ListSpan;

    fn list(postings: u32, is_dense: bool, bound: u32) -> PlannedList {
        PlannedList {
            term: "term".to_owned(),
            id: TermId(0),
            span: ListSpan { is_long: true, start: 16, end: 116 },
            postings,
            is_dense,
            document_frequency: u64::from(postings),
            query_weight: 1.0,
            relative_weight: 1.0,
            idf: 1.0,
            multiplier: 1.0,
            bound,
            kth_weights: [0; 3],
        }
    }

    fn plan(lists: &[PlannedList], seed: u32) -> Plan {
        let largest_score = lists.iter().map(|list| list.bound).sum();
        let stages = [(Operation::And, Algorithm::Conjunction), (Operation::Or, Algorithm::Scatter)];
        let stages = stages.map(|(operation, algorithm)| Stage { operation, algorithm }).into();
        Plan { lists: lists.into(), seed: Some(seed), largest_score, stages, ..plan_over(0..64_000) }
    }

    #[test]
    fn features_are_those_of_the_papers() {
        let lists = [list(32_000, true, 1), list(128, false, 1), list(16, false, 1), list(1024, false, 1)];
        let features = Features::of(&plan(&lists, 1));
        assert_eq!((features.terms, features.shortest, features.second), (4.0, 16.0, 128.0));
        assert_eq!((features.sum, features.sparse_postings, features.dense_postings), (33_168.0, 1168.0, 32_000.0));
        assert!((features.comparisons - (7.0 + 10.0 + 32_000f64.log2())).abs() < 1e-4, "{}", features.comparisons);
        assert!((features.uboc() - 16.0 * features.comparisons).abs() < 1e-9);
        assert_eq!((features.bytes, features.chunks, features.k), (400.0, 1000.0, 10.0));
        assert_eq!(features.operations().collect::<Vec<_>>(), [Operation::And, Operation::Or]);
    }

    #[test]
    fn an_and_has_fewer_candidates_after_each_list() {
        let lists = [list(32_000, true, 1), list(6400, false, 1), list(1000, false, 1)];
        let and = Features::of(&plan(&lists, 1)).and.unwrap();
        let blocks = 6400.0 / BLOCK as f64;
        assert_eq!((and.sparse_lookups, and.blocks, and.dense_lookups, and.matches), (1000.0, blocks, 100.0, 50.0));
        let dense = Features::of(&plan(&[list(32_000, true, 1), list(6400, true, 1)], 1)).and.unwrap();
        assert_eq!(dense.words, 2000.0);
    }

    #[test]
    fn weak_long_lists_of_an_or_are_not_essential() {
        let lists = [list(100, false, 50), list(5000, false, 20), list(90_000, false, 10), list(50_000, true, 5)];
        let essential = |seed: u32| Features::of(&plan(&lists, seed)).or.unwrap().essential;
        // The dense list takes 5 of the seed.
        assert_eq!([15, 16, 35, 36].map(essential), [95_100.0, 5100.0, 5100.0, 100.0]);
        let or = Features::of(&plan(&lists, 10)).or.unwrap();
        assert_eq!((or.dense_reach, or.reach), (0.5, MOST_REACH));
    }

    #[test]
    fn a_part_is_like_a_plan_over_a_smaller_collection() {
        let lists = [list(32_000, true, 1), list(6400, false, 1)];
        let whole = plan(&lists, 1);
        let (part, half) =
            (Features::of(&whole.over(0..32_000)), plan(&[list(16_000, true, 1), list(3200, false, 1)], 1));
        let half = Features::of(&Plan { documents: 32_000, range: 0..32_000, ..half });
        assert_eq!((part.sum, part.chunks, part.share), (half.sum, half.chunks, 0.5));
        assert_eq!(part.and.unwrap().matches, half.and.unwrap().matches);
    }

    #[test]
    fn formulas_find_their_features() {
        let features = Features::of(&plan(&[list(32_000, true, 1), list(6400, false, 1)], 1));
        let (and, or) = (features.and.unwrap().stage, features.or.unwrap().stage);
        let values = features.values(Operation::And);
        let places = [position::AND_WORK, position::AND_BYTES, position::AND_COARSE];
        assert_eq!(places.map(|place| values[place]), [and.device_work, features.bytes, and.coarse_ns]);
        let values = features.values(Operation::Or);
        let places = [position::OR_WORK, position::OR_BYTES, position::OR_COARSE];
        assert_eq!(places.map(|place| values[place]), [or.device_work, features.bytes, or.coarse_ns]);
    }

    #[test]
    fn any_number_of_lists_and_documents_gives_finite_numbers() {
        for count in [0, 1, LISTS, LISTS + 1, 1000] {
            let lists: Vec<PlannedList> =
                (0..count).map(|n| list((count - n) as u32, n % 3 == 0, u32::MAX / 2000)).collect();
            for plan in [
                plan(&lists, 1),
                plan(&lists, u32::MAX).over(0..0),
                Plan { documents: 0, ..plan(&lists, 5).over(0..0) },
            ] {
                let features = Features::of(&plan);
                let values = [Operation::And, Operation::Or].map(|operation| features.values(operation));
                assert!(values.as_flattened().iter().all(|value| value.is_finite() && *value >= 0.0), "{features:?}");
            }
            assert_eq!(Features::of(&plan(&lists, 1)).shortest, count.min(1) as f64);
        }
    }
}
