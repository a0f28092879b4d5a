//! Score models. The arithmetic of a posting's weight is in `lanner_index::weight`.

use lanner_index::open::Column;
use lanner_index::weight::ONE;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How documents are scored. It belongs to the query: no planner or executor changes it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScoreModel {
    /// The sum over the query's terms of `idf · query weight · saturation`. Query weights are relative: the smallest of
    /// a query counts as 1.
    Bm25,
    /// The sum of the 8-bit weights made at build time, each times its query weight, of which the smallest counts as 1.
    Impact,
    /// `alpha · rank + (1 - alpha) · Σ w · saturation`, where `w` is `idf · query weight` divided by the sum of these
    /// over the query's terms: a static rank and BM25 on one scale from 0 to 1.
    RankBm25 {
        /// The share of the static rank, from 0 to 1.
        alpha: f32,
    },
}

/// The share of the static rank where none is given.
pub const DEFAULT_ALPHA: f32 = 0.3;

impl ScoreModel {
    /// The column of the index that the model reads.
    pub fn column(&self) -> Column {
        match self {
            ScoreModel::Bm25 | ScoreModel::RankBm25 { .. } => Column::Frequency,
            ScoreModel::Impact => Column::Impact,
        }
    }

    /// The share of the static rank; 0 without one.
    pub(crate) fn alpha(&self) -> f32 {
        match self {
            ScoreModel::Bm25 | ScoreModel::Impact => 0.0,
            ScoreModel::RankBm25 { alpha } => *alpha,
        }
    }

    /// A number of units as a score: 65,536 units make 1.0, and units of impacts are whole.
    pub fn score(&self, units: u32) -> f64 {
        f64::from(units) * f64::from(self.unit())
    }

    /// The score of one unit, a power of two: multiplying by it is exact.
    #[inline]
    pub(crate) fn unit(&self) -> f32 {
        match self {
            ScoreModel::Impact => 1.0,
            ScoreModel::Bm25 | ScoreModel::RankBm25 { .. } => 1.0 / ONE,
        }
    }
}

/// The weights of a query's terms relative to the smallest, which is 1: only the ratios of weights count, so that
/// scaling all of them changes no answer. Where scores would not fit 32 bits, all are halved as often as it takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RelativeWeights {
    smallest: f64,
    factor: f64,
}

/// The sum of a query's largest scores, in units, up to which weights are not halved. Bounds of chunks may lie 2/255 and
/// 1,024 units for each term above them, and must fit 32 bits too.
const LARGEST_SUM: f64 = 0.99 * (1u64 << 32) as f64 - (1 << 21) as f64;
/// How often the weights of frequencies may be halved: 64 units are left of a score of 1.0 with the smallest weight.
const MOST_HALVINGS: i32 = 10;

impl RelativeWeights {
    /// For terms given by their idf and weight. The error holds the largest ratio of two weights, and about how large
    /// it may be.
    pub fn new(
        score: ScoreModel,
        terms: impl Iterator<Item = (f64, f64)> + Clone,
    ) -> Result<RelativeWeights, (f64, f64)> {
        let smallest = terms.clone().map(|(_, weight)| weight).fold(f64::INFINITY, f64::min);
        let whole = RelativeWeights { smallest, factor: 1.0 };
        let largest_score = |(idf, weight)| match score {
            ScoreModel::Bm25 => idf * whole.of(weight) * f64::from(ONE),
            ScoreModel::Impact => whole.of(weight) * 255.0,
            // These are divided by their sum.
            ScoreModel::RankBm25 { .. } => 0.0,
        };
        let sum = terms.clone().map(largest_score).sum::<f64>();
        let halvings = (0..).find(|&halvings| sum * 0.5f64.powi(halvings) <= LARGEST_SUM).unwrap_or(i32::MAX);
        let most = if score == ScoreModel::Impact { 0 } else { MOST_HALVINGS };
        if halvings > most {
            let ratio = terms.map(|(_, weight)| weight / smallest).fold(1.0, f64::max);
            return Err((ratio, (ratio * LARGEST_SUM * 2f64.powi(most) / sum).floor()));
        }
        Ok(RelativeWeights { factor: 0.5f64.powi(halvings), ..whole })
    }

    /// The weight that counts in the place of a weight of the query. Single precision makes the ratios of weights that
    /// were scaled by a decimal number equal again.
    pub fn of(&self, weight: f64) -> f64 {
        f64::from((weight / self.smallest) as f32) * self.factor
    }
}

/// The static part of a score in units: `alpha · rank · 65536`, each operation in single precision, rounded half to
/// even. It may be 0; a rank below 0 counts as 0.
#[inline]
pub fn static_units(alpha: f32, rank: f32) -> u32 {
    ((alpha * rank) * ONE).round_ties_even() as u32
}

impl fmt::Display for ScoreModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScoreModel::Bm25 => f.write_str("bm25"),
            ScoreModel::Impact => f.write_str("impact"),
            ScoreModel::RankBm25 { alpha } => write!(f, "rank-bm25:{alpha}"),
        }
    }
}

/// The error for an unknown score model.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown score model {0:?}; give bm25, impact, rank-bm25, or rank-bm25:ALPHA with ALPHA from 0 to 1")]
pub struct UnknownScoreModel(String);

impl FromStr for ScoreModel {
    type Err = UnknownScoreModel;

    fn from_str(name: &str) -> Result<Self, UnknownScoreModel> {
        let unknown = || UnknownScoreModel(name.to_owned());
        match name.split_once(':') {
            None if name == "bm25" => Ok(ScoreModel::Bm25),
            None if name == "impact" => Ok(ScoreModel::Impact),
            None if name == "rank-bm25" => Ok(ScoreModel::RankBm25 { alpha: DEFAULT_ALPHA }),
            Some(("rank-bm25", alpha)) => {
                let alpha = alpha.parse().ok().filter(|alpha| (0.0..=1.0).contains(alpha));
                Ok(ScoreModel::RankBm25 { alpha: alpha.ok_or_else(unknown)? })
            }
            _ => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_static_parts() {
        assert_eq!(static_units(0.3, 1.0), 19_661, "19660.8 rounds up");
        assert_eq!(static_units(0.5, 0.5), 16_384);
        assert_eq!(static_units(1.0, 1.0), 65_536);
        assert_eq!(static_units(1.0, 1.5 / 65536.0), 2, "1.5 rounds half to even");
        assert_eq!(static_units(1.0, 0.5 / 65536.0), 0, "0.5 rounds half to even");
        assert_eq!(static_units(0.3, 0.0), 0);
        assert_eq!(static_units(0.3, -1.0), 0);
        assert_eq!(static_units(0.3, f32::NAN), 0);
    }

    #[test]
    fn weights_are_relative_to_the_smallest_and_halved_until_scores_fit() {
        let relative = |score, weights: &[f64]| {
            let terms = weights.iter().map(|&weight| (8.0, weight));
            let relative = RelativeWeights::new(score, terms)?;
            Ok::<Vec<f64>, (f64, f64)>(weights.iter().map(|&weight| relative.of(weight)).collect())
        };
        assert_eq!(relative(ScoreModel::Bm25, &[1.0, 3.0]), Ok(vec![1.0, 3.0]));
        assert_eq!(relative(ScoreModel::Bm25, &[0.1, 0.3]), Ok(vec![1.0, 3.0]));
        assert_eq!(relative(ScoreModel::Bm25, &[1e6]), Ok(vec![1.0]));
        assert_eq!(relative(ScoreModel::Bm25, &[]), Ok(vec![]));
        // 8 · 65,536 · 8,193 units need 33 bits.
        assert_eq!(relative(ScoreModel::Bm25, &[0.5, 4096.0]), Ok(vec![0.5, 4096.0]));
        assert_eq!(relative(ScoreModel::Impact, &[1.0, 1e6]), Ok(vec![1.0, 1e6]));
        let (ratio, most) = relative(ScoreModel::Bm25, &[1e-6, 1e6]).unwrap_err();
        assert_eq!(ratio, 1e12);
        assert!(
            relative(ScoreModel::Bm25, &[1.0, most - 10.0]).is_ok()
                && relative(ScoreModel::Bm25, &[1.0, most + 10.0]).is_err()
        );
        let (_, most) = relative(ScoreModel::Impact, &[1e-6, 1e6]).unwrap_err();
        assert!(
            relative(ScoreModel::Impact, &[1.0, most - 10.0]).is_ok()
                && relative(ScoreModel::Impact, &[1.0, most + 10.0]).is_err()
        );
        assert!(relative(ScoreModel::RankBm25 { alpha: 0.5 }, &[1e-6, 1e6]).is_ok());
    }

    #[test]
    fn a_model_is_parsed_from_what_it_prints() {
        for model in [ScoreModel::Bm25, ScoreModel::Impact, ScoreModel::RankBm25 { alpha: 0.25 }] {
            assert_eq!(model.to_string().parse(), Ok(model));
        }
        assert_eq!("rank-bm25".parse(), Ok(ScoreModel::RankBm25 { alpha: DEFAULT_ALPHA }));
        for name in ["", "bm26", "bm25:1", "rank-bm25:", "rank-bm25:2", "rank-bm25:nan"] {
            assert!(name.parse::<ScoreModel>().is_err(), "{name}");
        }
    }
}
