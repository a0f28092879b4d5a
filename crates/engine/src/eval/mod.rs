//! Evaluation: query logs, runs, relevance judgements, and the measures of a run.
//!
//! Files are in the formats of TREC and BEIR, plain, gzip or zstd. Measures have the names and values
//! of `ir_measures` and `trec_eval`.
//!
//! ```
//! use std::path::Path;
//! use lanner::eval::{Measure, Qrels, Run, evaluate};
//!
//! let qrels = Qrels::read(Path::new("qrels"), &b"1 0 a 1\n1 0 b 0\n"[..])?;
//! let run = Run::read(Path::new("run"), &b"1 Q0 b 1 2.5 x\n1 Q0 a 2 1.5 x\n"[..])?;
//! let evaluation = evaluate(&qrels, &run, &Measure::parse_list("RR@10,R@100")?);
//! assert_eq!(evaluation.mean, [0.5, 1.0]);
//! # Ok::<(), lanner::eval::EvalError>(())
//! ```

mod by_query;
mod error;
mod lines;
mod measures;
mod qrels;
mod ranking;
mod run;
mod run_id;
mod significance;
mod topics;
mod trec_topics;

use std::fmt::Write;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

pub use error::EvalError;
pub use measures::Measure;
pub use qrels::Qrels;
pub use run::{Run, RunHit, RunWriter};
pub use significance::{PairedTest, compare};
pub use topics::{Topic, TopicFormat, Topics};

use ranking::{Ranking, Sorting};

/// The values of a run.
///
/// As JSON: `measures`, `queries`, `queries_without_hits`, `queries_without_judgements`, `mean`
/// (measure to value) and `per_query` (query to measure to value), sorted as the fields below.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// The measures, without repetitions; values are in the same order.
    pub measures: Vec<Measure>,
    /// The values of each judged query, in the order of the judgements.
    pub per_query: Vec<QueryValues>,
    /// The mean over all judged queries.
    pub mean: Vec<f64>,
    /// The number of judged queries without hits in the run; they count as 0 in the mean.
    pub queries_without_hits: usize,
    /// The number of queries of the run without judgements; they are ignored.
    pub queries_without_judgements: usize,
}

/// The values of one query.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryValues {
    /// The query's id.
    pub query: String,
    /// Its values, in the order of the measures.
    pub values: Vec<f64>,
}

/// Measures `run` against `qrels`; judged queries count even if the run does not have them.
///
/// An id of the run is that of a judgement if both are written alike, or if it is percent-coded in the run as
/// [`RunWriter`] does it and not in the judgements.
pub fn evaluate(qrels: &Qrels, run: &Run, measures: &[Measure]) -> Evaluation {
    let measures = without_repeats(measures);
    let highest = qrels.highest_grade().max(HIGHEST_GRADE);
    let per_query: Vec<QueryValues> = qrels
        .iter()
        .map(|(query, judgements)| {
            let hits = run.hits(query).or_else(|| run.hits(&run_id::encode(query)));
            let rankings = Sorting::ALL.map(|sorting| Ranking::new(hits, judgements, highest, sorting));
            let value = |measure: &Measure| measure.value(&rankings[measure.sorting() as usize]);
            QueryValues { query: query.to_owned(), values: measures.iter().map(value).collect() }
        })
        .collect();
    let is_judged = |query: &str| qrels.judges(query) || qrels.judges(&run_id::decode(query));
    let judged = run.iter().filter(|(query, _)| is_judged(query)).count();
    Evaluation {
        mean: mean(&per_query, measures.len()),
        queries_without_hits: per_query.len() - judged,
        queries_without_judgements: run.queries() - judged,
        measures,
        per_query,
    }
}

/// The highest grade that ERR reckons with, if no judgement is higher.
const HIGHEST_GRADE: i32 = 4;

fn without_repeats(measures: &[Measure]) -> Vec<Measure> {
    let mut kept = Vec::new();
    for measure in measures {
        if !kept.contains(measure) {
            kept.push(*measure);
        }
    }
    kept
}

fn mean(per_query: &[QueryValues], measures: usize) -> Vec<f64> {
    let sum = |measure: usize| per_query.iter().map(|query| query.values[measure]).sum();
    let mean = |sum: f64| sum / per_query.len() as f64;
    (0..measures).map(sum).map(mean).collect()
}

impl Evaluation {
    /// Returns the means as an aligned table, one measure per line.
    pub fn mean_table(&self) -> String {
        let names: Vec<String> = self.measures.iter().map(Measure::to_string).collect();
        let width = names.iter().map(String::len).max().unwrap_or(0);
        let mut table = String::new();
        for (name, value) in names.iter().zip(&self.mean) {
            writeln!(table, "{name:width$}  {value:.4}").expect("a String takes any text");
        }
        table
    }

    /// Returns all values as an aligned table, one query per line, then the mean.
    pub fn per_query_table(&self) -> String {
        let ids = self.per_query.iter().map(|row| row.query.as_str());
        let longest = ids.chain(["query"]).map(|id| id.chars().count()).max();
        let width = longest.unwrap_or(0);
        let mut table = format!("{:width$}", "query");
        for measure in &self.measures {
            write!(table, "  {measure:>6}").expect("a String takes any text");
        }
        table.push('\n');
        for row in &self.per_query {
            self.push_row(&mut table, &format!("{:width$}", row.query), &row.values);
        }
        self.push_row(&mut table, &format!("{:width$}", "mean"), &self.mean);
        table
    }

    /// Appends a row with values aligned to the names of their measures.
    fn push_row(&self, table: &mut String, head: &str, values: &[f64]) {
        table.push_str(head);
        for (measure, value) in self.measures.iter().zip(values) {
            let width = measure.to_string().len().max("0.0000".len());
            write!(table, "  {value:width$.4}").expect("a String takes any text");
        }
        table.push('\n');
    }
}

impl Serialize for Evaluation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let named = |values| Named { measures: &self.measures, values };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("measures", &self.measures)?;
        map.serialize_entry("queries", &self.per_query.len())?;
        map.serialize_entry("queries_without_hits", &self.queries_without_hits)?;
        map.serialize_entry("queries_without_judgements", &self.queries_without_judgements)?;
        map.serialize_entry("mean", &named(&self.mean))?;
        map.serialize_entry("per_query", &PerQuery(self))?;
        map.end()
    }
}

/// Serializes values as a map from measure to value.
struct Named<'a> {
    measures: &'a [Measure],
    values: &'a [f64],
}

impl Serialize for Named<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.measures.iter().zip(self.values))
    }
}

/// Serializes the values of all queries as a map from query id to values.
struct PerQuery<'a>(&'a Evaluation);

impl Serialize for PerQuery<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let measures = &self.0.measures;
        serializer.collect_map(self.0.per_query.iter().map(|row| {
            let values = &row.values;
            (&row.query, Named { measures, values })
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn evaluation(measures: &str) -> Evaluation {
        let qrels = "q10 0 a 1\nq10 0 b 0\nq2 0 a 2\nq2 0 c 1\n";
        let run = "q2 Q0 c 1 3 x\nq2 Q0 d 2 2 x\nq2 Q0 a 3 1 x\nextra Q0 a 1 1 x\n";
        evaluate(
            &Qrels::read(Path::new("qrels"), qrels.as_bytes()).unwrap(),
            &Run::read(Path::new("run"), run.as_bytes()).unwrap(),
            &Measure::parse_list(measures).unwrap(),
        )
    }

    #[test]
    fn a_judged_query_without_hits_counts_as_zero() {
        let evaluation = evaluation("RR,P@2");
        assert_eq!(evaluation.per_query[0].query, "q10");
        assert_eq!(evaluation.per_query[0].values, [0.0, 0.0]);
        assert_eq!(evaluation.per_query[1].values, [1.0, 0.5]);
        assert_eq!(evaluation.mean, [0.5, 0.25]);
        assert_eq!(evaluation.queries_without_hits, 1);
        assert_eq!(evaluation.queries_without_judgements, 1);
    }

    #[test]
    fn an_id_is_found_as_it_is_written_or_decoded() {
        let judged = |qrels: &str, run: &str| {
            let qrels = Qrels::read(Path::new("qrels"), qrels.as_bytes()).unwrap();
            let run = Run::read(Path::new("run"), run.as_bytes()).unwrap();
            let evaluation = evaluate(&qrels, &run, &Measure::parse_list("P@2").unwrap());
            assert_eq!(evaluation.queries_without_judgements, 0);
            evaluation.mean[0] * 2.0
        };
        let beir = |id: &str| format!("query-id\tcorpus-id\tscore\nq 1\t{id}\t1\n");
        let trec = |id: &str| format!("q%201 0 {id} 1\n");
        let run = |ids: &[&str]| -> String { ids.iter().map(|id| format!("q%201 Q0 {id} 1 1 x\n")).collect() };
        assert_eq!(judged(&beir("a b"), &run(&["a%20b"])), 1.0);
        assert_eq!(judged(&trec("a%20b"), &run(&["a%20b"])), 1.0);
        // The id of the document is a%20b itself.
        assert_eq!(judged(&trec("a%20b"), &run(&["a%2520b"])), 1.0);
        // Only one of two hits is the judged document.
        assert_eq!(judged(&trec("a%20b"), &run(&["a%20b", "a%2520b"])), 1.0);
        assert_eq!(judged(&trec("a"), &run(&["a%20b"])), 0.0);
    }

    #[test]
    fn a_measure_named_twice_is_reported_once() {
        assert_eq!(evaluation("AP,MAP,RR").measures.len(), 2);
    }

    #[test]
    fn tables_are_aligned() {
        let evaluation = evaluation("nDCG@1000,AP");
        assert_eq!(evaluation.mean_table(), "nDCG@1000  0.3801\nAP         0.4167\n");
        assert_eq!(
            evaluation.per_query_table(),
            concat!(
                "query  nDCG@1000      AP\n",
                "q10       0.0000  0.0000\n",
                "q2        0.7602  0.8333\n",
                "mean      0.3801  0.4167\n",
            )
        );
    }

    #[test]
    fn json_keeps_the_order_of_measures_and_queries() {
        assert_eq!(
            serde_json::to_string(&evaluation("RR,P@2")).unwrap(),
            concat!(
                r#"{"measures":["RR","P@2"],"queries":2,"queries_without_hits":1,"#,
                r#""queries_without_judgements":1,"mean":{"RR":0.5,"P@2":0.25},"#,
                r#""per_query":{"q10":{"RR":0.0,"P@2":0.0},"q2":{"RR":1.0,"P@2":0.5}}}"#,
            )
        );
    }
}
