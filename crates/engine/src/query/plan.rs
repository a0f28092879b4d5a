//! A plan: everything that an executor needs to answer a query, as plain data that can be printed and split.

use crate::query::document_set::DocumentSet;
use crate::query::score::ScoreModel;
use crate::query::{Algorithm, Mode};
use lanner_index::TermId;
use lanner_index::format::list::STORED_K;
use lanner_index::open::ListSpan;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;
use std::time::Instant;

/// How a query will be answered.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The lists of the query's terms, in the order of the terms.
    pub lists: Arc<[PlannedList]>,
    /// Terms that are not in the index.
    pub missing: Vec<String>,
    /// Documents of the index.
    pub documents: u32,
    /// The documents that may be hits.
    pub range: Range<u32>,
    /// The number of hits.
    pub k: usize,
    /// How the terms combine.
    pub mode: Mode,
    /// How hits are scored.
    pub score: ScoreModel,
    /// The most that the static rank adds to a score; 0 in models without one.
    pub static_bound: u32,
    /// Whether the stored bounds of blocks, chunks and windows hold; if not, only the bounds of whole lists are used.
    pub block_bounds_hold: bool,
    /// The sum of all bounds: no score is greater.
    pub largest_score: u32,
    /// The width that holds every score, proved by `largest_score`; score-at-a-time chooses its accumulators by it.
    pub width: Width,
    /// A score that at least k documents of the whole collection reach in an OR. A document with exactly this score
    /// enters.
    pub seed: Option<u32>,
    /// The documents within `range` that may be hits; `None` for all.
    pub filter: Option<Arc<DocumentSet>>,
    /// The most postings that score-at-a-time processes; `None` for all.
    pub budget: Option<u64>,
    /// The least score that can enter, whatever the seed: k documents before `range` have a higher one, or an equal
    /// one, which wins by its smaller number. 0 if none is known.
    pub floor: u32,
    /// When to give up.
    pub deadline: Option<Instant>,
    /// The stages, run in turn until one has k hits; none if no document can be a hit.
    pub stages: Stages,
}

/// A list with its weights in the query.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedList {
    /// The term.
    pub term: String,
    /// Its number.
    pub id: TermId,
    /// Where the list lies in the file.
    pub span: ListSpan,
    /// Postings of the list in this index.
    pub postings: u32,
    /// Whether the list is dense.
    pub is_dense: bool,
    /// Documents with the term in the whole collection, from which idf is computed.
    pub document_frequency: u64,
    /// The weight of the term in the query.
    pub query_weight: f64,
    /// The weight that counts: relative to the smallest of the query.
    pub relative_weight: f64,
    /// The term's inverse document frequency.
    pub idf: f64,
    /// The factor of saturations (or impacts): idf and query weight, combined as the score model says.
    pub multiplier: f32,
    /// The largest weight of the list in units.
    pub bound: u32,
    /// The k-th largest weight for each k of `STORED_K`; 0 if it is unknown or there are fewer postings.
    pub kth_weights: [u32; STORED_K.len()],
}

/// Bits of an accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// Every score fits 16 bits.
    Bits16,
    /// Every score fits 32 bits.
    Bits32,
}

impl Width {
    /// The narrowest width that holds every score up to `largest`; `None` beyond 32 bits.
    ///
    /// `u32::MAX` itself is refused: weights saturate there, so a sum that reaches it proves nothing.
    pub fn for_scores(largest: u64) -> Option<Width> {
        match largest {
            0..=0xFFFF => Some(Width::Bits16),
            0x1_0000..0xFFFF_FFFF => Some(Width::Bits32),
            _ => None,
        }
    }
}

/// One pass over the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Which documents match.
    pub operation: Operation,
    /// The algorithm; never `Auto`.
    pub algorithm: Algorithm,
}

/// Up to two stages, in the plan itself: memory of their own would take a short query noticeable time.
#[derive(Clone, Copy, Debug)]
pub struct Stages {
    stages: [Stage; 2],
    count: usize,
}

impl<const N: usize> From<[Stage; N]> for Stages {
    fn from(stages: [Stage; N]) -> Stages {
        const { assert!(N <= 2) };
        let unused = Stage { operation: Operation::Or, algorithm: Algorithm::Exhaustive };
        Stages { stages: std::array::from_fn(|number| stages.get(number).copied().unwrap_or(unused)), count: N }
    }
}

impl Deref for Stages {
    type Target = [Stage];

    fn deref(&self) -> &[Stage] {
        &self.stages[..self.count]
    }
}

/// Which documents a stage matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Those in all lists.
    And,
    /// Those in at least one list.
    Or,
}

impl Stage {
    /// The stage as the CPU runs it.
    pub fn on_cpu(&self) -> Stage {
        Stage { algorithm: self.algorithm.on_cpu(), ..*self }
    }
}

impl Operation {
    /// Its name in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Operation::And => "and",
            Operation::Or => "or",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Plan {
    /// The same plan over fewer documents: a part. Merging the answers of all parts gives the answer.
    ///
    /// Parts keep the seed: k documents of the collection reach it, so a document below it cannot be in the merged
    /// answer. A part may therefore return fewer hits than match in it.
    ///
    /// Whether an AND has k hits is known only for the whole: split the plans of [`Plan::staged`] one after the other.
    pub fn over(&self, range: Range<u32>) -> Plan {
        let start = range.start.clamp(self.range.start, self.range.end);
        let end = range.end.clamp(start, self.range.end);
        Plan { range: start..end, ..self.clone() }
    }

    /// A plan for each stage, to be answered in turn until an answer has k hits; the last answer counts.
    pub fn staged(&self) -> impl Iterator<Item = Plan> + '_ {
        self.stages.iter().map(|stage| Plan { stages: Stages::from([*stage]), ..self.clone() })
    }

    /// The score that a hit of a stage must reach: the floor, and at least the seed, or 1 without one, since every
    /// posting weighs at least 1. The hits of an AND of several terms may all have lower scores than the seed.
    pub fn seed_of(&self, stage: &Stage) -> u32 {
        let seed = match stage.operation {
            Operation::And if self.lists.len() > 1 => 1,
            Operation::And | Operation::Or => self.seed.unwrap_or(1),
        };
        seed.max(self.floor)
    }

    /// The bits of the accumulators of score-at-a-time, if that algorithm runs; the other algorithms always use 32.
    pub fn accumulator_bits(&self) -> Option<u32> {
        let runs = self.stages.iter().any(|stage| stage.algorithm == Algorithm::ScoreAtATime);
        runs.then_some(match self.width {
            Width::Bits16 => 16,
            Width::Bits32 => 32,
        })
    }

    fn write_lists(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms = self.lists.iter().map(|list| &list.term).chain(self.missing.iter());
        let width = terms.map(|term| term.chars().count()).max().unwrap_or(0).max("list".len());
        if !self.lists.is_empty() {
            let [ten, hundred, thousand] = STORED_K.map(|k| format!("{k}th"));
            writeln!(
                f,
                "{:width$}  {:>10}  {:>10}  {:>8}  {:>9}  {:>10}  {:>10}  {ten:>10}  {hundred:>10}  {thousand:>10}",
                "list", "postings", "documents", "weight", "idf", "multiplier", "bound",
            )?;
        }
        for list in self.lists.iter() {
            let [ten, hundred, thousand] = list.kth_weights.map(|weight| match weight {
                0 => "-".to_owned(),
                weight => weight.to_string(),
            });
            writeln!(
                f,
                "{:width$}  {:>10}  {:>10}  {:>8}  {:>9.5}  {:>10.6}  {:>10}  {ten:>10}  {hundred:>10}  {thousand:>10}",
                list.term,
                list.postings,
                list.document_frequency,
                list.query_weight,
                list.idf,
                list.multiplier,
                list.bound,
            )?;
        }
        for term in self.missing.iter() {
            writeln!(f, "{term:width$}  not in the index")?;
        }
        Ok(())
    }

    fn write_scores(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |units: u32| format!("{units} ({:.5})", self.score.score(units));
        if self.lists.iter().any(|list| list.relative_weight != list.query_weight) {
            let least = self.lists.iter().map(|list| list.relative_weight).fold(f64::INFINITY, f64::min);
            writeln!(f, "weights: only their ratios count, the smallest counts as {least}")?;
        }
        let accumulators = self.accumulator_bits().map(|bits| format!(", in accumulators of {bits} bits"));
        writeln!(f, "scores: at most {}{}", shown(self.largest_score), accumulators.unwrap_or_default())?;
        if self.static_bound > 0 {
            writeln!(f, "static rank: at most {}", shown(self.static_bound))?;
        }
        if let Some(seed) = self.seed {
            let what = if self.mode == Mode::And { "AND" } else { "OR" };
            writeln!(f, "threshold of {what}: starts at {}", shown(seed))?;
        }
        if !self.block_bounds_hold {
            writeln!(f, "bounds of blocks: not used, the statistics are not those they were made with")?;
        }
        Ok(())
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan { k, mode, score, range, .. } = self;
        writeln!(f, "{mode}: the best {k} of documents {}..{} by {score}", range.start, range.end)?;
        if let Some(filter) = &self.filter {
            writeln!(f, "filter: {} documents may pass", filter.count())?;
        }
        if let Some(budget) = self.budget {
            writeln!(f, "budget: {budget} postings, strongest first; the answer may be approximate")?;
        }
        self.write_lists(f)?;
        self.write_scores(f)?;
        if self.stages.is_empty() {
            writeln!(f, "no stage: no document can be a hit")?;
        }
        for (i, stage) in self.stages.iter().enumerate() {
            let condition = if i > 0 { format!(", if there are fewer than {k} hits") } else { String::new() };
            let Stage { operation, algorithm } = stage;
            let operation = operation.name().to_uppercase();
            writeln!(f, "stage {}: {operation} by {algorithm}{condition}", i + 1)?;
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn plan_over(range: Range<u32>) -> Plan {
        let stages = [Operation::And, Operation::Or];
        Plan {
            lists: Arc::new([]),
            missing: Vec::new(),
            documents: range.end,
            range,
            k: 10,
            mode: Mode::AndOr,
            score: ScoreModel::Bm25,
            static_bound: 0,
            block_bounds_hold: true,
            largest_score: 0,
            width: Width::Bits16,
            seed: Some(7),
            filter: None,
            budget: None,
            floor: 0,
            deadline: None,
            stages: stages.map(|operation| Stage { operation, algorithm: Algorithm::Exhaustive }).into(),
        }
    }

    /// An OR of sparse lists with these numbers of postings.
    pub(crate) fn plan_of_lists(postings: &[u32]) -> Plan {
        let list = |&postings: &u32| PlannedList {
            term: postings.to_string(),
            id: TermId(0),
            span: ListSpan::default(),
            postings,
            is_dense: false,
            document_frequency: u64::from(postings),
            query_weight: 1.0,
            relative_weight: 1.0,
            idf: 1.0,
            multiplier: 1.0,
            bound: 1 << 16,
            kth_weights: [0; STORED_K.len()],
        };
        let stages = Stages::from([Stage { operation: Operation::Or, algorithm: Algorithm::Scatter }]);
        Plan { lists: postings.iter().map(list).collect(), mode: Mode::Or, stages, ..plan_over(0..10_000_000) }
    }

    #[test]
    fn a_part_of_a_plan_lies_within_it() {
        let plan = plan_over(100..200);
        for (asked, given) in [(0..150, 100..150), (150..500, 150..200), (0..50, 100..100), (300..400, 200..200)] {
            assert_eq!(plan.over(asked).range, given);
        }
    }

    #[test]
    fn an_or_is_seeded_and_an_and_of_one_list() {
        let of_lists = |postings: &[u32]| {
            let plan = Plan { lists: plan_of_lists(postings).lists, ..plan_over(0..10) };
            plan.staged().map(|plan| plan.seed_of(&plan.stages[0])).collect::<Vec<u32>>()
        };
        assert_eq!(of_lists(&[5]), [7, 7]);
        assert_eq!(of_lists(&[5, 6]), [1, 7]);
    }

    #[test]
    fn a_width_holds_the_largest_score() {
        assert_eq!(Width::for_scores(0xFFFF), Some(Width::Bits16));
        assert_eq!(Width::for_scores(0x1_0000), Some(Width::Bits32));
        assert_eq!(Width::for_scores(0xFFFF_FFFE), Some(Width::Bits32));
        assert_eq!(Width::for_scores(0xFFFF_FFFF), None);
        assert_eq!(Width::for_scores(1 << 40), None);
    }
}
