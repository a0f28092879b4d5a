//! The ranking of one query, and what measures count in it.
//!
//! Hits are sorted in one of three ways, because `ir_measures` (0.4.3) uses several tools. Most measures
//! come from `trec_eval`, which reads scores as 32-bit floats and breaks ties by descending document
//! id. `RR@k` (but not `RR`) and `Judged` use 64-bit scores and break ties by ascending document id; `ERR`, from
//! `gdeval.pl`, uses 64-bit scores and breaks ties by descending document id.
//! Runs whose scores strictly decrease, as ours do, have the same values either way.

use super::run_id;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::num::NonZeroU32;

/// How hits are sorted; see the head of this file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sorting {
    /// By 32-bit scores, then by descending document id.
    Floats,
    /// By 64-bit scores, then by ascending document id.
    Doubles,
    /// By 64-bit scores, then by descending document id.
    DoublesDescending,
}

impl Sorting {
    /// All ways, in the order of their numbers.
    pub(super) const ALL: [Sorting; 3] = [Sorting::Floats, Sorting::Doubles, Sorting::DoublesDescending];

    fn compare(self, a: (&String, &f64), b: (&String, &f64)) -> Ordering {
        // Scores are finite, so they are always comparable.
        let descending = |a: f64, b: f64| b.partial_cmp(&a).unwrap_or(Ordering::Equal);
        match self {
            Sorting::Floats => {
                let (a_score, b_score) = (*a.1 as f32, *b.1 as f32);
                descending(f64::from(a_score), f64::from(b_score)).then_with(|| b.0.cmp(a.0))
            }
            Sorting::Doubles => descending(*a.1, *b.1).then_with(|| a.0.cmp(b.0)),
            Sorting::DoublesDescending => descending(*a.1, *b.1).then_with(|| b.0.cmp(a.0)),
        }
    }
}

/// The grades of the hits of one query, by rank.
#[derive(Debug)]
pub(super) struct Ranking {
    // grades[r]: the grade of the hit at rank r + 1, if it was judged.
    grades: Vec<Option<i32>>,
    // All grades of the query that are not negative, highest first.
    best: Vec<i32>,
    // The highest grade that a document of any query can have.
    highest: i32,
}

impl Ranking {
    /// Sorts `hits` (document to score) and looks up their grades; `highest` is the highest grade of any query.
    pub(super) fn new(
        hits: Option<&HashMap<String, f64>>,
        judgements: &HashMap<String, i32>,
        highest: i32,
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
        let mut best: Vec<i32> = judgements.values().copied().filter(|&grade| grade >= 0).collect();
        best.sort_unstable_by(|a, b| b.cmp(a));
        Ranking { grades: hits.into_iter().map(grade).collect(), best, highest }
    }

    /// Returns the number of relevant documents, in the ranking or not.
    fn relevant(&self, level: NonZeroU32) -> usize {
        self.best.partition_point(|&grade| is_relevant(Some(grade), level))
    }

    /// Returns the grades of the first `cut` hits.
    fn first(&self, cut: Option<NonZeroU32>) -> &[Option<i32>] {
        up_to(&self.grades, cut)
    }

    fn relevant_hits(&self, level: NonZeroU32, cut: NonZeroU32) -> usize {
        count_relevant(self.first(Some(cut)), level)
    }

    pub(super) fn precision(&self, level: NonZeroU32, cut: NonZeroU32) -> f64 {
        share(self.relevant_hits(level, cut), cut.get() as usize)
    }

    pub(super) fn recall(&self, level: NonZeroU32, cut: NonZeroU32) -> f64 {
        share(self.relevant_hits(level, cut), self.relevant(level))
    }

    pub(super) fn success(&self, level: NonZeroU32, cut: NonZeroU32) -> f64 {
        f64::from(u8::from(self.relevant_hits(level, cut) > 0))
    }

    pub(super) fn ndcg(&self, cut: Option<NonZeroU32>) -> f64 {
        let best = gain(up_to(&self.best, cut).iter().copied());
        if best == 0.0 {
            return 0.0;
        }
        gain(self.first(cut).iter().map(|grade| grade.unwrap_or(0))) / best
    }

    pub(super) fn expected_reciprocal_rank(&self, cut: Option<NonZeroU32>) -> f64 {
        let highest = f64::from(self.highest);
        let mut reaching = 1.0;
        let terms = (1u32..).zip(self.first(cut)).map(|(rank, grade)| {
            let grade = f64::from(grade.unwrap_or(0).max(0));
            let stopping = (grade - highest).exp2() - (-highest).exp2();
            let term = reaching * stopping / f64::from(rank);
            reaching *= 1.0 - stopping;
            term
        });
        sum(terms)
    }

    pub(super) fn average_precision(&self, level: NonZeroU32, cut: Option<NonZeroU32>) -> f64 {
        if self.relevant(level) == 0 {
            return 0.0;
        }
        let relevant_ranks =
            (1usize..).zip(self.first(cut)).filter_map(|(rank, &grade)| is_relevant(grade, level).then_some(rank));
        let precisions = (1usize..).zip(relevant_ranks).map(|(found, rank)| share(found, rank));
        sum(precisions) / self.relevant(level) as f64
    }

    pub(super) fn reciprocal_rank(&self, level: NonZeroU32, cut: Option<NonZeroU32>) -> f64 {
        match self.first(cut).iter().position(|&grade| is_relevant(grade, level)) {
            Some(above) => share(1, above + 1),
            None => 0.0,
        }
    }

    pub(super) fn r_precision(&self, level: NonZeroU32) -> f64 {
        let depth = self.relevant(level).min(self.grades.len());
        share(count_relevant(&self.grades[..depth], level), self.relevant(level))
    }

    pub(super) fn binary_preference(&self, level: NonZeroU32) -> f64 {
        let relevant = self.relevant(level);
        // Negative grades count as unjudged.
        let most_before = relevant.min(self.best.len() - relevant);
        let mut before = 0;
        let mut value = 0.0;
        for grade in self.grades.iter().flatten().filter(|&&grade| grade >= 0) {
            if is_relevant(Some(*grade), level) {
                value += 1.0 - share(before.min(relevant), most_before);
            } else {
                before += 1;
            }
        }
        if relevant == 0 { 0.0 } else { value / relevant as f64 }
    }

    pub(super) fn judged(&self, cut: Option<NonZeroU32>) -> f64 {
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

fn is_relevant(grade: Option<i32>, level: NonZeroU32) -> bool {
    grade.and_then(|grade| u32::try_from(grade).ok()).is_some_and(|grade| grade >= level.get())
}

fn count_relevant(grades: &[Option<i32>], level: NonZeroU32) -> usize {
    grades.iter().filter(|&&grade| is_relevant(grade, level)).count()
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
