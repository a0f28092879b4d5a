//! The oracle: the reference that every answer is compared with, for tests and benchmarks.
//!
//! It shares only the arithmetic of a weight with the engine (`lanner_index::weight`, [`RelativeWeights`] and
//! [`static_units`], which have golden numbers): it keeps (document, frequency) pairs in memory as the analyzer gave them, computes its own
//! statistics, scores every document and sorts them all.

use crate::query::Mode;
use crate::query::answer::Scored;
use crate::query::document_set::DocumentSet;
use crate::query::score::{RelativeWeights, ScoreModel, static_units};
use lanner_index::DocId;
use lanner_index::text::Analyzer;
use lanner_index::weight::{Bm25, Norms, idf, impact_units, length_code, saturation, units};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::OnceLock;

/// A collection in memory that answers queries by scoring every document.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    bm25: Bm25,
    /// The length of each document in tokens.
    lengths: Vec<u32>,
    ranks: Vec<f32>,
    /// The documents of each term, with the frequency or the learned weight.
    postings: HashMap<String, Vec<Posting>>,
    /// The factor from weights to impacts, once it is known.
    scale: OnceLock<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Posting {
    document: u32,
    frequency: u32,
    learned: Option<f32>,
}

/// A query to the oracle.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// The analyzed terms with their weights, in the order of the query; weights of repeated terms are added.
    pub terms: &'a [(String, f64)],
    /// How the terms combine.
    pub mode: Mode,
    /// The number of hits.
    pub k: usize,
    /// How hits are scored.
    pub score: ScoreModel,
    /// The documents that may be hits.
    pub range: Range<u32>,
    /// The documents that may be hits, besides `range`.
    pub filter: Option<&'a DocumentSet>,
}

impl Oracle {
    /// An empty collection.
    pub fn new(bm25: Bm25) -> Oracle {
        Oracle { bm25, ..Oracle::default() }
    }

    /// Analyzes a collection of texts.
    pub fn from_texts<T: AsRef<str>>(bm25: Bm25, analyzer: &Analyzer, texts: impl IntoIterator<Item = T>) -> Oracle {
        let mut oracle = Oracle::new(bm25);
        for text in texts {
            oracle.add(analyzer.terms(text.as_ref()));
        }
        oracle
    }

    /// Adds a document with its terms, one for each token.
    pub fn add<T: Into<String>>(&mut self, terms: impl IntoIterator<Item = T>) {
        self.scale = OnceLock::new();
        let mut frequencies: BTreeMap<String, u32> = BTreeMap::new();
        for term in terms {
            *frequencies.entry(term.into()).or_default() += 1;
        }
        let document = self.documents();
        self.lengths.push(frequencies.values().sum());
        for (term, frequency) in frequencies {
            self.postings.entry(term).or_default().push(Posting { document, frequency, learned: None });
        }
    }

    /// Adds a document whose terms have learned weights; the nearest integer, at least 1, counts as the frequency.
    pub fn add_vector(&mut self, weights: &[(String, f32)]) {
        self.scale = OnceLock::new();
        let document = self.documents();
        let frequency = |weight: f32| weight.round_ties_even().max(1.0) as u32;
        self.lengths.push(weights.iter().map(|(_, weight)| frequency(*weight)).sum());
        for (term, weight) in weights {
            let posting = Posting { document, frequency: frequency(*weight), learned: Some(*weight) };
            self.postings.entry(term.clone()).or_default().push(posting);
        }
    }

    /// Sets the static rank of each document, from 0 to 1.
    pub fn set_ranks(&mut self, ranks: Vec<f32>) {
        self.ranks = ranks;
    }

    /// The number of documents.
    pub fn documents(&self) -> u32 {
        self.lengths.len() as u32
    }

    /// The sum of their lengths.
    pub fn tokens(&self) -> u64 {
        self.lengths.iter().map(|&length| u64::from(length)).sum()
    }

    /// The number of documents with each term.
    pub fn document_frequencies(&self) -> HashMap<String, u64> {
        self.postings.iter().map(|(term, postings)| (term.clone(), postings.len() as u64)).collect()
    }

    /// Answers a query.
    pub fn answer(&self, question: &Question<'_>) -> Vec<Scored> {
        let matches = self.matches(question);
        let different = combined(question.terms).len();
        let best = |least: usize| {
            let passes = |document| {
                question.range.contains(&document) && question.filter.is_none_or(|f| f.contains(DocId(document)))
            };
            let hits = matches.iter().filter(|(document, found)| found.terms >= least && passes(**document));
            let mut hits: Vec<Scored> = hits
                .map(|(&document, found)| {
                    let units = u32::try_from(found.score).expect("the planner refuses larger scores");
                    Scored { document: DocId(document), units }
                })
                .collect();
            hits.sort_by_key(|hit| (Reverse(hit.units), hit.document));
            hits.truncate(question.k);
            hits
        };
        match question.mode {
            Mode::Or => best(1),
            Mode::And => best(different.max(1)),
            Mode::AndOr => {
                Some(best(different.max(1))).filter(|hits| hits.len() >= question.k).unwrap_or_else(|| best(1))
            }
        }
    }

    /// Returns every document with at least one of the terms.
    fn matches(&self, question: &Question<'_>) -> HashMap<u32, Match> {
        let norms = self.norms();
        let scale = match question.score {
            ScoreModel::Impact => *self.scale.get_or_init(|| self.impact_scale(&norms)),
            ScoreModel::Bm25 | ScoreModel::RankBm25 { .. } => 0.0,
        };
        let terms = combined(question.terms);
        let known = terms.iter().filter_map(|(term, weight)| Some((self.postings.get(term)?, *weight)));
        let known: Vec<(&Vec<Posting>, f64)> = known.collect();
        let weights =
            RelativeWeights::new(question.score, known.iter().map(|(found, weight)| (self.idf(found), *weight)));
        let weights = weights.expect("the planner refuses weights that are too far apart");
        let sum: f64 = known.iter().map(|(postings, weight)| self.idf(postings) * weights.of(*weight)).sum();
        let mut matches: HashMap<u32, Match> = HashMap::new();
        for (postings, weight) in known {
            let (idf, weight) = (self.idf(postings), weights.of(weight));
            for posting in postings {
                let saturation = self.saturation(&norms, posting);
                let added = match question.score {
                    ScoreModel::Bm25 => units((idf * weight) as f32, saturation),
                    ScoreModel::Impact => {
                        let value = posting.learned.map_or(idf * f64::from(saturation), f64::from);
                        impact_units(weight as f32, impact(value, scale))
                    }
                    ScoreModel::RankBm25 { alpha } => {
                        units(((1.0 - f64::from(alpha)) * (idf * weight / sum)) as f32, saturation)
                    }
                };
                let found = matches.entry(posting.document).or_default();
                found.score += u64::from(added);
                found.terms += 1;
            }
        }
        if let ScoreModel::RankBm25 { alpha } = question.score {
            for (&document, found) in &mut matches {
                found.score += u64::from(static_units(alpha, self.ranks[document as usize]));
            }
        }
        matches
    }

    fn norms(&self) -> Norms {
        let documents = f64::from(self.documents());
        self.bm25.norms(if documents > 0.0 { self.tokens() as f64 / documents } else { 0.0 })
    }

    fn idf(&self, postings: &[Posting]) -> f64 {
        idf(u64::from(self.documents()), postings.len() as u64)
    }

    fn saturation(&self, norms: &Norms, posting: &Posting) -> f32 {
        saturation(posting.frequency, norms.of(length_code(self.lengths[posting.document as usize])))
    }

    /// Returns the factor from weights to impacts: the largest becomes 255. Learned weights that are all integers from
    /// 1 to 255 stay as they are.
    fn impact_scale(&self, norms: &Norms) -> f64 {
        let (mut largest, mut is_whole) = (0.0f64, true);
        for postings in self.postings.values() {
            let idf = self.idf(postings);
            for posting in postings {
                let weight = match posting.learned {
                    Some(learned) => f64::from(learned),
                    None => idf * f64::from(self.saturation(norms, posting)),
                };
                largest = largest.max(weight);
                is_whole &= posting.learned.is_some() && weight.fract() == 0.0 && (1.0..=255.0).contains(&weight);
            }
        }
        if is_whole || largest == 0.0 { 1.0 } else { 255.0 / largest }
    }
}

/// The score of a document, with the number of terms that it has.
#[derive(Default)]
struct Match {
    score: u64,
    terms: usize,
}

/// Quantizes a weight to an 8-bit impact.
fn impact(weight: f64, scale: f64) -> u32 {
    (weight * scale).round_ties_even().clamp(1.0, 255.0) as u32
}

/// Merges repeated terms, in the order of their first occurrence, and adds their weights.
fn combined(terms: &[(String, f64)]) -> Vec<(String, f64)> {
    let mut combined: Vec<(String, f64)> = Vec::new();
    for (term, weight) in terms {
        match combined.iter_mut().find(|(seen, _)| seen == term) {
            Some((_, sum)) => *sum += weight,
            None => combined.push((term.clone(), *weight)),
        }
    }
    combined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question<'a>(terms: &'a [(String, f64)], mode: Mode, score: ScoreModel) -> Question<'a> {
        Question { terms, mode, k: 10, score, range: 0..u32::MAX, filter: None }
    }

    fn hits(pairs: &[(u32, u32)]) -> Vec<Scored> {
        pairs.iter().map(|&(document, units)| Scored { document: DocId(document), units }).collect()
    }

    #[test]
    fn golden_answers_of_three_documents() {
        let mut oracle = Oracle::new(Bm25::default());
        for terms in [&["a", "a", "b"][..], &["b", "c"], &["a"]] {
            oracle.add(terms.iter().copied());
        }
        // N = 3, average 2, norms .54 + .18 length: 1.08, .9, .72; idf(a) = idf(b) = ln 1.6.
        let weight =
            |frequency: f64, norm: f64| (1.6f64.ln() * frequency / (frequency + norm) * 65536.0).round() as u32;
        let (a0, b0, b1, a2) = (weight(2.0, 1.08), weight(1.0, 1.08), weight(1.0, 0.9), weight(1.0, 0.72));
        let terms = [("a".to_owned(), 1.0), ("b".to_owned(), 1.0)];
        let or = oracle.answer(&question(&terms, Mode::Or, ScoreModel::Bm25));
        assert_eq!(or, hits(&[(0, a0 + b0), (2, a2), (1, b1)]));
        let and = oracle.answer(&question(&terms, Mode::And, ScoreModel::Bm25));
        assert_eq!(and, hits(&[(0, a0 + b0)]));
        let unknown = [("a".to_owned(), 1.0), ("z".to_owned(), 1.0)];
        assert_eq!(oracle.answer(&question(&unknown, Mode::And, ScoreModel::Bm25)), []);
        assert_eq!(oracle.answer(&question(&[], Mode::And, ScoreModel::Bm25)), []);
        let and_or = Question { k: 1, ..question(&terms, Mode::AndOr, ScoreModel::Bm25) };
        assert_eq!(oracle.answer(&and_or), and);
        assert_eq!(oracle.answer(&Question { k: 2, ..and_or }), or[..2]);
    }

    #[test]
    fn learned_weights_are_scaled_unless_they_are_small_whole_numbers() {
        let answer = |weights: [f32; 2]| {
            let mut oracle = Oracle::default();
            oracle.add_vector(&[("a".to_owned(), weights[0])]);
            oracle.add_vector(&[("a".to_owned(), weights[1])]);
            oracle.answer(&question(&[("a".to_owned(), 1.0)], Mode::Or, ScoreModel::Impact))
        };
        assert_eq!(answer([3.0, 200.0]), hits(&[(1, 200), (0, 3)]));
        assert_eq!(answer([0.5, 2.0]), hits(&[(1, 255), (0, 64)]), "63.75 rounds up");
        assert_eq!(answer([1.0, 510.0]), hits(&[(1, 255), (0, 1)]), "at least 1");
    }

    #[test]
    fn ranks_share_the_score_with_normalized_weights() {
        let mut oracle = Oracle::new(Bm25 { k1: 0.0, b: 0.0 });
        oracle.add(["a"]);
        oracle.add(["a", "b"]);
        oracle.set_ranks(vec![1.0, 0.0]);
        let terms = [("a".to_owned(), 1.0)];
        let model = ScoreModel::RankBm25 { alpha: 0.25 };
        let answer = oracle.answer(&question(&terms, Mode::Or, model));
        // With k1 = 0 every saturation is 1, and one term has all the weight.
        assert_eq!(answer, hits(&[(0, 65536), (1, 49152)]));
    }
}
