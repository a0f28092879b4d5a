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
    /// The sum over the query's terms of `idf · query weight · saturation`.
    Bm25,
    /// The sum of the 8-bit weights made at build time, each times its query weight.
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
