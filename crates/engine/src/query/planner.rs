//! Plans a query: looks up its terms, computes weights and bounds, chooses algorithms.

use crate::query::plan::{Operation, Plan, PlannedList, Stage, Stages, Width};
use crate::query::score::{RelativeWeights, ScoreModel, static_units};
use crate::query::{Algorithm, Mode, Query, QueryError, QueryTerm};
use lanner_index::TermId;
use lanner_index::codec::BLOCK;
use lanner_index::format::IndexError;
use lanner_index::format::list::STORED_K;
use lanner_index::format::segment::Section;
use lanner_index::open::{Column, Index, ListSpan, Summary};
use lanner_index::weight::{ONE, idf, impact_units, units};
use std::collections::HashMap;

/// Why a query cannot be planned.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The text of the query is wrong.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// BM25 needs frequencies.
    #[error("the index has no frequencies, which {0} needs; score by impact, or rebuild the index with frequencies")]
    NoFrequencies(ScoreModel),
    /// The impact model needs impacts.
    #[error("the index has no impacts; score by bm25, or rebuild the index with impacts")]
    NoImpacts,
    /// Impacts made from the documents of one shard do not compare with those of another.
    #[error(
        "the impacts were made with other statistics than those in force; score by bm25, or build one index of the whole collection"
    )]
    ForeignImpacts,
    /// The rank model needs ranks.
    #[error("the index has no static ranks; score by bm25, or rebuild the index with static ranks")]
    NoRanks,
    /// The share of the static rank is not between 0 and 1.
    #[error("the share {0} of the static rank is out of range; give one from 0 to 1")]
    Alpha(f32),
    /// Scores that are precise enough for the smallest weight do not fit in 32 bits.
    #[error(
        "the weights of the query are too far apart: the largest is {ratio:.0} times the smallest, and scores of 32 bits \
         allow about {most} for these terms; give weights (word^WEIGHT) that are closer"
    )]
    WeightsTooFarApart {
        /// The largest weight divided by the smallest.
        ratio: f64,
        /// About the largest ratio that is allowed.
        most: f64,
    },
    /// Scores do not fit in 32 bits, because the index is damaged.
    #[error("bounds of scores reach {largest} units, beyond 32 bits; verify the index")]
    ScoreTooLarge {
        /// The sum of the lists' bounds, rounded up as those of chunks are.
        largest: u64,
    },
    /// The algorithm does not answer queries of this mode.
    #[error("`{algorithm}` does not answer `{mode}` queries; choose `{instead}`, `exhaustive` or `auto`")]
    Unsuitable {
        /// The algorithm asked for.
        algorithm: Algorithm,
        /// The mode of the query.
        mode: Mode,
        /// A suitable algorithm.
        instead: Algorithm,
    },
    /// Score-at-a-time does not count how many terms a document has.
    #[error("score-at-a-time answers only `or` queries, not `{0}`; use mode `or`, or choose another algorithm")]
    OnlyOr(Mode),
    /// Score-at-a-time adds impacts.
    #[error("score-at-a-time adds impacts and does not answer by {0}; score by impact, or choose another algorithm")]
    NotByImpact(ScoreModel),
    /// Score-at-a-time needs impact-ordered lists.
    #[error(
        "the index has no impact-ordered lists, which score-at-a-time needs; choose another algorithm, or rebuild the index with impact-ordered lists"
    )]
    NoImpactOrder,
    /// Only score-at-a-time supports a budget.
    #[error("only score-at-a-time keeps a budget, {0} does not; choose it, or leave out the budget")]
    Budget(Algorithm),
    /// The index cannot be read.
    #[error(transparent)]
    Index(#[from] IndexError),
}

/// The k-th weights of a list if none is known.
const NO_WEIGHTS: [u32; STORED_K.len()] = [0; STORED_K.len()];

/// Makes plans for an index.
pub struct Planner<'a> {
    index: &'a Index,
    document_frequencies: Option<&'a HashMap<String, u64>>,
}

/// A term that occurs in the collection, here or in another shard of it.
struct KnownTerm<'a> {
    term: QueryTerm,
    /// Its number and its list in this index; `None` if it occurs in other shards alone.
    here: Option<(TermId, ListSpan, Summary<'a>)>,
    document_frequency: u64,
    idf: f64,
}

impl<'a> Planner<'a> {
    /// Plans with the index's own document frequencies.
    pub fn new(index: &'a Index) -> Planner<'a> {
        Planner { index, document_frequencies: None }
    }

    /// Plans with the document frequencies of a larger collection, of which the index holds a part. The number of
    /// documents and their average length come from [`Index::set_statistics`].
    pub fn with_document_frequencies(self, document_frequencies: &'a HashMap<String, u64>) -> Planner<'a> {
        Planner { document_frequencies: Some(document_frequencies), ..self }
    }

    /// Plans a query.
    pub fn plan(&self, query: &Query) -> Result<Plan, PlanError> {
        self.plan_terms(query, query.terms(self.index.analyzer())?)
    }

    /// Plans a query with these terms instead of those of its text: terms of the index, which an analyzer might change.
    pub fn plan_terms(&self, query: &Query, terms: Vec<QueryTerm>) -> Result<Plan, PlanError> {
        let score = self.score_model(query)?;
        self.check_algorithm(query, score)?;
        self.check_documents(score)?;
        let (known, unknown) = self.known_terms(terms)?;
        let (lists, missing) = self.lists(score, query.mode, known)?;
        let missing: Vec<String> = unknown.into_iter().chain(missing).collect();
        let static_bound = match score {
            ScoreModel::RankBm25 { alpha } => static_units(alpha, 1.0),
            ScoreModel::Bm25 | ScoreModel::Impact => 0,
        };
        let largest = lists.iter().map(|list| u64::from(list.bound)).sum::<u64>() + u64::from(static_bound);
        let slack = lists.iter().map(|list| bound_slack(score.column(), list)).sum::<u64>();
        let fits = largest + slack < u64::from(u32::MAX);
        let too_large = PlanError::ScoreTooLarge { largest: largest + slack };
        let width = Width::for_scores(largest).filter(|_| fits).ok_or(too_large)?;
        let can_run = |stage: &Stage| !lists.is_empty() && (stage.operation == Operation::Or || missing.is_empty());
        Ok(Plan {
            documents: self.index.documents(),
            range: 0..self.index.documents(),
            k: query.k,
            mode: query.mode,
            score,
            static_bound,
            block_bounds_hold: self.bounds_hold(score),
            largest_score: largest as u32,
            width,
            seed: seed(query, &lists, &missing),
            filter: query.filter.clone(),
            budget: query.budget,
            floor: 0,
            deadline: None,
            stages: match stages(query, &lists, largest).map(|stage| stage.filter(can_run)) {
                [Some(first), Some(second)] => Stages::from([first, second]),
                [Some(only), None] | [None, Some(only)] => Stages::from([only]),
                [None, None] => Stages::from([]),
            },
            lists: lists.into(),
            missing,
        })
    }

    /// The query's score model, or the index's default; checked against the columns that the index stores.
    fn score_model(&self, query: &Query) -> Result<ScoreModel, PlanError> {
        let header = self.index.segment().header();
        let default = if header.has_frequencies { ScoreModel::Bm25 } else { ScoreModel::Impact };
        let score = query.score.unwrap_or(default);
        match score.column() {
            Column::Frequency if !header.has_frequencies => return Err(PlanError::NoFrequencies(score)),
            Column::Impact if !header.has_impacts => return Err(PlanError::NoImpacts),
            Column::Impact if !self.index.bounds_hold() && !self.has_learned_impacts() => {
                return Err(PlanError::ForeignImpacts);
            }
            Column::Frequency | Column::Impact => {}
        }
        if let ScoreModel::RankBm25 { alpha } = score {
            if !(0.0..=1.0).contains(&alpha) {
                return Err(PlanError::Alpha(alpha));
            }
            if self.index.documents() > 0 && self.index.segment().section(Section::Ranks).is_empty() {
                return Err(PlanError::NoRanks);
            }
        }
        Ok(score)
    }

    /// Checks what scores need of documents, unless it was checked before.
    fn check_documents(&self, score: ScoreModel) -> Result<(), IndexError> {
        let segment = self.index.segment();
        if score.column() == Column::Frequency {
            segment.check_section(Section::LengthCodes)?;
        }
        match score {
            ScoreModel::RankBm25 { .. } => segment.check_section(Section::Ranks),
            ScoreModel::Bm25 | ScoreModel::Impact => Ok(()),
        }
    }

    /// Checks that score-at-a-time has impacts and impact-ordered lists, and that a budget has score-at-a-time.
    fn check_algorithm(&self, query: &Query, score: ScoreModel) -> Result<(), PlanError> {
        check_mode(query)?;
        match query.algorithm {
            Algorithm::ScoreAtATime if score != ScoreModel::Impact => Err(PlanError::NotByImpact(score)),
            Algorithm::ScoreAtATime if !self.index.segment().has_impact_ordered() => Err(PlanError::NoImpactOrder),
            Algorithm::ScoreAtATime => Ok(()),
            other if query.budget.is_some() => Err(PlanError::Budget(other)),
            _ => Ok(()),
        }
    }

    fn has_learned_impacts(&self) -> bool {
        self.index.manifest().impacts.is_some_and(|impacts| impacts.learned)
    }

    /// Returns whether stored bounds and k-th weights hold under the current statistics. Those of impacts always do: an
    /// impact is stored as it is, whatever the statistics.
    fn bounds_hold(&self, score: ScoreModel) -> bool {
        score.column() == Column::Impact || self.index.bounds_hold()
    }

    /// Separates the terms that occur in the collection from those that do not.
    fn known_terms(&self, terms: Vec<QueryTerm>) -> Result<(Vec<KnownTerm<'a>>, Vec<String>), IndexError> {
        let (mut known, mut unknown) = (Vec::with_capacity(terms.len()), Vec::new());
        let found = self.index.find_terms(terms.iter().map(|term| term.term.as_bytes()))?;
        for (term, found) in terms.into_iter().zip(found) {
            let here = match found {
                Some((id, span)) => {
                    // Before anything reads the list, on any processor.
                    self.index.segment().check_list(span)?;
                    Some((id, span, self.index.summary_at(span)?))
                }
                None => None,
            };
            let postings = here.as_ref().map_or(0, |(.., list)| u64::from(list.postings));
            let everywhere = self.document_frequencies.and_then(|frequencies| frequencies.get(&term.term));
            let document_frequency = everywhere.copied().unwrap_or(0).max(postings);
            if document_frequency == 0 {
                unknown.push(term.term);
                continue;
            }
            let idf = idf(self.index.statistics().documents, document_frequency);
            known.push(KnownTerm { term, here, document_frequency, idf });
        }
        Ok((known, unknown))
    }

    /// Returns the lists of the terms that this index has, and the terms that only other shards have.
    fn lists(
        &self,
        score: ScoreModel,
        mode: Mode,
        known: Vec<KnownTerm<'_>>,
    ) -> Result<(Vec<PlannedList>, Vec<String>), PlanError> {
        // All shards must normalize alike, so terms of other shards count.
        let weights = RelativeWeights::new(score, known.iter().map(|known| (known.idf, known.term.weight)));
        let weights = weights.map_err(|(ratio, most)| PlanError::WeightsTooFarApart { ratio, most })?;
        let sum = known.iter().map(|known| known.idf * weights.of(known.term.weight)).sum::<f64>();
        let (mut lists, mut missing) = (Vec::with_capacity(known.len()), Vec::new());
        for known in known {
            let weight = weights.of(known.term.weight);
            let multiplier = match score {
                ScoreModel::Bm25 => (known.idf * weight) as f32,
                ScoreModel::Impact => weight as f32,
                ScoreModel::RankBm25 { alpha } => ((1.0 - f64::from(alpha)) * (known.idf * weight / sum)) as f32,
            };
            let Some((id, span, list)) = known.here else {
                missing.push(known.term.term);
                continue;
            };
            let (bound, kth_weights) = match mode {
                // A short list stores no bound, and an AND gains too little from a tight one to decode the postings.
                Mode::And if (list.postings as usize) < BLOCK => (self.largest_of_any(score, multiplier), NO_WEIGHTS),
                Mode::And | Mode::Or | Mode::AndOr => self.largest_weights(score, span, &list, multiplier)?,
            };
            lists.push(PlannedList {
                term: known.term.term,
                id,
                span,
                postings: list.postings,
                is_dense: list.is_dense,
                document_frequency: known.document_frequency,
                query_weight: known.term.weight,
                relative_weight: weight,
                idf: known.idf,
                multiplier,
                bound,
                kth_weights,
            });
        }
        Ok((lists, missing))
    }

    /// Returns the largest weight of a list, and the k-th largest for each stored k (0 if there are fewer postings).
    fn largest_weights(
        &self,
        score: ScoreModel,
        span: ListSpan,
        summary: &Summary<'_>,
        multiplier: f32,
    ) -> Result<(u32, [u32; STORED_K.len()]), IndexError> {
        if score.column() == Column::Impact {
            let (largest, kth) = match summary.largest_impacts() {
                Some(stored) => stored,
                None => self.index.list_at(span)?.largest_impacts(),
            };
            let weight = |impact| if impact > 0 { impact_units(multiplier, impact) } else { 0 };
            Ok((impact_units(multiplier, largest), kth.map(weight)))
        } else if self.bounds_hold(score) {
            let largest = match summary.largest() {
                Some(stored) => stored,
                None => self.index.list_at(span)?.largest(self.index.norms(), self.index.length_codes()),
            };
            let weight = |saturation| if saturation > 0.0 { units(multiplier, saturation) } else { 0 };
            Ok((units(multiplier, largest.saturation), largest.kth.map(weight)))
        } else {
            Ok((self.largest_of_any(score, multiplier), NO_WEIGHTS))
        }
    }

    /// An upper limit of the weights of any list.
    fn largest_of_any(&self, score: ScoreModel, multiplier: f32) -> u32 {
        match score.column() {
            Column::Impact => impact_units(multiplier, 255),
            Column::Frequency => units(multiplier, 1.0),
        }
    }
}

/// The largest k-th weight of the lists, from the next larger stored k: at least k documents have that weight for one
/// term alone, and what other terms or a static rank add is never negative. A filter could remove those documents, and
/// an AND of several terms could.
fn seed(query: &Query, lists: &[PlannedList], missing: &[String]) -> Option<u32> {
    let is_intersection = query.mode == Mode::And && lists.len() + missing.len() > 1;
    if query.filter.is_some() || is_intersection || query.k == 0 {
        return None;
    }
    let stored = STORED_K.iter().position(|&stored| stored >= query.k)?;
    lists.iter().map(|list| list.kth_weights[stored]).max().filter(|&seed| seed > 0)
}

/// Checks that an algorithm answers queries of the mode; the error names one that does.
fn check_mode(query: &Query) -> Result<(), PlanError> {
    let unsuitable = |instead| Err(PlanError::Unsuitable { algorithm: query.algorithm, mode: query.mode, instead });
    match (query.mode, query.algorithm) {
        (Mode::Or, Algorithm::ScoreAtATime) => Ok(()),
        (_, Algorithm::ScoreAtATime) => Err(PlanError::OnlyOr(query.mode)),
        (_, Algorithm::Auto | Algorithm::Exhaustive) | (Mode::AndOr, _) => Ok(()),
        (Mode::And, named) if named.on_cpu() == Algorithm::Conjunction => Ok(()),
        (Mode::And, _) => unsuitable(Algorithm::Conjunction),
        (Mode::Or, named) if named.on_cpu() == Algorithm::Conjunction => unsuitable(Algorithm::Scatter),
        (Mode::Or, _) => Ok(()),
    }
}

/// Chooses the algorithm of each operation: the one named by the query where it applies, else the default.
fn stages(query: &Query, lists: &[PlannedList], largest: u64) -> [Option<Stage>; 2] {
    let stage = |operation, algorithm: Algorithm| Stage { operation, algorithm };
    let and = match query.algorithm {
        Algorithm::Exhaustive => Algorithm::Exhaustive,
        Algorithm::Accumulators => Algorithm::TermAtATime,
        named if named.needs_device() => named,
        _ => Algorithm::Conjunction,
    };
    let or = match query.algorithm {
        Algorithm::Auto | Algorithm::Conjunction => Algorithm::Scatter,
        named if named.needs_device() => Algorithm::Accumulators,
        named => named,
    };
    // MaxScore adds with saturation, so it can be used where sums of bounds might not fit 32 bits.
    let or =
        if or == Algorithm::Scatter && !chunk_bounds_fit(largest, lists) { Algorithm::BlockMaxMaxscore } else { or };
    match query.mode {
        Mode::And => [Some(stage(Operation::And, and)), None],
        Mode::Or => [Some(stage(Operation::Or, or)), None],
        Mode::AndOr => [Some(stage(Operation::And, and)), Some(stage(Operation::Or, or))],
    }
}

/// Whether the bounds of chunks that `scatter` adds up fit 32 bits even if the bytes of the index are damaged, so that
/// every chunk has the largest code. [`bound_slack`] proves it for the codes that a build writes.
fn chunk_bounds_fit(largest: u64, lists: &[PlannedList]) -> bool {
    let bounds = lists.iter().map(|list| 256.0 * (code_step(list) + 2.0));
    bounds.sum::<f64>() + (largest as f64) < f64::from(u32::MAX)
}

/// The units between two neighbouring codes of a chunk's bound, which is an 8-bit saturation.
fn code_step(list: &PlannedList) -> f64 {
    f64::from(list.multiplier) * f64::from(ONE) / 255.0
}

/// How far the bounds of a list's chunks can lie above its largest weight; sums of bounds must fit 32 bits too. A bound
/// is rounded up to the next code. The second step, 2^-16 of the bound and 1,024 units are more than enough for the
/// rounding of products in `f32`, whose relative error is 2^-24.
fn bound_slack(column: Column, list: &PlannedList) -> u64 {
    let step = match column {
        Column::Frequency => code_step(list) as u64,
        Column::Impact => 0,
    };
    u64::from(list.bound >> 16) + 2 * step + 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(kth_weights: [u32; 3]) -> PlannedList {
        PlannedList {
            term: "term".to_owned(),
            id: TermId(0),
            span: ListSpan::default(),
            postings: 1,
            is_dense: false,
            document_frequency: 1,
            query_weight: 1.0,
            relative_weight: 1.0,
            idf: 1.0,
            multiplier: 1.0,
            bound: 1,
            kth_weights,
        }
    }

    #[test]
    fn the_seed_comes_from_the_next_larger_stored_k() {
        let lists = [list([50, 40, 0]), list([60, 30, 10])];
        let seed = |query: &Query, lists: &[PlannedList]| seed(query, lists, &[]);
        let cases = [(1, Some(60)), (5, Some(60)), (10, Some(60)), (11, Some(40)), (100, Some(40)), (101, Some(10))];
        for (k, expected) in cases.into_iter().chain([(1000, Some(10)), (1001, None), (0, None)]) {
            assert_eq!(seed(&Query::new("").k(k), &lists), expected, "k = {k}");
        }
        assert_eq!(seed(&Query::new("").k(1000), &lists[..1]), None, "a weight of 0 is not known");
        assert_eq!(seed(&Query::new("").mode(Mode::And), &lists), None);
        assert_eq!(seed(&Query::new("").mode(Mode::And), &lists[1..2]), seed(&Query::new(""), &lists[1..2]));
        assert_eq!(seed(&Query::new("").mode(Mode::AndOr), &lists), Some(60));
        assert_eq!(seed(&Query::new("").filter(crate::query::document_set::DocumentSet::default()), &lists), None);
        assert_eq!(super::seed(&Query::new("").mode(Mode::And), &lists[1..2], &["absent".to_owned()]), None);
    }

    #[test]
    fn every_mode_has_its_algorithms() {
        let names = |mode, algorithm| {
            let query = Query::new("").mode(mode).algorithm(algorithm);
            check_mode(&query)?;
            let stages = stages(&query, &[list([0; 3])], 1);
            Ok(stages.into_iter().flatten().map(|stage| stage.algorithm.name()).collect::<Vec<_>>())
        };
        let message = |result: Result<Vec<&'static str>, PlanError>| result.map_err(|error| error.to_string());
        assert_eq!(message(names(Mode::And, Algorithm::Auto)), Ok(vec!["conjunction"]));
        assert_eq!(message(names(Mode::Or, Algorithm::Auto)), Ok(vec!["scatter"]));
        assert_eq!(message(names(Mode::AndOr, Algorithm::Auto)), Ok(vec!["conjunction", "scatter"]));
        assert_eq!(message(names(Mode::AndOr, Algorithm::Maxscore)), Ok(vec!["conjunction", "maxscore"]));
        assert_eq!(message(names(Mode::AndOr, Algorithm::Exhaustive)), Ok(vec!["exhaustive", "exhaustive"]));
        assert_eq!(message(names(Mode::And, Algorithm::MergePath)), Ok(vec!["merge-path"]));
        assert_eq!(message(names(Mode::Or, Algorithm::Accumulators)), Ok(vec!["accumulators"]));
        assert_eq!(message(names(Mode::AndOr, Algorithm::MergePath)), Ok(vec!["merge-path", "accumulators"]));
        assert_eq!(message(names(Mode::AndOr, Algorithm::Accumulators)), Ok(vec!["term-at-a-time", "accumulators"]));
        let refused = "`maxscore` does not answer `and` queries; choose `conjunction`, `exhaustive` or `auto`";
        assert_eq!(message(names(Mode::And, Algorithm::Maxscore)), Err(refused.to_owned()));
        let refused = "`accumulators` does not answer `and` queries; choose `conjunction`, `exhaustive` or `auto`";
        assert_eq!(message(names(Mode::And, Algorithm::Accumulators)), Err(refused.to_owned()));
        let refused = "`conjunction` does not answer `or` queries; choose `scatter`, `exhaustive` or `auto`";
        assert_eq!(message(names(Mode::Or, Algorithm::Conjunction)), Err(refused.to_owned()));
    }
}
