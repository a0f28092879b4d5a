//! TREC runs: `query Q0 document rank score tag`, one hit per line.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::path::Path;

use lanner_index::corpus::{Text, is_separator};

use super::by_query::ByQuery;
use super::error::EvalError;
use super::lines;
use super::run_id;

/// The hits of a run by query, as read from a file.
///
/// Only scores count: like `trec_eval`, this ignores the rank column.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    scores: ByQuery<f64>,
}

impl Run {
    /// Reads the file at `path`; see [`Run::read`].
    pub fn open(path: &Path) -> Result<Self, EvalError> {
        Run::parse(path, &Text::open(path)?.strict()?)
    }

    /// Reads a run, plain, gzip or zstd; `path` only names the source in errors.
    ///
    /// A run may be empty, if no query had a hit. A document may occur once for each query.
    pub fn read(path: &Path, reader: impl Read) -> Result<Self, EvalError> {
        Run::parse(path, &Text::read(path, reader)?.strict()?)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, EvalError> {
        let mut scores = ByQuery::new();
        lines::for_each_line(path, text, |line| {
            let [query, _, document, _, score, _] = lines::fields(line)
                .map_err(|count| format!("{count} columns, expected 6: query Q0 document rank score tag"))?;
            let score = parse_score(score)?;
            match scores.insert(query, document, score) {
                Some(_) => Err(format!("query '{query}' has document '{document}' twice; keep one of the two")),
                None => Ok(()),
            }
        })?;
        Ok(Run { scores })
    }

    /// Returns the number of queries with hits.
    pub fn queries(&self) -> usize {
        self.scores.len()
    }

    /// Returns the scores of a query's documents, or `None` if it has no hits.
    pub fn hits(&self, query: &str) -> Option<&HashMap<String, f64>> {
        self.scores.get(query)
    }

    /// Iterates over the queries in the order of the file, with the scores of their documents.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &HashMap<String, f64>)> {
        self.scores.iter()
    }
}

fn parse_score(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(score) if score.is_finite() => Ok(score),
        _ => Err(format!("score '{}' is not a finite number", text.escape_debug())),
    }
}

/// A hit to write: a document and its exact score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunHit<'a> {
    /// The document's external id.
    pub document: &'a str,
    /// Its score in units.
    pub units: u32,
}

/// Writes a TREC run whose scores strictly decrease when they are read as 32-bit floats.
///
/// Evaluation tools read scores as 32-bit floats and break ties in their own way, so equal scores
/// would lose the engine's ranking. Within ties, and where two exact scores round to the same
/// float, each printed score is therefore the next float below the one before it.
///
/// White space and control characters in ids are percent-coded, since they would separate columns and lines, and so is
/// a `%` that would be taken for the beginning of such a code: `a b` is written as `a%20b`, `a%20b` as `a%2520b`, and
/// `100%` as it is. [`super::evaluate`] finds the judgements of such ids.
pub struct RunWriter<W: Write> {
    output: W,
    tag: String,
    unit: f64,
    lines: String,
}

impl<W: Write> RunWriter<W> {
    /// Writes to `output`; a score of n units is printed as n times `unit`
    /// (for 16 fractional bits, 1/65,536). `tag` names the system in the last column.
    pub fn new(output: W, tag: &str, unit: f64) -> Result<Self, EvalError> {
        if !(unit > 0.0 && unit <= f64::from(f32::MAX) / f64::from(u32::MAX)) {
            return Err(EvalError::UnusableUnit { unit });
        }
        if tag.is_empty() || tag.contains(is_separator) {
            return Err(EvalError::UnprintableTag { tag: tag.to_owned() });
        }
        Ok(RunWriter { output, tag: tag.to_owned(), unit, lines: String::new() })
    }

    /// Writes the hits of one query, sorted by rank; on an error it writes none of them.
    pub fn write_query<'a>(
        &mut self,
        query: &str,
        hits: impl IntoIterator<Item = RunHit<'a>>,
    ) -> Result<(), EvalError> {
        self.write_query_after(query, 0, hits)
    }

    /// Writes hits that follow the first `offset` ones: their ranks continue from there.
    pub fn write_query_after<'a>(
        &mut self,
        query: &str,
        offset: usize,
        hits: impl IntoIterator<Item = RunHit<'a>>,
    ) -> Result<(), EvalError> {
        check_id("query id", query)?;
        let coded_query = run_id::encode(query);
        self.lines.clear();
        let mut previous: Option<(u32, f32)> = None;
        for (hit, rank) in hits.into_iter().zip(offset + 1..) {
            check_id("document id", hit.document)?;
            let exact = (f64::from(hit.units) * self.unit) as f32;
            let printed = match previous {
                Some((units, _)) if hit.units > units => {
                    return Err(EvalError::NotInRankOrder {
                        query: query.to_owned(),
                        document: hit.document.to_owned(),
                        rank,
                    });
                }
                Some((_, above)) => exact.min(above.next_down()),
                None => exact,
            };
            previous = Some((hit.units, printed));
            let (document, score, tag) = (run_id::encode(hit.document), format_score(printed), &self.tag);
            writeln!(self.lines, "{coded_query} Q0 {document} {rank} {score} {tag}").expect("a String takes any text");
        }
        self.output.write_all(self.lines.as_bytes()).map_err(EvalError::Write)
    }

    /// Flushes and returns the output.
    pub fn finish(mut self) -> Result<W, EvalError> {
        self.output.flush().map_err(EvalError::Write)?;
        Ok(self.output)
    }
}

/// Formats a score with the fewest digits that parse to the same 32-bit float, in scientific
/// notation if it is very large or very small.
fn format_score(score: f32) -> String {
    if score == 0.0 || (1e-5..1e16).contains(&score.abs()) { format!("{score}") } else { format!("{score:e}") }
}

fn check_id(kind: &'static str, id: &str) -> Result<(), EvalError> {
    if id.is_empty() { Err(EvalError::EmptyId { kind }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const UNIT: f64 = 1.0 / 65_536.0;

    fn read(text: &str) -> Result<Run, EvalError> {
        Run::read(Path::new("run.txt"), text.as_bytes())
    }

    fn write(query: &str, hits: &[(&str, u32)], unit: f64) -> Result<String, EvalError> {
        let mut writer = RunWriter::new(Vec::new(), "lanner", unit)?;
        writer.write_query(query, hits.iter().map(|&(document, units)| RunHit { document, units }))?;
        Ok(String::from_utf8(writer.finish()?).unwrap())
    }

    #[test]
    fn a_run_is_read_by_score_and_not_by_rank() {
        let run = read("1 Q0 a 9 2.5 x\n1 Q0 b 1 -1e-3 x\r\n\n2\tQ0\ta\t1\t7\tx").unwrap();
        assert_eq!(run.queries(), 2);
        assert_eq!(run.hits("1").unwrap()["a"], 2.5);
        assert_eq!(run.hits("1").unwrap()["b"], -1e-3);
        assert_eq!(run.hits("2").unwrap()["a"], 7.0);
        assert_eq!(run.hits("3"), None);
    }

    #[test]
    fn a_broken_line_is_named_with_its_number() {
        let problem = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(problem("1 Q0 a 1 2.5\n"), "run.txt:1: 5 columns, expected 6: query Q0 document rank score tag");
        for score in ["nan", "inf", "-infinity", "1e999", "1,5"] {
            assert_eq!(
                problem(&format!("1 Q0 a 1 1 x\n1 Q0 b 2 {score} x\n")),
                format!("run.txt:2: score '{score}' is not a finite number")
            );
        }
        assert_eq!(
            problem("1 Q0 a 1 3 x\n2 Q0 a 1 3 x\n1 Q0 a 2 2 x\n"),
            "run.txt:3: query '1' has document 'a' twice; keep one of the two"
        );
    }

    #[test]
    fn ties_step_down_by_one_float() {
        let text = write("7", &[("a", 98_304), ("b", 98_304), ("c", 98_304), ("d", 65_536)], UNIT);
        assert_eq!(
            text.unwrap(),
            "7 Q0 a 1 1.5 lanner\n7 Q0 b 2 1.4999999 lanner\n7 Q0 c 3 1.4999998 lanner\n7 Q0 d 4 1 lanner\n"
        );
    }

    #[test]
    fn scores_that_fall_on_one_float_step_down() {
        let text = write("7", &[("a", 33_554_432), ("b", 33_554_431)], UNIT).unwrap();
        assert_eq!(text, "7 Q0 a 1 512 lanner\n7 Q0 b 2 511.99997 lanner\n");
    }

    #[test]
    fn ties_at_zero_continue_below_it() {
        let text = write("7", &[("a", 0), ("b", 0)], UNIT).unwrap();
        assert_eq!(text, "7 Q0 a 1 0 lanner\n7 Q0 b 2 -1e-45 lanner\n");
    }

    #[test]
    fn white_space_in_ids_is_coded_and_an_empty_id_is_refused() {
        let text = write("7\t8", &[("a%20b", 3), ("b c", 2), ("a\u{a0}b", 1)], 1.0).unwrap();
        assert_eq!(text, "7%098 Q0 a%2520b 1 3 lanner\n7%098 Q0 b%20c 2 2 lanner\n7%098 Q0 a%C2%A0b 3 1 lanner\n");
        let problem = |result: Result<String, EvalError>| result.unwrap_err().to_string();
        assert_eq!(problem(write("", &[], UNIT)), "an empty query id, which a TREC run cannot hold; give it one");
        assert!(problem(write("7", &[("", 2)], UNIT)).starts_with("an empty document id"));
        let problem = RunWriter::new(Vec::new(), "two words", UNIT).err().unwrap().to_string();
        assert_eq!(problem, "the tag 'two words' is empty or has white space, which separates columns; change it");
    }

    #[test]
    fn nothing_of_a_refused_query_is_written() {
        let mut writer = RunWriter::new(Vec::new(), "lanner", UNIT).unwrap();
        let hit = |document, units| RunHit { document, units };
        writer.write_query("1", [hit("a", 65_536)]).unwrap();
        assert_eq!(
            writer.write_query("2", [hit("a", 1), hit("b", 2)]).unwrap_err().to_string(),
            "query '2': document 'b' at rank 2 scores more than the hit before it; sort hits by score"
        );
        assert_eq!(writer.finish().unwrap(), b"1 Q0 a 1 1 lanner\n");
    }

    #[test]
    fn a_unit_that_overflows_is_refused() {
        for unit in [0.0, -1.0, f64::NAN, f64::INFINITY, 8e28] {
            assert!(matches!(RunWriter::new(Vec::new(), "lanner", unit), Err(EvalError::UnusableUnit { .. })));
        }
        assert!(write("7", &[("a", u32::MAX)], 7.9e28).is_ok());
    }

    /// Runs of equal scores, of up to 10,000 hits in all, highest first.
    fn scores() -> impl Strategy<Value = Vec<u32>> {
        let score = prop_oneof![Just(0), Just(u32::MAX), 0u32..5, 65_530u32..65_540, any::<u32>()];
        let length = prop_oneof![4 => 1usize..5, 1 => 1usize..10_000];
        proptest::collection::vec((score, length), 0..12).prop_map(|runs| {
            let repeated = runs.into_iter().flat_map(|(score, length)| std::iter::repeat_n(score, length));
            let mut scores: Vec<u32> = repeated.take(10_000).collect();
            scores.sort_unstable_by(|a, b| b.cmp(a));
            scores
        })
    }

    /// Whether no decimal with fewer significant digits reads as the same float.
    fn is_shortest(text: &str, value: f32) -> bool {
        let digits = text.split('e').next().unwrap().replace(['-', '.'], "");
        let digits = digits.trim_matches('0').len();
        digits <= 1 || format!("{value:.*e}", digits - 2).parse::<f32>() != Ok(value)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn printed_scores_strictly_decrease_as_floats(
            scores in scores(),
            unit in prop_oneof![Just(UNIT), Just(1.0), Just(1e-44), Just(7.9e28)],
        ) {
            let documents: Vec<String> = (0..scores.len()).map(|n| format!("d{n}")).collect();
            let hits: Vec<(&str, u32)> = documents.iter().map(String::as_str).zip(scores).collect();
            let text = write("q", &hits, unit).unwrap();
            let mut above = f32::INFINITY;
            for (line, (document, _)) in text.lines().zip(&hits) {
                let [_, _, written, _, score, _] = lines::fields(line).unwrap();
                let value: f32 = score.parse().unwrap();
                prop_assert_eq!(written, *document);
                prop_assert!(value < above && value.is_finite(), "{} after {}", score, above);
                prop_assert!(is_shortest(score, value), "{}", score);
                above = value;
            }
            prop_assert_eq!(text.lines().count(), hits.len());
            prop_assert_eq!(read(&text).unwrap().hits("q").map_or(0, HashMap::len), hits.len());
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Run::read(Path::new("r"), &bytes[..]);
        }

        #[test]
        fn almost_valid_text_never_panics(text in "([12] Q0 [ab] 1 [0-9e.+-]{1,5} x ?x?\n){0,6}") {
            let _ = read(&text);
        }
    }
}
