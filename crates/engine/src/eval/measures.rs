//! Measures of a ranking, with the names of `ir_measures` and the values of `trec_eval`.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::error::EvalError;
use super::ranking::{Ranking, Sorting};

/// A measure of how well a query's hits match its judgements; 0 is worst, 1 is best.
///
/// A document is relevant if its grade is at least `level`, usually 1; unjudged documents are not relevant. Only the
/// first `cut` hits count; without a `cut`, all do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Measure {
    /// Normalized discounted cumulative gain: a grade at rank r gains grade / log2(r + 1), as a
    /// share of the gain of the ideal ranking (Järvelin and Kekäläinen, TOIS 2002). Negative grades gain 0.
    Ndcg {
        /// How many hits count, in the ranking and in the ideal ranking.
        cut: Option<NonZeroU32>,
    },
    /// Expected reciprocal rank: the reader stops at a hit of grade g with probability (2^g - 1) / 2^m (Chapelle et al.,
    /// CIKM 2009). m is the highest grade of all judgements, and at least 4, as in TREC's `gdeval.pl`.
    ExpectedReciprocalRank {
        /// How many hits count.
        cut: Option<NonZeroU32>,
    },
    /// Average precision: the sum of the precisions at each relevant hit, divided by the number of
    /// relevant documents.
    AveragePrecision {
        /// The lowest grade of a relevant document.
        level: NonZeroU32,
        /// How many hits count.
        cut: Option<NonZeroU32>,
    },
    /// The reciprocal of the rank of the first relevant hit.
    ReciprocalRank {
        /// The lowest grade of a relevant document.
        level: NonZeroU32,
        /// How many hits count.
        cut: Option<NonZeroU32>,
    },
    /// Relevant hits divided by `cut`, even if there are fewer hits.
    Precision {
        /// The lowest grade of a relevant document.
        level: NonZeroU32,
        /// How many hits count.
        cut: NonZeroU32,
    },
    /// Relevant hits divided by all relevant documents.
    Recall {
        /// The lowest grade of a relevant document.
        level: NonZeroU32,
        /// How many hits count.
        cut: NonZeroU32,
    },
    /// Precision at R, where R is the number of relevant documents.
    RPrecision {
        /// The lowest grade of a relevant document.
        level: NonZeroU32,
    },
    /// Binary preference: how seldom hits that are judged not relevant stand before relevant ones (Buckley and Voorhees,
    /// SIGIR 2004). Unjudged hits, and those with negative grades, are passed over.
    BinaryPreference {
        /// The lowest grade of a relevant document.
        level: NonZeroU32,
    },
    /// Judged hits divided by hits.
    Judged {
        /// How many hits count.
        cut: Option<NonZeroU32>,
    },
    /// 1 if there is a relevant hit.
    Success {
        /// The lowest grade of a relevant document.
        level: NonZeroU32,
        /// How many hits count.
        cut: NonZeroU32,
    },
}

impl Measure {
    /// Parses measures separated by commas, as in `nDCG@10,AP(rel=2),RR@10`.
    pub fn parse_list(text: &str) -> Result<Vec<Measure>, EvalError> {
        text.split(',').map(|name| name.trim().parse()).collect()
    }

    /// Returns how hits are sorted for this measure.
    pub(super) fn sorting(self) -> Sorting {
        match self {
            Measure::ReciprocalRank { cut: Some(_), .. } | Measure::Judged { .. } => Sorting::Doubles,
            Measure::ExpectedReciprocalRank { .. } => Sorting::DoublesDescending,
            _ => Sorting::Floats,
        }
    }

    /// Returns the value for a query.
    pub(super) fn value(self, ranking: &Ranking) -> f64 {
        match self {
            Measure::Ndcg { cut } => ranking.ndcg(cut),
            Measure::ExpectedReciprocalRank { cut } => ranking.expected_reciprocal_rank(cut),
            Measure::AveragePrecision { level, cut } => ranking.average_precision(level, cut),
            Measure::ReciprocalRank { level, cut } => ranking.reciprocal_rank(level, cut),
            Measure::Precision { level, cut } => ranking.precision(level, cut),
            Measure::Recall { level, cut } => ranking.recall(level, cut),
            Measure::RPrecision { level } => ranking.r_precision(level),
            Measure::BinaryPreference { level } => ranking.binary_preference(level),
            Measure::Judged { cut } => ranking.judged(cut),
            Measure::Success { level, cut } => ranking.success(level, cut),
        }
    }

    /// Returns name, level and cut.
    fn parts(self) -> (&'static str, Option<NonZeroU32>, Option<NonZeroU32>) {
        match self {
            Measure::Ndcg { cut } => ("nDCG", None, cut),
            Measure::ExpectedReciprocalRank { cut } => ("ERR", None, cut),
            Measure::AveragePrecision { level, cut } => ("AP", Some(level), cut),
            Measure::ReciprocalRank { level, cut } => ("RR", Some(level), cut),
            Measure::Precision { level, cut } => ("P", Some(level), Some(cut)),
            Measure::Recall { level, cut } => ("R", Some(level), Some(cut)),
            Measure::RPrecision { level } => ("Rprec", Some(level), None),
            Measure::BinaryPreference { level } => ("Bpref", Some(level), None),
            Measure::Judged { cut } => ("Judged", None, cut),
            Measure::Success { level, cut } => ("Success", Some(level), Some(cut)),
        }
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, level, cut) = self.parts();
        let mut text = name.to_owned();
        if let Some(level) = level.filter(|&level| level != NonZeroU32::MIN) {
            text += &format!("(rel={level})");
        }
        if let Some(cut) = cut {
            text += &format!("@{cut}");
        }
        formatter.pad(&text)
    }
}

impl FromStr for Measure {
    type Err = EvalError;

    /// Parses the names of `ir_measures` (`nDCG@10`, `P(rel=2)@10`, also `MAP`, `MRR@10`, `Recall@100`) and of
    /// `trec_eval` (`ndcg_cut_10`, `map`, `recip_rank`, `P_10`, `recall_100`), in any case.
    fn from_str(text: &str) -> Result<Self, EvalError> {
        parse(&text.to_ascii_lowercase()).ok_or_else(|| EvalError::UnknownMeasure { name: text.to_owned() })
    }
}

fn parse(name: &str) -> Option<Measure> {
    let (name, cut) = match name.split_once('@').or_else(|| split_trec_cut(name)) {
        Some((name, cut)) => (name, Some(parse_number(cut)?)),
        None => (name, None),
    };
    let (name, given_level) = match name.split_once('(') {
        Some((name, level)) => (name, Some(parse_number(level.strip_suffix(')')?.trim().strip_prefix("rel=")?)?)),
        None => (name, None),
    };
    let level = given_level.unwrap_or(NonZeroU32::MIN);
    let measure = match (name, cut) {
        ("ndcg", cut) | ("ndcg_cut", cut @ Some(_)) => Measure::Ndcg { cut },
        ("err", cut) => Measure::ExpectedReciprocalRank { cut },
        ("ap" | "map", cut) | ("map_cut", cut @ Some(_)) => Measure::AveragePrecision { level, cut },
        ("rr" | "mrr" | "recip_rank", cut) => Measure::ReciprocalRank { level, cut },
        ("p" | "precision", Some(cut)) => Measure::Precision { level, cut },
        ("r" | "recall", Some(cut)) => Measure::Recall { level, cut },
        ("rprec", None) => Measure::RPrecision { level },
        ("bpref", None) => Measure::BinaryPreference { level },
        ("judged", cut) => Measure::Judged { cut },
        ("success", Some(cut)) => Measure::Success { level, cut },
        _ => return None,
    };
    // A level that the measure does not have.
    let (_, has_level, _) = measure.parts();
    (given_level.is_none() || has_level.is_some()).then_some(measure)
}

/// Splits `p_10` into `p` and `10`.
fn split_trec_cut(name: &str) -> Option<(&str, &str)> {
    name.rsplit_once('_').filter(|(_, cut)| cut.starts_with(|c: char| c.is_ascii_digit()))
}

fn parse_number(text: &str) -> Option<NonZeroU32> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn measure(name: &str) -> Measure {
        name.parse().unwrap()
    }

    fn value(name: &str, hits: &[(&str, f64)], judgements: &[(&str, i32)]) -> f64 {
        let hits = hits.iter().map(|&(d, score)| (d.to_owned(), score));
        let judgements = judgements.iter().map(|&(d, grade)| (d.to_owned(), grade));
        let ranking = Ranking::new(Some(&hits.collect()), &judgements.collect(), 4, measure(name).sorting());
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
            ("bpref", "Bpref"),
            ("ERR@20", "ERR@20"),
            ("err", "ERR"),
            ("P(rel=2)@10", "P(rel=2)@10"),
            ("map(rel=3)", "AP(rel=3)"),
            ("AP(rel=1)@5", "AP@5"),
            ("Bpref(REL=2)", "Bpref(rel=2)"),
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
            "nERR@10",
            "Bpref@10",
            "nDCG(rel=2)@10",
            "ERR(rel=2)@10",
            "P(rel=0)@10",
            "P(rel=-1)@10",
            "P(rel=2@10",
            "P()@10",
            "P@10(rel=2)",
            "nDCG@10@10",
            "ndcg_cut",
            "_10",
            "@10",
        ] {
            assert_eq!(
                name.parse::<Measure>().unwrap_err().to_string(),
                format!(
                    "measure '{name}' is not known; use nDCG[@k], ERR[@k], AP[@k], RR[@k], P@k, R@k, Rprec, Bpref, Judged[@k] or Success@k, with k at least 1, and (rel=n) before @k in those of relevant documents"
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
    fn a_level_says_which_grades_are_relevant() {
        let hits = [("a", 3.0), ("b", 2.0), ("c", 1.0)];
        let judgements = [("a", 1), ("b", 2), ("c", 3), ("d", 2)];
        assert_eq!(value("P@2", &hits, &judgements), 1.0);
        assert_eq!(value("P(rel=2)@2", &hits, &judgements), 0.5);
        assert_eq!(value("R(rel=2)@2", &hits, &judgements), 1.0 / 3.0);
        assert_eq!(value("RR(rel=3)", &hits, &judgements), 1.0 / 3.0);
        assert_eq!(value("AP(rel=3)", &hits, &judgements), 1.0 / 3.0);
        assert_eq!(value("Rprec(rel=2)", &hits, &judgements), 2.0 / 3.0);
        assert_eq!(value("Success(rel=4)@3", &hits, &judgements), 0.0);
    }

    #[test]
    fn the_binary_preference_passes_over_hits_without_judgement() {
        let judgements = [("r", 1), ("s", 1), ("n", 0), ("m", 0), ("negative", -1)];
        let hits = [("r", 9.0), ("x", 8.0), ("negative", 7.0), ("n", 6.0), ("s", 5.0)];
        // One of min(2 relevant, 2 not relevant) stands before `s`.
        assert_eq!(value("Bpref", &hits, &judgements), (1.0 + 0.5) / 2.0);
    }

    #[test]
    fn the_expected_reciprocal_rank_is_that_of_readers_who_stop() {
        // Grades 4 and 1: the reader stops with probability 15/16, and 1/16 of those who go on.
        let value = value("ERR", &[("a", 2.0), ("b", 1.0)], &[("a", 4), ("b", 1)]);
        assert_eq!(value, 15.0 / 16.0 + 1.0 / 2.0 * (1.0 / 16.0) * (1.0 / 16.0));
    }

    #[test]
    fn a_query_with_only_negative_judgements_scores_zero() {
        // The package does not return on such a query; trec_eval's definitions give 0.
        let hits = [("a", 2.0), ("b", 1.0)];
        for name in ["nDCG", "nDCG@5", "AP", "RR", "P@5", "R@5", "Rprec", "Success@1", "ERR", "Bpref"] {
            assert_eq!(value(name, &hits, &[("a", -1), ("c", -2)]), 0.0);
        }
        assert_eq!(value("Judged", &hits, &[("a", -1), ("c", -2)]), 0.5);
    }

    fn judgements() -> impl Strategy<Value = HashMap<String, i32>> {
        proptest::collection::hash_map("[a-f]{1,2}", -2..4i32, 1..20)
    }

    const NAMES: [&str; 20] = [
        "ERR",
        "ERR@3",
        "Bpref",
        "Bpref(rel=2)",
        "AP(rel=2)@3",
        "R(rel=3)@3",
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
                let ranking = Ranking::new(Some(&hits), &judgements, 4, measure(name).sorting());
                let value = measure(name).value(&ranking);
                prop_assert!((0.0..=1.0).contains(&value), "{} is {}", name, value);
            }
        }

        #[test]
        fn a_perfect_ranking_has_full_value(judgements in judgements()) {
            prop_assume!(judgements.values().any(|&grade| grade > 0));
            let hits = judgements.iter().map(|(d, &grade)| (d.clone(), f64::from(grade))).collect();
            for name in ["nDCG", "nDCG@1", "nDCG@3", "AP", "RR", "Rprec", "Success@1", "R@1000", "P@1", "Bpref"] {
                let ranking = Ranking::new(Some(&hits), &judgements, 4, measure(name).sorting());
                prop_assert_eq!(measure(name).value(&ranking), 1.0, "{}", name);
            }
        }

        #[test]
        fn arbitrary_names_never_panic(name in "\\PC{0,12}") {
            let _ = name.parse::<Measure>();
        }

        #[test]
        fn a_printed_measure_reads_as_itself(
            name in "((map|mrr|p|recall|success)(\\(rel=[1-9]\\))?|err|ndcg|judged)@[1-9][0-9]{0,4}|bpref\\(rel=[1-9]\\)"
        ) {
            prop_assert_eq!(measure(&measure(&name).to_string()), measure(&name));
        }
    }
}
