//! Which bytes of its lists a plan is predicted to read on a device: what crosses the bus if they lie in host memory, and
//! so what it is worth to have them in device memory. Good to a factor of two or three. Of an AND+OR, all stages count;
//! [`PlanTraffic::shares_of_stages`] says what each of them reads.

use crate::query::plan::{Operation, Plan, PlannedList, Stage};
use lanner_index::codec::BLOCK;
use lanner_index::format::dense::CHUNK;
use lanner_index::format::list::blocks_of;
use lanner_index::format::segment::WINDOW;

/// A read that is not next to others takes a sector of 32 bytes.
const SECTOR: f32 = 32.0;
/// Bytes of a directory that a search for a block reads: two rounds of 32 lanes, most of them in sectors of their own.
const SEARCH: f32 = 1024.0;
/// Bytes of a directory for each block: last document, offset, bound, and a byte for each of two columns.
const ENTRY: f32 = 12.0;
/// Documents of an OR that are looked up in dense lists: a share of the postings of its sparse lists. For the ten best of three
/// million scaled documents, queries of Terabyte-2005 scored 48 documents of 39,500 postings, and looked up some more.
const LOOKED_UP: f32 = 0.02;
/// The same for an OR without sparse lists: a share of the documents.
const LOOKED_UP_OF_ALL: f32 = 0.002;

/// Bytes that are read of each array of a list. Zero for arrays that lists of its kind do not have.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    /// Of a sparse list: the directory.
    pub directory: f32,
    /// Of a sparse list: the blocks.
    pub blocks: f32,
    /// Of a dense list: the bounds of chunks.
    pub bounds: f32,
    /// Of a dense list: the words.
    pub words: f32,
    /// Of a dense list: the ranks.
    pub ranks: f32,
    /// Of a dense list: the values.
    pub values: f32,
}

/// What the traffic of all lists of a plan depends on.
#[derive(Clone, Copy, Debug)]
pub struct PlanTraffic {
    /// The share of the documents that the range of the plan has.
    share: f32,
    chunks: f32,
    documents: f32,
    /// Postings of the shortest list, and whether it is dense, if the plan has an AND.
    shortest: Option<(f32, bool)>,
    /// Documents that are looked up in dense lists, if the plan has an OR.
    looked_up: Option<f32>,
}

impl PlanTraffic {
    /// Of a plan.
    pub fn of(plan: &Plan) -> PlanTraffic {
        PlanTraffic::of_stages(plan, &plan.stages)
    }

    /// The shares of what a plan reads that its stages read, each by itself.
    pub fn shares_of_stages(plan: &Plan) -> impl Iterator<Item = f32> + '_ {
        let of = |stages: &[Stage]| PlanTraffic::of_stages(plan, stages).of_all(plan);
        let is_one = plan.stages.len() == 1;
        let all = if is_one { 1.0 } else { plan.stages.iter().map(|stage| of(std::slice::from_ref(stage))).sum() };
        plan.stages.iter().map(move |stage| match is_one || all <= 0.0 {
            true => 1.0,
            false => of(std::slice::from_ref(stage)) / all,
        })
    }

    fn of_stages(plan: &Plan, stages: &[Stage]) -> PlanTraffic {
        let share = super::coarse::share_of_documents(plan) as f32;
        let has = |operation: Operation| stages.iter().any(|stage| stage.operation == operation);
        let shortest = plan.lists.iter().min_by_key(|list| list.postings);
        let shortest = shortest.map(|list| (list.postings as f32 * share, list.is_dense));
        let sparse: f32 = plan.lists.iter().filter(|list| !list.is_dense).map(|list| list.postings as f32).sum();
        let documents = plan.documents as f32 * share;
        let looked_up = if sparse > 0.0 { LOOKED_UP * sparse * share } else { LOOKED_UP_OF_ALL * documents };
        PlanTraffic {
            share,
            chunks: documents / CHUNK as f32,
            documents,
            shortest: shortest.filter(|_| has(Operation::And)),
            looked_up: has(Operation::Or).then_some(looked_up),
        }
    }

    /// The bytes that are read of a list.
    pub fn of_list(&self, list: &PlannedList) -> Traffic {
        let postings = list.postings as f32 * self.share;
        if list.is_dense { self.of_dense(postings) } else { self.of_sparse(list, postings) }
    }

    /// The bytes that are read of all lists of a plan.
    pub fn of_all(&self, plan: &Plan) -> f32 {
        plan.lists.iter().map(|list| self.of_list(list).sum()).sum()
    }

    fn of_sparse(&self, list: &PlannedList, postings: f32) -> Traffic {
        let blocks = blocks_of(list.postings) as f32 * self.share;
        let bytes = list.span.bytes() as f32 * self.share;
        let entries = (ENTRY * blocks).min(bytes);
        let mut traffic = Traffic::default();
        if self.looked_up.is_some() {
            traffic.directory += entries;
            traffic.blocks += bytes - entries;
        }
        if let Some((shortest, _)) = self.shortest {
            // The shortest list is read as a whole; of the others, blocks that can hold one of its documents.
            let is_shortest = postings <= shortest;
            let decoded = if is_shortest { blocks } else { blocks.min(shortest) };
            let searches = if is_shortest { 0.0 } else { shortest / BLOCK as f32 + 1.0 };
            traffic.directory += (SEARCH * searches).min(8.0 * entries) + entries.min(ENTRY * decoded);
            traffic.blocks += (bytes - entries) * decoded / blocks.max(1.0);
        }
        traffic
    }

    fn of_dense(&self, postings: f32) -> Traffic {
        let density = postings / self.documents.max(1.0);
        let mut traffic = Traffic::default();
        let (bounds, words, ranks) = (self.chunks, 8.0 * self.chunks, 2.0 * self.chunks);
        let values = postings / 2.0;
        let mut look_up = |documents: f32, matches: f32| {
            traffic.words += (SECTOR * documents).min(words);
            traffic.bounds += (SECTOR * documents).min(bounds);
            traffic.ranks += (2.0 * SECTOR * matches).min(ranks + 4.0 * self.documents / WINDOW as f32);
            traffic.values += (SECTOR * matches).min(values);
        };
        if let Some(documents) = self.looked_up {
            look_up(documents, documents * density);
        }
        match self.shortest {
            Some((_, true)) => look_up(self.documents, postings * density),
            Some((shortest, false)) => look_up(shortest, shortest * density),
            None => {}
        }
        if self.looked_up.is_some() {
            traffic.bounds = traffic.bounds.max(bounds);
        }
        traffic
    }
}

impl Traffic {
    /// A share of it.
    pub fn times(self, share: f32) -> Traffic {
        let Traffic { directory, blocks, bounds, words, ranks, values } = self;
        let [directory, blocks] = [directory, blocks].map(|bytes| bytes * share);
        let [bounds, words, ranks, values] = [bounds, words, ranks, values].map(|bytes| bytes * share);
        Traffic { directory, blocks, bounds, words, ranks, values }
    }

    /// Bytes of all arrays.
    pub fn sum(&self) -> f32 {
        let Traffic { directory, blocks, bounds, words, ranks, values } = self;
        directory + blocks + bounds + words + ranks + values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::plan::tests::plan_of_lists;
    use crate::query::plan::tests::plan_over;
    use lanner_index::open::ListSpan;

    /// An OR of lists with this many postings, of two bytes each.
    fn plan(postings: &[u32], is_dense: bool) -> Plan {
        let plan = plan_of_lists(postings);
        let list = |list: &PlannedList| {
            let span = ListSpan { is_long: true, start: 0, end: 2 * list.postings as usize };
            PlannedList { span, is_dense, ..list.clone() }
        };
        Plan { lists: plan.lists.iter().map(list).collect(), ..plan }
    }

    /// The traffic of the lists of an AND or OR.
    fn traffic(operation: Operation, postings: &[u32], is_dense: bool) -> Vec<Traffic> {
        let stage = Stage { operation, ..plan_over(0..10).stages[0] };
        let plan = Plan { stages: [stage].into(), ..plan(postings, is_dense) };
        let of_plan = PlanTraffic::of(&plan);
        plan.lists.iter().map(|list| of_plan.of_list(list)).collect()
    }

    #[test]
    fn an_or_reads_its_sparse_lists_as_a_whole_and_an_and_what_can_match() {
        let or = traffic(Operation::Or, &[1_280, 128_000], false);
        assert_eq!(or.iter().map(Traffic::sum).collect::<Vec<_>>(), [2.0 * 1_280.0, 2.0 * 128_000.0]);
        let and = traffic(Operation::And, &[12, 1_280_000], false);
        let [short, long] = [and[0], and[1]];
        assert_eq!(short.sum(), 24.0);
        assert!(long.blocks > 11.0 * 200.0 && long.blocks < 13.0 * 256.0, "{long:?}");
        assert!(long.directory > 1_000.0 && long.directory < 3_000.0, "{long:?}");
    }

    #[test]
    fn the_stages_of_a_plan_share_its_traffic() {
        let shares = |plan: &Plan| PlanTraffic::shares_of_stages(plan).collect::<Vec<f32>>();
        let plan = plan(&[12, 128_000], false);
        let both = plan_over(0..10).stages;
        assert_eq!(both.iter().map(|stage| stage.operation).collect::<Vec<_>>(), [Operation::And, Operation::Or]);
        assert_eq!(shares(&plan), [1.0], "an OR alone");
        let shares = shares(&Plan { stages: both, ..plan });
        assert!((shares[0] + shares[1] - 1.0).abs() < 1e-5 && shares[0] < 0.2 && shares[0] > 0.0, "{shares:?}");
    }

    #[test]
    fn bounds_of_a_dense_list_are_read_by_an_or_and_words_of_what_is_looked_up() {
        let [or, and] = [Operation::Or, Operation::And].map(|operation| traffic(operation, &[500_000], true)[0]);
        assert!(or.bounds > 0.0 && or.words > or.bounds && or.blocks == 0.0 && or.directory == 0.0);
        assert!(and.words >= or.words && and.values > 0.0);
    }
}
