//! The options of a query, shared by `search` and `explain`.

use crate::failure::Failure;
use lanner::{Algorithm, Mode, Query, ScoreModel};

/// Options of a query.
#[derive(clap::Args, Clone, Debug)]
pub struct QueryOptions {
    /// How words are combined: `and`, `or`, or `and-or` (AND if it has k hits, else OR)
    #[arg(long, default_value = "or", value_name = "MODE")]
    pub mode: Mode,
    /// The number of hits
    #[arg(short, long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub k: u32,
    /// How many of the best hits to leave out, such as those already seen; ranks continue
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub offset: u32,
    /// The score model: `bm25`, `impact` or `rank-bm25` [default: bm25 if the index has frequencies]
    #[arg(long, value_name = "MODEL")]
    pub score: Option<ScoreModel>,
    /// The share of the static rank in `--score rank-bm25`, from 0 to 1 [default: 0.3]
    #[arg(long, value_name = "SHARE", requires = "score", allow_negative_numbers = true)]
    pub alpha: Option<f32>,
    /// `auto`, `scatter`, `conjunction`, `maxscore`, `block-max-maxscore`, `exhaustive` or `score-at-a-time`; on a GPU
    /// also `term-at-a-time`, `merge-path`, `skip-search`, `parallel-merge-find` (AND; the CPU runs `conjunction`
    /// instead) or `accumulators` (OR; the CPU runs `exhaustive` instead); all give the same answers at different
    /// speeds
    #[arg(long, default_value = "auto", value_name = "NAME")]
    pub algorithm: Algorithm,
    /// The number of postings, strongest first, after which `score-at-a-time` stops; answers may then be approximate
    #[arg(long, value_name = "POSTINGS")]
    pub budget: Option<u64>,
}

impl QueryOptions {
    /// Makes a query with these options, for the hits of the offset, too.
    pub fn query(&self, text: &str) -> Result<Query, Failure> {
        let query =
            Query::new(text).mode(self.mode).k(self.offset as usize + self.k as usize).algorithm(self.algorithm);
        let query = Query { budget: self.budget, ..query };
        Ok(match self.score_model()? {
            Some(model) => query.score(model),
            None => query,
        })
    }

    fn score_model(&self) -> Result<Option<ScoreModel>, Failure> {
        match (self.score, self.alpha) {
            (Some(ScoreModel::RankBm25 { .. }), Some(alpha)) => Ok(Some(ScoreModel::RankBm25 { alpha })),
            (_, Some(_)) => Err(Failure::new("--alpha needs --score rank-bm25; leave it out or choose that score")),
            (model, None) => Ok(model),
        }
    }
}
