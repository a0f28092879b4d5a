//! Measures of a ranking, with the names of `ir_measures` and the values of `trec_eval`.
//!
//! Hits are sorted in one of two ways, because `ir_measures` (0.4.3) uses two tools. Most measures
//! come from `trec_eval`, which reads scores as 32-bit floats and breaks ties by descending document
//! id. `RR@k` (but not `RR`) and `Judged` use 64-bit scores and break ties by ascending document id.
//! Runs whose scores strictly decrease, as ours do, have the same values either way.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::error::EvalError;
use super::run_id;

/// A measure of how well a query's hits match its judgements; 0 is worst, 1 is best.
///
/// A document is relevant if its grade is at least 1; unjudged documents are not relevant. Only the
/// first `cut` hits count; without a `cut`, all do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Measure {
    /// Normalized discounted cumulative gain: a grade at rank r gains grade / log2(r + 1), as a
    /// share of the gain of the ideal ranking (Järvelin and Kekäläinen, TOIS 2002). Negative grades gain 0.
    Ndcg {
        /// How many hits count, in the ranking and in the ideal ranking.
        cut: Option<NonZeroU32>,
    },
    /// Average precision: the sum of the precisions at each relevant hit, divided by the number of
    /// relevant documents.
    AveragePrecision {
        /// How many hits count.
        cut: Option<NonZeroU32>,
    },
    /// The reciprocal of the rank of the first relevant hit.
    ReciprocalRank {
        /// How many hits count.
        cut: Option<NonZeroU32>,
    },
    /// Relevant hits divided by `cut`, even if there are fewer hits.
    Precision {
        /// How many hits count.
        cut: NonZeroU32,
    },
    /// Relevant hits divided by all relevant documents.
    Recall {
        /// How many hits count.
        cut: NonZeroU32,
    },
    /// Precision at R, where R is the number of relevant documents.
    RPrecision,
    /// Judged hits divided by hits.
    Judged {
        /// How many hits count.
        cut: Option<NonZeroU32>,
    },
    /// 1 if there is a relevant hit.
    Success {
        /// How many hits count.
        cut: NonZeroU32,
    },
}

impl Measure {
    /// Parses measures separated by commas, as in `nDCG@10,AP,RR@10`.
    pub fn parse_list(text: &str) -> Result<Vec<Measure>, EvalError> {
        text.split(',').map(|name| name.trim().parse()).collect()
    }

    /// Returns how hits are sorted for this measure.
    pub(super) fn sorting(self) -> Sorting {
        match self {
            Measure::ReciprocalRank { cut: Some(_) } | Measure::Judged { .. } => Sorting::Doubles,
            _ => Sorting::Floats,
        }
    }

    /// Returns the value for a query.
    pub(super) fn value(self, ranking: &Ranking) -> f64 {
        match self {
            Measure::Ndcg { cut } => ranking.ndcg(cut),
            Measure::AveragePrecision { cut } => ranking.average_precision(cut),
            Measure::ReciprocalRank { cut } => ranking.reciprocal_rank(cut),
            Measure::Precision { cut } => share(ranking.relevant_hits(cut), cut.get() as usize),
            Measure::Recall { cut } => share(ranking.relevant_hits(cut), ranking.relevant()),
            Measure::RPrecision => ranking.r_precision(),
            Measure::Judged { cut } => ranking.judged(cut),
            Measure::Success { cut } => f64::from(u8::from(ranking.relevant_hits(cut) > 0)),
        }
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, cut) = match *self {
            Measure::Ndcg { cut } => ("nDCG", cut),
            Measure::AveragePrecision { cut } => ("AP", cut),
            Measure::ReciprocalRank { cut } => ("RR", cut),
            Measure::Precision { cut } => ("P", Some(cut)),
            Measure::Recall { cut } => ("R", Some(cut)),
            Measure::RPrecision => ("Rprec", None),
            Measure::Judged { cut } => ("Judged", cut),
            Measure::Success { cut } => ("Success", Some(cut)),
        };
        match cut {
            Some(cut) => formatter.pad(&format!("{name}@{cut}")),
            None => formatter.pad(name),
        }
    }
}

impl FromStr for Measure {
    type Err = EvalError;

    /// Parses the names of `ir_measures` (`nDCG@10`, also `MAP`, `MRR@10`, `Recall@100`) and of
    /// `trec_eval` (`ndcg_cut_10`, `map`, `recip_rank`, `P_10`, `recall_100`), in any case.
    fn from_str(text: &str) -> Result<Self, EvalError> {
        parse(&text.to_ascii_lowercase()).ok_or_else(|| EvalError::UnknownMeasure { name: text.to_owned() })
    }
}

fn parse(name: &str) -> Option<Measure> {
    let (name, cut) = match name.split_once('@').or_else(|| split_trec_cut(name)) {
        Some((name, cut)) => (name, Some(parse_cut(cut)?)),
        None => (name, None),
    };
    match (name, cut) {
        ("ndcg", cut) | ("ndcg_cut", cut @ Some(_)) => Some(Measure::Ndcg { cut }),
        ("ap" | "map", cut) | ("map_cut", cut @ Some(_)) => Some(Measure::AveragePrecision { cut }),
        ("rr" | "mrr" | "recip_rank", cut) => Some(Measure::ReciprocalRank { cut }),
        ("p" | "precision", Some(cut)) => Some(Measure::Precision { cut }),
        ("r" | "recall", Some(cut)) => Some(Measure::Recall { cut }),
        ("rprec", None) => Some(Measure::RPrecision),
        ("judged", cut) => Some(Measure::Judged { cut }),
        ("success", Some(cut)) => Some(Measure::Success { cut }),
        _ => None,
    }
}

/// Splits `p_10` into `p` and `10`.
fn split_trec_cut(name: &str) -> Option<(&str, &str)> {
    name.rsplit_once('_').filter(|(_, cut)| cut.starts_with(|c: char| c.is_ascii_digit()))
}

fn parse_cut(text: &str) -> Option<NonZeroU32> {
    if text.starts_with('+') {
        return None;
    }
    text.parse().ok()
}

impl Serialize for Measure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// How hits are sorted; see the head of this file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sorting {
    /// By 32-bit scores, then by descending document id.
    Floats,
    /// By 64-bit scores, then by ascending document id.
    Doubles,
}

impl Sorting {
    fn compare(self, a: (&String, &f64), b: (&String, &f64)) -> Ordering {
        // Scores are finite, so they are always comparable.
        let descending = |a: f64, b: f64| b.partial_cmp(&a).unwrap_or(Ordering::Equal);
        match self {
            Sorting::Floats => {
                let (a_score, b_score) = (*a.1 as f32, *b.1 as f32);
                descending(f64::from(a_score), f64::from(b_score)).then_with(|| b.0.cmp(a.0))
            }
            Sorting::Doubles => descending(*a.1, *b.1).then_with(|| a.0.cmp(b.0)),
        }
    }
}

/// The grades of the hits of one query, by rank.
#[derive(Debug)]
pub(super) struct Ranking {
    // grades[r]: the grade of the hit at rank r + 1, if it was judged.
    grades: Vec<Option<i32>>,
    // The grades of all relevant documents, highest first.
    best: Vec<i32>,
}

impl Ranking {
    /// Sorts `hits` (document to score) and looks up their grades.
    pub(super) fn new(
        hits: Option<&HashMap<String, f64>>,
        judgements: &HashMap<String, i32>,
        sorting: Sorting,
    ) -> Self {
        let is_hit = |document: &str| hits.is_some_and(|hits| hits.contains_key(document));
        let grade = |(document, _): (&String, &f64)| {
            let decoded = || Some(run_id::decode(document)).filter(|decoded| !is_hit(decoded));
            let grade = judgements.get(document);
            grade.or_else(|| judgements.get(&*decoded()?)).copied()
        };
        let mut hits: Vec<(&String, &f64)> = hits.into_iter().flatten().collect();
        hits.sort_unstable_by(|&a, &b| sorting.compare(a, b));
        let mut best: Vec<i32> = judgements.values().copied().filter(|&g| g > 0).collect();
        best.sort_unstable_by(|a, b| b.cmp(a));
        Ranking { grades: hits.into_iter().map(grade).collect(), best }
    }

    /// Returns the number of relevant documents, in the ranking or not.
    fn relevant(&self) -> usize {
        self.best.len()
    }

    /// Returns the grades of the first `cut` hits.
    fn first(&self, cut: Option<NonZeroU32>) -> &[Option<i32>] {
        up_to(&self.grades, cut)
    }

    fn relevant_hits(&self, cut: NonZeroU32) -> usize {
        count_relevant(self.first(Some(cut)))
    }

    fn ndcg(&self, cut: Option<NonZeroU32>) -> f64 {
        let best = gain(up_to(&self.best, cut).iter().copied());
        if best == 0.0 {
            return 0.0;
        }
        gain(self.first(cut).iter().map(|grade| grade.unwrap_or(0))) / best
    }

    fn average_precision(&self, cut: Option<NonZeroU32>) -> f64 {
        if self.relevant() == 0 {
            return 0.0;
        }
        let relevant_ranks =
            (1usize..).zip(self.first(cut)).filter_map(|(rank, &grade)| is_relevant(grade).then_some(rank));
        let precisions = (1usize..).zip(relevant_ranks).map(|(found, rank)| share(found, rank));
        sum(precisions) / self.relevant() as f64
    }

    fn reciprocal_rank(&self, cut: Option<NonZeroU32>) -> f64 {
        match self.first(cut).iter().position(|&grade| is_relevant(grade)) {
            Some(above) => share(1, above + 1),
            None => 0.0,
        }
    }

    fn r_precision(&self) -> f64 {
        let depth = self.relevant().min(self.grades.len());
        share(count_relevant(&self.grades[..depth]), self.relevant())
    }

    fn judged(&self, cut: Option<NonZeroU32>) -> f64 {
        let hits = self.first(cut);
        share(hits.iter().flatten().count(), hits.len())
    }
}

fn up_to<T>(items: &[T], cut: Option<NonZeroU32>) -> &[T] {
    match cut {
        Some(cut) => &items[..items.len().min(cut.get() as usize)],
        None => items,
    }
}

fn is_relevant(grade: Option<i32>) -> bool {
    grade.is_some_and(|grade| grade > 0)
}

fn count_relevant(grades: &[Option<i32>]) -> usize {
    grades.iter().filter(|&&grade| is_relevant(grade)).count()
}

/// Returns `part` divided by `whole`, or 0 if `whole` is 0.
fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    part as f64 / whole as f64
}

/// Returns the discounted cumulative gain of grades by rank.
fn gain(grades: impl Iterator<Item = i32>) -> f64 {
    let gains = (2u32..)
        .zip(grades)
        .filter(|&(_, grade)| grade > 0)
        .map(|(discount, grade)| f64::from(grade) / f64::from(discount).log2());
    sum(gains)
}

/// Returns the sum of `values`. `Iterator::sum` returns -0.0 for none, which prints badly.
fn sum(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, |sum, value| sum + value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn measure(name: &str) -> Measure {
        name.parse().unwrap()
    }

    fn value(name: &str, hits: &[(&str, f64)], judgements: &[(&str, i32)]) -> f64 {
        let hits = hits.iter().map(|&(d, score)| (d.to_owned(), score));
        let judgements = judgements.iter().map(|&(d, grade)| (d.to_owned(), grade));
        let ranking = Ranking::new(Some(&hits.collect()), &judgements.collect(), measure(name).sorting());
        measure(name).value(&ranking)
    }

    #[test]
    fn names_of_both_tools_are_read_in_any_case() {
        for (name, canonical) in [
            ("nDCG@10", "nDCG@10"),
            ("NDCG", "nDCG"),
            ("ndcg_cut_10", "nDCG@10"),
            ("ndcg", "nDCG"),
            ("AP", "AP"),
            ("map@1000", "AP@1000"),
            ("map_cut_5", "AP@5"),
            ("RR", "RR"),
            ("MRR@10", "RR@10"),
            ("recip_rank", "RR"),
            ("P@10", "P@10"),
            ("p_10", "P@10"),
            ("Recall@100", "R@100"),
            ("recall_100", "R@100"),
            ("RPrec", "Rprec"),
            ("Judged@10", "Judged@10"),
            ("judged", "Judged"),
            ("success_1", "Success@1"),
        ] {
            assert_eq!(measure(name).to_string(), canonical);
        }
    }

    #[test]
    fn unknown_measures_are_refused_by_name() {
        for name in [
            "",
            "P",
            "R",
            "Success",
            "P@0",
            "P@-1",
            "P@+1",
            "P@x",
            "P@",
            "P@99999999999",
            "Rprec@5",
            "ERR@10",
            "nDCG@10@10",
            "ndcg_cut",
            "_10",
            "@10",
        ] {
            assert_eq!(
                name.parse::<Measure>().unwrap_err().to_string(),
                format!(
                    "measure '{name}' is not known; use nDCG[@k], AP[@k], RR[@k], P@k, R@k, Rprec, Judged[@k] or Success@k with k at least 1"
                )
            );
        }
    }

    #[test]
    fn a_list_of_measures_is_split_at_commas() {
        assert_eq!(Measure::parse_list("nDCG@10, AP").unwrap(), [measure("nDCG@10"), measure("AP")]);
        assert!(Measure::parse_list("AP,,RR").is_err());
    }

    #[test]
    fn equal_scores_are_ordered_by_id_as_each_tool_does() {
        let hits = [("a", 1.0), ("b", 1.0)];
        assert_eq!(value("RR", &hits, &[("b", 1)]), 1.0);
        assert_eq!(value("RR@10", &hits, &[("b", 1)]), 0.5);
        assert_eq!(value("P@1", &hits, &[("a", 1)]), 0.0);
        assert_eq!(value("Judged@1", &hits, &[("a", 0)]), 1.0);
    }

    #[test]
    fn scores_equal_as_32_bit_floats_are_ties_for_trec_eval() {
        let hits = [("a", 1.000_000_000_01), ("b", 1.0)];
        assert_eq!(value("RR", &hits, &[("a", 1)]), 0.5);
        assert_eq!(value("RR@10", &hits, &[("a", 1)]), 1.0);
    }

    #[test]
    fn a_query_with_only_negative_judgements_scores_zero() {
        // The package does not return on such a query; trec_eval's definitions give 0.
        let hits = [("a", 2.0), ("b", 1.0)];
        for name in ["nDCG", "nDCG@5", "AP", "RR", "P@5", "R@5", "Rprec", "Success@1"] {
            assert_eq!(value(name, &hits, &[("a", -1), ("c", -2)]), 0.0);
        }
        assert_eq!(value("Judged", &hits, &[("a", -1), ("c", -2)]), 0.5);
    }

    fn judgements() -> impl Strategy<Value = HashMap<String, i32>> {
        proptest::collection::hash_map("[a-f]{1,2}", -2..4i32, 1..20)
    }

    const NAMES: [&str; 14] = [
        "nDCG",
        "nDCG@3",
        "AP",
        "AP@3",
        "RR",
        "RR@3",
        "P@3",
        "R@3",
        "Rprec",
        "Judged",
        "Judged@3",
        "Success@1",
        "P@1000",
        "R@1000",
    ];

    proptest! {
        #[test]
        fn values_lie_between_zero_and_one(
            judgements in judgements(),
            hits in proptest::collection::hash_map("[a-g]{1,2}", -3.0..3.0f64, 0..20),
        ) {
            for name in NAMES {
                let ranking = Ranking::new(Some(&hits), &judgements, measure(name).sorting());
                let value = measure(name).value(&ranking);
                prop_assert!((0.0..=1.0).contains(&value), "{} is {}", name, value);
            }
        }

        #[test]
        fn a_perfect_ranking_has_full_value(judgements in judgements()) {
            prop_assume!(judgements.values().any(|&grade| grade > 0));
            let hits = judgements.iter().map(|(d, &grade)| (d.clone(), f64::from(grade))).collect();
            for name in ["nDCG", "nDCG@1", "nDCG@3", "AP", "RR", "Rprec", "Success@1", "R@1000", "P@1"] {
                let ranking = Ranking::new(Some(&hits), &judgements, measure(name).sorting());
                prop_assert_eq!(measure(name).value(&ranking), 1.0, "{}", name);
            }
        }

        #[test]
        fn arbitrary_names_never_panic(name in "\\PC{0,12}") {
            let _ = name.parse::<Measure>();
        }

        #[test]
        fn a_printed_measure_reads_as_itself(name in "(ndcg|map|mrr|p|recall|judged|success)@[1-9][0-9]{0,4}") {
            prop_assert_eq!(measure(&measure(&name).to_string()), measure(&name));
        }
    }
}
