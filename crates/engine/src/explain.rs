//! Explains the score of a document: term by term, in the integers that were added.

use crate::algorithms::cursor::Cursor;
use crate::algorithms::weigher::{Frequencies, Impacts, Weigher};
use crate::query::Mode;
use crate::query::plan::{Plan, PlannedList};
use crate::query::score::{ScoreModel, static_units};
use lanner_index::DocId;
use lanner_index::format::IndexError;
use lanner_index::format::segment::Section;
use lanner_index::open::{Column, Index};
use lanner_index::weight::{length_of, saturation};
use serde::Serialize;
use std::fmt;

/// The parts of a document's score.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The document.
    pub document: DocId,
    /// The score model.
    pub model: ScoreModel,
    /// Its score in units: the sum of the weights of all parts.
    pub score: u32,
    /// Whether it can be a hit: it has all terms (AND) or at least one (OR, AND+OR), and the filter lets it pass.
    pub matches: bool,
    /// The length of the document in tokens.
    pub length: u32,
    /// The length that its score is computed with: the smallest with the same 8-bit code, exact up to 40; `None` in the
    /// model `impact`, where lengths only count when impacts are made.
    pub scored_length: Option<u32>,
    /// The part of the static rank; `None` in models without one.
    pub static_part: Option<StaticPart>,
    /// The part of each term of the query.
    pub terms: Vec<TermPart>,
    /// Terms that the index does not have.
    pub missing: Vec<String>,
}

/// The static rank's part of a score.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StaticPart {
    /// The document's rank, from 0 to 1.
    pub rank: f32,
    /// Its weight in units.
    pub weight: u32,
}

/// One term's part of a score.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TermPart {
    /// The term.
    pub term: String,
    /// Its weight in the query.
    pub query_weight: f64,
    /// The weight that counts: relative to the smallest of the query.
    pub relative_weight: f64,
    /// Documents with the term.
    pub document_frequency: u64,
    /// Its inverse document frequency.
    pub idf: f64,
    /// The factor of the document's saturation or impact.
    pub multiplier: f32,
    /// The term's posting for the document; `None` if the document does not have the term.
    pub posting: Option<Posting>,
}

/// A posting with its weight.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Posting {
    /// The frequency, or the impact in the model `impact`.
    pub value: u32,
    /// `tf / (tf + norm)`; `None` for impacts.
    pub saturation: Option<f32>,
    /// The weight in units.
    pub weight: u32,
}

impl Explanation {
    /// Explains the score of a document under a plan; `None` if the index has no such document.
    pub(crate) fn new(plan: &Plan, index: &Index, document: DocId) -> Result<Option<Explanation>, IndexError> {
        if document.0 >= index.documents() {
            return Ok(None);
        }
        index.segment().check_section(Section::Lengths)?;
        let static_part = match plan.score {
            ScoreModel::Bm25 | ScoreModel::Impact => None,
            ScoreModel::RankBm25 { alpha } => {
                let rank = index.segment().rank(document.0).unwrap_or(0.0);
                Some(StaticPart { rank, weight: static_units(alpha, rank) })
            }
        };
        let parts = plan.lists.iter().map(|list| match plan.score.column() {
            Column::Frequency => part(index, list, Frequencies::new(plan, index), document),
            Column::Impact => part(index, list, Impacts, document),
        });
        let terms = parts.collect::<Result<Vec<TermPart>, IndexError>>()?;
        let weights = terms.iter().filter_map(|term| term.posting.as_ref()).map(|posting| posting.weight);
        let start = static_part.as_ref().map_or(0, |part| part.weight);
        let found = terms.iter().filter(|term| term.posting.is_some()).count();
        let has_terms = match plan.mode {
            Mode::And => found > 0 && found == terms.len() && plan.missing.is_empty(),
            Mode::Or | Mode::AndOr => found > 0,
        };
        let passes = plan.filter.as_ref().is_none_or(|filter| filter.contains(document));
        Ok(Some(Explanation {
            document,
            model: plan.score,
            score: weights.fold(start, u32::wrapping_add),
            matches: has_terms && passes && plan.range.contains(&document.0),
            length: index.length(document),
            scored_length: (plan.score.column() == Column::Frequency).then(|| length_of(length_code(index, document))),
            static_part,
            terms,
            missing: plan.missing.to_vec(),
        }))
    }
}

fn length_code(index: &Index, document: DocId) -> u8 {
    index.length_codes().get(document.0 as usize).copied().unwrap_or(0)
}

fn part<W: Weigher>(index: &Index, list: &PlannedList, weigher: W, document: DocId) -> Result<TermPart, IndexError> {
    let range = document.0..document.0.saturating_add(1);
    let mut cursor = Cursor::open(index, list, weigher, range)?;
    let posting = (cursor.document() == document.0).then(|| Posting {
        value: cursor.value(),
        saturation: (W::COLUMN == Column::Frequency)
            .then(|| saturation(cursor.value(), index.norms().of(length_code(index, document)))),
        weight: cursor.weight(),
    });
    Ok(TermPart {
        term: list.term.clone(),
        query_weight: list.query_weight,
        relative_weight: list.relative_weight,
        document_frequency: list.document_frequency,
        idf: list.idf,
        multiplier: list.multiplier,
        posting,
    })
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |units: u32| format!("{units:>10} units {:>10.5}", self.model.score(units));
        let Explanation { document, model, length, .. } = self;
        write!(f, "{}  score of document {} by {model}, length {length}", shown(self.score), document.0)?;
        match self.scored_length {
            Some(scored) => writeln!(f, ", scored as {scored}")?,
            None => writeln!(f)?,
        }
        if let Some(part) = &self.static_part {
            writeln!(f, "{}  static rank {}", shown(part.weight), part.rank)?;
        }
        for TermPart { term, query_weight, relative_weight, document_frequency, idf, multiplier, posting } in
            &self.terms
        {
            let Some(Posting { value, saturation, weight }) = posting else {
                writeln!(f, "{}  {term}: not in the document", shown(0))?;
                continue;
            };
            write!(f, "{}  {term}: multiplier {multiplier:.6} (weight {query_weight}, ", shown(*weight))?;
            if query_weight != relative_weight {
                write!(f, "which counts as {relative_weight}, ")?;
            }
            write!(f, "idf {idf:.5} from {document_frequency} documents), ")?;
            match saturation {
                Some(saturation) => writeln!(f, "frequency {value}, saturation {saturation:.6}")?,
                None => writeln!(f, "impact {value}")?,
            }
        }
        for term in &self.missing {
            writeln!(f, "{}  {term}: not in the index", shown(0))?;
        }
        if !self.matches {
            writeln!(f, "the document is not a hit: terms are missing in it, or the filter keeps it out")?;
        }
        Ok(())
    }
}
