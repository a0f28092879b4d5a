//! Relevance judgements (qrels), as TREC and BEIR write them.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use lanner_index::corpus::Text;

use super::by_query::ByQuery;
use super::error::EvalError;
use super::lines;

/// The first line of a BEIR qrels file.
const BEIR_HEADER: [&str; 3] = ["query-id", "corpus-id", "score"];

/// Judgements by query, at least one.
///
/// A grade of 1 or more is relevant; 0 and negative grades are judged and not relevant.
#[derive(Debug, Clone, PartialEq)]
pub struct Qrels {
    judgements: ByQuery<i32>,
}

impl Qrels {
    /// Reads the file at `path`; see [`Qrels::read`].
    pub fn open(path: &Path) -> Result<Self, EvalError> {
        Qrels::parse(path, &Text::open(path)?.strict()?)
    }

    /// Reads judgements, plain, gzip or zstd; `path` only names the source in errors.
    ///
    /// Each line is `query iteration document grade`, separated by white space, or, after the
    /// header `query-id corpus-id score`, `query document grade` separated by tabs. A judgement
    /// may be repeated, but not with another grade.
    pub fn read(path: &Path, reader: impl Read) -> Result<Self, EvalError> {
        Qrels::parse(path, &Text::read(path, reader)?.strict()?)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, EvalError> {
        let mut judgements = ByQuery::new();
        let mut format = None;
        lines::for_each_line(path, text, |line| {
            let format = match format {
                Some(format) => format,
                None if line.split_ascii_whitespace().eq(BEIR_HEADER) => {
                    format = Some(QrelsFormat::Beir);
                    return Ok(());
                }
                None => *format.insert(QrelsFormat::Trec),
            };
            let (query, document, grade) = format.parse(line)?;
            match judgements.insert(query, document, grade) {
                Some(earlier) if earlier != grade => Err(format!(
                    "query '{query}' judges document '{document}' {grade} here and {earlier} before; keep one of the two"
                )),
                _ => Ok(()),
            }
        })?;
        if judgements.len() == 0 {
            return Err(EvalError::Empty { path: path.to_owned(), what: "judgements" });
        }
        Ok(Qrels { judgements })
    }

    /// Returns the number of queries with judgements.
    pub fn queries(&self) -> usize {
        self.judgements.len()
    }

    /// Whether a query has judgements.
    pub fn judges(&self, query: &str) -> bool {
        self.judgements.get(query).is_some()
    }

    /// Returns the grade of a document for a query, or `None` if it was not judged.
    pub fn grade(&self, query: &str, document: &str) -> Option<i32> {
        self.judgements.get(query)?.get(document).copied()
    }

    /// Returns the highest grade of all.
    pub fn highest_grade(&self) -> i32 {
        self.iter().flat_map(|(_, grades)| grades.values()).copied().max().unwrap_or(0)
    }

    /// Iterates over the queries in the order of the file, with the grades of their documents.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &HashMap<String, i32>)> {
        self.judgements.iter()
    }
}

#[derive(Clone, Copy)]
enum QrelsFormat {
    Trec,
    Beir,
}

impl QrelsFormat {
    /// Splits a line into query, document and grade.
    fn parse(self, line: &str) -> Result<(&str, &str, i32), String> {
        let (query, document, grade) = match self {
            QrelsFormat::Trec => {
                let [query, _, document, grade] = lines::fields(line).map_err(|count| {
                    format!(
                        "{count} columns, expected 4: query iteration document grade (or, for BEIR, the header 'query-id corpus-id score' first)"
                    )
                })?;
                (query, document, grade)
            }
            QrelsFormat::Beir => parse_beir(line)?,
        };
        let grade =
            grade.parse().map_err(|_| format!("grade '{}' is not an integer of 32 bits", grade.escape_debug()))?;
        Ok((query, document, grade))
    }
}

fn parse_beir(line: &str) -> Result<(&str, &str, &str), String> {
    let columns: Vec<&str> = line.split('\t').map(str::trim).collect();
    match columns[..] {
        [query, document, grade] if !query.is_empty() && !document.is_empty() => Ok((query, document, grade)),
        _ => Err(format!(
            "{} columns, expected 3 that are not empty, separated by tabs: query-id corpus-id score",
            columns.len()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Qrels, EvalError> {
        Qrels::read(Path::new("qrels.txt"), text.as_bytes())
    }

    fn problem(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn trec_lines_are_split_at_any_white_space() {
        let qrels = read("\u{feff}301 0 a 1\r\n\n302\t0\t b  -2\n301 Q0 c 0").unwrap();
        assert_eq!(qrels.queries(), 2);
        assert_eq!(qrels.grade("301", "a"), Some(1));
        assert_eq!(qrels.grade("302", "b"), Some(-2));
        assert_eq!(qrels.grade("301", "c"), Some(0));
        assert_eq!(qrels.grade("301", "b"), None);
        let order: Vec<&str> = qrels.iter().map(|(query, _)| query).collect();
        assert_eq!(order, ["301", "302"]);
    }

    #[test]
    fn a_beir_header_selects_tab_separated_columns() {
        let qrels = read("query-id\tcorpus-id\tscore\nq one\tdoc 7\t2\n").unwrap();
        assert_eq!(qrels.grade("q one", "doc 7"), Some(2));
        assert_eq!(
            problem("query-id\tcorpus-id\tscore\nq\td\n"),
            "qrels.txt:2: 2 columns, expected 3 that are not empty, separated by tabs: query-id corpus-id score"
        );
    }

    #[test]
    fn a_broken_line_is_named_with_its_number() {
        assert_eq!(
            problem("1 0 a 1\n1 0 b\n"),
            "qrels.txt:2: 3 columns, expected 4: query iteration document grade (or, for BEIR, the header 'query-id corpus-id score' first)"
        );
        assert_eq!(problem("1 0 a 1.5\n"), "qrels.txt:1: grade '1.5' is not an integer of 32 bits");
        assert_eq!(
            Qrels::read(Path::new("q"), &b"1 0 a 1\n1 0 \xff 1\n"[..]).unwrap_err().to_string(),
            "q:2: not valid UTF-8; convert the file to UTF-8"
        );
    }

    #[test]
    fn a_judgement_may_be_repeated_but_not_contradicted() {
        assert!(read("1 0 a 1\n1 0 a 1\n").is_ok());
        assert_eq!(
            problem("1 0 a 1\n1 0 a 2\n"),
            "qrels.txt:2: query '1' judges document 'a' 2 here and 1 before; keep one of the two"
        );
    }

    #[test]
    fn a_file_without_judgements_is_refused() {
        let message = "qrels.txt: holds no judgements; check that it is the right file";
        assert_eq!(problem("\n \n"), message);
        assert_eq!(problem("query-id\tcorpus-id\tscore\n"), message);
    }

    #[test]
    fn a_missing_file_is_named() {
        let message = Qrels::open(Path::new("no/such/file")).unwrap_err().to_string();
        assert!(message.starts_with("no/such/file: cannot be opened: "));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Qrels::read(Path::new("q"), &bytes[..]);
        }

        #[test]
        fn almost_valid_text_never_panics(text in "(query-id\tcorpus-id\tscore\n)?([ab\t 01.-]{0,9}\r?\n){0,6}") {
            let _ = read(&text);
        }
    }
}
