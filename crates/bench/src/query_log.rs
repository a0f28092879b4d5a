//! Query logs and samples of them.

use crate::error::Result;
use lanner::eval::Topics;
use lanner_index::text::Analyzer;
use std::collections::HashSet;
use std::path::Path;

/// Reads the texts of all queries of a log, in any format that `lanner search` reads.
pub fn read(path: &Path) -> Result<Vec<String>> {
    let topics = Topics::open(path, None)?.topics;
    Ok(topics.into_iter().map(|topic| topic.text).filter(|text| !text.is_empty()).collect())
}

/// A half of a log: every second query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// For calibrating, choosing constants, and warming up.
    Tuning,
    /// Kept for reporting.
    Reporting,
}

impl Half {
    fn of(self, queries: &[String]) -> impl Iterator<Item = &String> {
        queries.iter().skip(usize::from(self == Half::Reporting)).step_by(2)
    }
}

/// Takes `count` queries spread evenly over the half of a log that is kept for reporting.
pub fn sample(queries: &[String], count: usize) -> Vec<String> {
    spread(&Half::Reporting.of(queries).cloned().collect::<Vec<_>>(), count)
}

/// Takes `count` queries spread evenly over the half of a log that is for tuning.
pub fn tuning_sample(queries: &[String], count: usize) -> Vec<String> {
    spread(&Half::Tuning.of(queries).cloned().collect::<Vec<_>>(), count)
}

/// Takes up to `count` elements, spread evenly over all.
pub fn spread<T: Clone>(all: &[T], count: usize) -> Vec<T> {
    let count = count.min(all.len());
    (0..count).map(|number| all[number * all.len() / count].clone()).collect()
}

/// Returns the distinct known terms of each query of a half. Queries without known terms, and queries whose terms the
/// analyzer would change, are left out.
pub fn known_terms(
    queries: &[String],
    half: Half,
    analyzer: &Analyzer,
    is_known: impl Fn(&str) -> bool,
) -> Vec<Vec<String>> {
    let distinct = |query: &String| {
        let mut seen = HashSet::new();
        let mut terms = analyzer.terms(query);
        terms.retain(|term| is_known(term) && seen.insert(term.clone()));
        terms
    };
    let is_stable = |terms: &Vec<String>| !terms.is_empty() && analyzer.terms(&terms.join(" ")) == *terms;
    half.of(queries).map(distinct).filter(is_stable).collect()
}

/// Makes up to `count` queries of `terms` distinct terms by joining consecutive queries, from starts spread over all.
pub fn joined(queries: &[Vec<String>], count: usize, terms: usize) -> Vec<Vec<String>> {
    let count = count.min(queries.len());
    let from = |number: usize| {
        let mut seen = HashSet::new();
        let following = queries.iter().cycle().skip(number * queries.len() / count).take(queries.len());
        following.flatten().filter(|term| seen.insert(*term)).take(terms).cloned().collect()
    };
    (0..count).map(from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_spread_over_the_half_kept_for_reporting() {
        let queries: Vec<String> = (0..20).map(|number| number.to_string()).collect();
        assert_eq!(sample(&queries, 5), ["1", "5", "9", "13", "17"]);
        assert_eq!(sample(&queries, 100).len(), 10);
        assert!(sample(&[], 3).is_empty());
        assert_eq!(tuning_sample(&queries, 5), ["0", "4", "8", "12", "16"]);
    }

    #[test]
    fn queries_are_reduced_to_their_distinct_known_terms() {
        let analyzer = Analyzer::parse("simple").unwrap();
        let queries = ["tuned on", "The falcon, the unknown", "tuned on", "unknown"].map(str::to_owned);
        let is_known = |term: &str| term != "unknown";
        assert_eq!(known_terms(&queries, Half::Reporting, &analyzer, is_known), [["the", "falcon"]]);
        assert_eq!(known_terms(&queries, Half::Tuning, &analyzer, is_known), [["tuned", "on"], ["tuned", "on"]]);
    }

    #[test]
    fn queries_are_joined_until_they_have_enough_distinct_terms() {
        let query = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let queries = ["a b", "b c", "d", "e"].map(query);
        assert_eq!(joined(&queries, 2, 3), [query("a b c"), query("d e a")]);
        assert_eq!(joined(&queries, 1, 100), [query("a b c d e")]);
    }
}
