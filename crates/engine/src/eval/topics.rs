//! Query logs and TREC topics: files of queries with ids.
//!
//! The format is detected from the first line that is not blank, and all other lines must have
//! the same format, so that a wrong guess is an error and never a silently wrong query:
//!
//! 1. it begins with `<`, and `<top>` occurs in the file: TREC topics ([`TopicFormat::Trec`]);
//! 2. it begins with `{`: JSON lines ([`TopicFormat::JsonLines`]);
//! 3. it has a tab after an id without white space: [`TopicFormat::Tsv`];
//! 4. it begins with digits and a colon: [`TopicFormat::Colon`];
//! 5. anything else: one query per line ([`TopicFormat::Lines`]).

use std::collections::HashSet;
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use lanner_index::corpus::Text;
use serde::Deserialize;

use super::error::EvalError;
use super::trec_topics;

/// A query of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    /// The query's id: not empty, without white space, unique in its file.
    pub id: String,
    /// Its words, without white space around them; may be empty.
    pub text: String,
}

/// The format of a file of queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopicFormat {
    /// `id<TAB>text`, one query per line; blank lines are skipped.
    Tsv,
    /// `id:text` with an id of digits, as in the Million Query track; blank lines are skipped.
    Colon,
    /// The text alone; the id of a query is its line number, from 1. A blank line is a query without
    /// words.
    Lines,
    /// TREC topics, `<top> <num> Number: 301 <title> text ... </top>`; the title is the query.
    Trec,
    /// TREC topics; the description (`<desc> Description: text`) is the query.
    TrecDescription,
    /// One JSON object per line: the id in `_id`, `qid` or `id` (the line number if there is none),
    /// the text in `query` or `text`. BEIR's `queries.jsonl` is such a file.
    JsonLines,
}

const FORMAT_NAMES: [(TopicFormat, &str); 6] = [
    (TopicFormat::Tsv, "tsv"),
    (TopicFormat::Colon, "colon"),
    (TopicFormat::Lines, "lines"),
    (TopicFormat::Trec, "trec"),
    (TopicFormat::TrecDescription, "trec-description"),
    (TopicFormat::JsonLines, "jsonl"),
];

impl fmt::Display for TopicFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (format, name) in FORMAT_NAMES {
            if format == *self {
                formatter.pad(name)?;
            }
        }
        Ok(())
    }
}

impl FromStr for TopicFormat {
    type Err = EvalError;

    fn from_str(text: &str) -> Result<Self, EvalError> {
        let known = FORMAT_NAMES.iter().find(|(_, name)| *name == text);
        known.map(|&(format, _)| format).ok_or_else(|| EvalError::UnknownTopicFormat { name: text.to_owned() })
    }
}

/// The queries of a file, at least one, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topics {
    /// The format of the file.
    pub format: TopicFormat,
    /// Its queries.
    pub topics: Vec<Topic>,
    /// Lines that were not valid UTF-8; their invalid bytes were replaced by U+FFFD.
    pub invalid_lines: usize,
}

impl Topics {
    /// Reads the file at `path` in `format`, or in the format that its content shows.
    pub fn open(path: &Path, format: Option<TopicFormat>) -> Result<Self, EvalError> {
        Topics::parse(path, Text::open(path)?, format)
    }

    /// Reads queries, plain, gzip or zstd; `path` only names the source in errors.
    pub fn read(path: &Path, reader: impl Read, format: Option<TopicFormat>) -> Result<Self, EvalError> {
        Topics::parse(path, Text::read(path, reader)?, format)
    }

    fn parse(path: &Path, text: Text, format: Option<TopicFormat>) -> Result<Self, EvalError> {
        let (text, invalid_lines) = text.lossy();
        let topics =
            parse(&text, format).map_err(|(line, problem)| EvalError::Line { path: path.to_owned(), line, problem })?;
        if topics.topics.is_empty() {
            return Err(EvalError::Empty { path: path.to_owned(), what: "queries" });
        }
        Ok(Topics { invalid_lines, ..topics })
    }
}

/// A line number, from 1, and what is wrong in that line.
pub(super) type Problem = (usize, String);

fn parse(text: &str, format: Option<TopicFormat>) -> Result<Topics, Problem> {
    let detected = format.is_none();
    let format = format.unwrap_or_else(|| detect(text));
    let numbered = match format {
        TopicFormat::Trec => trec_topics::parse(text, trec_topics::TITLE)?,
        TopicFormat::TrecDescription => trec_topics::parse(text, trec_topics::DESCRIPTION)?,
        _ => parse_lines(text, format).map_err(|(line, problem)| {
            let advice = match detected {
                true => "; the format was detected from the first line, give another one if that is wrong",
                false => "",
            };
            (line, format!("{problem}{advice}"))
        })?,
    };
    let mut seen = HashSet::new();
    for (line, topic) in &numbered {
        if topic.id.is_empty() || topic.id.contains(char::is_whitespace) {
            let id = topic.id.escape_debug();
            let problem = format!("query id '{id}' is empty or has white space; rename it");
            return Err((*line, problem));
        }
        if !seen.insert(topic.id.as_str()) {
            let problem = format!("query id '{}' occurs twice; rename one of the two", topic.id);
            return Err((*line, problem));
        }
    }
    let topics = numbered.into_iter().map(|(_, topic)| topic).collect();
    Ok(Topics { format, topics, invalid_lines: 0 })
}

/// Detects the format of a text by the rules at the head of this file.
fn detect(text: &str) -> TopicFormat {
    let first = text.lines().find(|line| !line.trim().is_empty());
    let first = first.unwrap_or_default();
    let start = first.trim_start();
    if start.starts_with('<') && trec_topics::occurs_in(text) {
        TopicFormat::Trec
    } else if start.starts_with('{') {
        TopicFormat::JsonLines
    } else if split_tab(first).is_some_and(|(id, _)| !id.contains(char::is_whitespace)) {
        TopicFormat::Tsv
    } else if split_colon(first).is_some() {
        TopicFormat::Colon
    } else {
        TopicFormat::Lines
    }
}

fn parse_lines(text: &str, format: TopicFormat) -> Result<Vec<(usize, Topic)>, Problem> {
    let mut topics = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if format != TopicFormat::Lines && line.trim().is_empty() {
            continue;
        }
        let topic = parse_line(line, number, format).map_err(|problem| (number, problem))?;
        topics.push((number, topic));
    }
    Ok(topics)
}

fn parse_line(line: &str, number: usize, format: TopicFormat) -> Result<Topic, String> {
    let (id, text) = match format {
        TopicFormat::Tsv => split_tab(line).ok_or("expected 'id<TAB>text'")?,
        TopicFormat::Colon => split_colon(line).ok_or("expected 'id:text' with an id of digits")?,
        TopicFormat::JsonLines => return parse_json(line, number),
        _ => return Ok(Topic::new(&number.to_string(), line)),
    };
    Ok(Topic::new(id, text))
}

impl Topic {
    pub(super) fn new(id: &str, text: &str) -> Self {
        Topic { id: id.trim().to_owned(), text: text.trim().to_owned() }
    }
}

/// Splits a line at its first tab into an id, which must not be empty, and a text.
fn split_tab(line: &str) -> Option<(&str, &str)> {
    let (id, text) = line.split_once('\t')?;
    let id = id.trim();
    (!id.is_empty()).then_some((id, text))
}

/// Splits a line at its first colon into an id of digits and a text.
fn split_colon(line: &str) -> Option<(&str, &str)> {
    let (id, text) = line.split_once(':')?;
    let id = id.trim();
    let digits = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
    digits.then_some((id, text))
}

/// A line of JSON; other fields are ignored.
#[derive(Deserialize)]
struct JsonTopic {
    _id: Option<JsonId>,
    qid: Option<JsonId>,
    id: Option<JsonId>,
    query: Option<String>,
    text: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum JsonId {
    Text(String),
    Number(i64),
}

fn parse_json(line: &str, number: usize) -> Result<Topic, String> {
    let topic: JsonTopic = serde_json::from_str(line)
        .map_err(|error| format!("not a JSON object with an id (a string or an integer) and a text: {error}"))?;
    let id = match topic._id.or(topic.qid).or(topic.id) {
        Some(JsonId::Text(id)) => id,
        Some(JsonId::Number(id)) => id.to_string(),
        None => number.to_string(),
    };
    let text = topic.query.or(topic.text);
    let text = text.ok_or("no field 'query' or 'text'")?;
    Ok(Topic::new(&id, &text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str, format: Option<TopicFormat>) -> Result<Topics, EvalError> {
        Topics::read(Path::new("log"), text.as_bytes(), format)
    }

    /// Format, then ids and texts, as detected.
    fn detected(text: &str) -> (TopicFormat, Vec<(String, String)>) {
        let topics = read(text, None).unwrap();
        let pairs = topics.topics.into_iter().map(|t| (t.id, t.text));
        (topics.format, pairs.collect())
    }

    fn pairs<const N: usize>(expected: [(&str, &str); N]) -> Vec<(String, String)> {
        expected.map(|(id, text)| (id.to_owned(), text.to_owned())).to_vec()
    }

    fn problem(text: &str, format: Option<TopicFormat>) -> String {
        read(text, format).unwrap_err().to_string()
    }

    #[test]
    fn tabs_make_a_tsv() {
        assert_eq!(
            detected("\u{feff}2\t Androgen receptor\r\n\nq7\ta: b\tc\n9\t\n"),
            (TopicFormat::Tsv, pairs([("2", "Androgen receptor"), ("q7", "a: b\tc"), ("9", "")]))
        );
    }

    #[test]
    fn digits_and_a_colon_make_a_million_query_log() {
        assert_eq!(
            detected("1:after school: programs\n20:\n"),
            (TopicFormat::Colon, pairs([("1", "after school: programs"), ("20", "")]))
        );
    }

    #[test]
    fn other_lines_are_queries_numbered_from_one() {
        assert_eq!(
            detected("miami white pages\n\nre: zero\n"),
            (TopicFormat::Lines, pairs([("1", "miami white pages"), ("2", ""), ("3", "re: zero")]))
        );
    }

    #[test]
    fn json_lines_take_ids_and_texts_by_their_usual_names() {
        let text = concat!(
            "{\"_id\": \"PLAIN-2\", \"text\": \"statins\", \"metadata\": {\"url\": 1}}\n",
            "{\"qid\": 7, \"query\": \"b \\u00e9\"}\n",
            "{\"id\": \"x\", \"text\": \"\"}\n",
            "{\"query\": \"the\", \"tags\": [\"term\"]}\n",
        );
        assert_eq!(
            detected(text),
            (TopicFormat::JsonLines, pairs([("PLAIN-2", "statins"), ("7", "b é"), ("x", ""), ("4", "the")]))
        );
    }

    #[test]
    fn top_tags_make_trec_topics() {
        let text = "\n<top>\n<num> Number: 301\n<title> Organized Crime\n<desc> Description:\nIdentify it.\n</top>\n";
        assert_eq!(detected(text), (TopicFormat::Trec, pairs([("301", "Organized Crime")])));
        let description = read(text, Some(TopicFormat::TrecDescription)).unwrap();
        assert_eq!(description.topics, [Topic::new("301", "Identify it.")]);
        assert_eq!(detected("<b> tag\n"), (TopicFormat::Lines, pairs([("1", "<b> tag")])));
    }

    #[test]
    fn a_given_format_overrides_the_content() {
        let topics = read("1\ta\n2\tb\n", Some(TopicFormat::Lines)).unwrap();
        assert_eq!(topics.topics[1], Topic::new("2", "2\tb"));
        assert_eq!(problem("a b\n", Some(TopicFormat::Tsv)), "log:1: expected 'id<TAB>text'");
    }

    #[test]
    fn a_line_unlike_the_first_is_an_error_that_names_it() {
        let advice = "; the format was detected from the first line, give another one if that is wrong";
        assert_eq!(problem("1\ta\n2 b\n", None), format!("log:2: expected 'id<TAB>text'{advice}"));
        assert_eq!(
            problem("10:30 train\nto paris\n", None),
            format!("log:2: expected 'id:text' with an id of digits{advice}")
        );
        assert_eq!(problem("{\"id\": 1}\n", None), format!("log:1: no field 'query' or 'text'{advice}"));
        assert!(problem("{\"id\": 1, \"text\": \"a\"}\n{]\n", None).starts_with("log:2: not a JSON object"));
    }

    #[test]
    fn ids_are_unique_and_without_white_space() {
        assert_eq!(problem("1\ta\n1\tb\n", None), "log:2: query id '1' occurs twice; rename one of the two");
        assert_eq!(problem("1\ta\nx y\tb\n", None), "log:2: query id 'x y' is empty or has white space; rename it");
        assert_eq!(
            problem("{\"id\": \"\", \"text\": \"a\"}\n", None),
            "log:1: query id '' is empty or has white space; rename it"
        );
    }

    #[test]
    fn a_file_without_queries_is_refused() {
        let message = "log: holds no queries; check that it is the right file";
        assert_eq!(problem("", None), message);
        assert_eq!(problem("\n\n", Some(TopicFormat::Tsv)), message);
        assert_eq!(problem("words\n", Some(TopicFormat::Trec)), message);
    }

    #[test]
    fn bytes_that_are_not_text_are_refused_and_invalid_utf8_is_replaced_and_counted() {
        let problem = |bytes: &[u8]| Topics::read(Path::new("log"), bytes, None).unwrap_err().to_string();
        let topics = Topics::read(Path::new("log"), &b"1:a\n2:caf\xe9 bar\n3:caf\xc3\xa9\n"[..], None).unwrap();
        let texts: Vec<&str> = topics.topics.iter().map(|topic| topic.text.as_str()).collect();
        assert_eq!((texts, topics.invalid_lines), (vec!["a", "caf\u{fffd} bar", "caf\u{e9}"], 1));
        let binary = "log: a NUL at byte 3: a binary file where text is expected; check that it is the right file";
        assert_eq!(problem(b"1:a\0"), binary);
    }

    #[test]
    fn every_format_reads_its_own_name() {
        for (format, name) in FORMAT_NAMES {
            assert_eq!(format.to_string(), name);
            assert_eq!(name.parse::<TopicFormat>().unwrap(), format);
        }
        assert_eq!(
            "xml".parse::<TopicFormat>().unwrap_err().to_string(),
            "topic format 'xml' is not known; use tsv, colon, lines, trec, trec-description or jsonl"
        );
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic_in_any_format(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let _ = Topics::read(Path::new("log"), &bytes[..], None);
            for (format, _) in FORMAT_NAMES {
                let _ = Topics::read(Path::new("log"), &bytes[..], Some(format));
            }
        }

        #[test]
        fn almost_valid_text_never_panics(
            text in "(<top>|</top>|<num>|Number:|<title|>|<desc>|[a-eé0-9<:\t \n]{0,4}|\\{\"id\": ?|\"text\":\"a\"\\}){0,20}",
        ) {
            let _ = read(&text, None);
            for (format, _) in FORMAT_NAMES {
                let _ = read(&text, Some(format));
            }
        }

        #[test]
        fn a_tsv_gives_back_its_queries(
            texts in proptest::collection::vec("[a-z]{1,3}( [a-z:]{1,3}){0,3}|", 1..10),
        ) {
            let written: String = texts.iter().enumerate().map(|(n, text)| format!("q{n}\t{text}\n")).collect();
            let topics = read(&written, None).unwrap();
            prop_assert_eq!(topics.format, TopicFormat::Tsv);
            let read: Vec<String> = topics.topics.into_iter().map(|topic| topic.text).collect();
            prop_assert_eq!(read, texts);
        }
    }
}
