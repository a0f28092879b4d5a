//! Answers as text for people and as JSON for programs.

use crate::failure::Failure;
use crate::quantity::{count, counted, duration};
use crate::query_notes::notes;
use crate::terminal::{Style, printable, shortened};
use crate::whole_file::write_json_line;
use lanner::answer::{Ids, Snippet, Trace, Work};
use lanner::{Answer, Hit, Query, ScoreModel, Searcher};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::Write;
use std::time::{Duration, Instant};

/// The lengths of a snippet, of a line and of a title, in characters.
const SNIPPET: usize = 180;
const LINE: usize = 96;
const TITLE: usize = 96;
const INDENT: &str = "      ";
/// The characters of a timeline.
const TIMELINE: usize = 40;
/// Waiting at least this long is said in words.
const WORTH_SAYING: Duration = Duration::from_micros(1);

/// An answer and the time it took.
pub struct Answered {
    /// The answer.
    pub answer: Answer,
    /// The time from the text of the query to the hits, without ids, titles and snippets.
    pub time: Duration,
    /// How the query was read, where it may have been meant otherwise; empty for the queries of a log.
    pub notes: Vec<String>,
}

impl Answered {
    /// Describes the number of hits and the time in words.
    pub fn outcome(&self) -> String {
        let found = match self.answer.hits.len() {
            0 => "no hits".to_owned(),
            hits => counted(hits as u64, "hit"),
        };
        let exactness = if self.answer.exact { "" } else { ", approximate: the budget was spent" };
        format!("{found} in {}{exactness}", duration(self.time))
    }
}

/// A query, its id in a log, and its answer.
#[derive(Clone, Copy)]
pub struct AnsweredQuery<'a> {
    /// The id; `None` for a query that is not of a log.
    pub id: Option<&'a str>,
    /// The query.
    pub query: &'a Query,
    /// Its answer.
    pub answered: &'a Answered,
}

/// Answers a query that somebody typed and measures the time.
pub fn answer(searcher: &Searcher, query: &Query) -> Result<Answered, Failure> {
    let notes = notes(query, searcher.index().analyzer())?;
    let start = Instant::now();
    let answer = searcher.search(query)?;
    let time = start.elapsed();
    Ok(Answered { answer, time, notes })
}

/// Writes answers from one index, scored by one model.
pub struct Presenter<'a> {
    /// The index that the hits come from.
    pub searcher: &'a Searcher,
    /// The score model, which decides how scores are printed.
    pub model: ScoreModel,
    /// How matches are highlighted.
    pub style: Style,
    /// Whether to show steps and work.
    pub trace: bool,
}

impl Presenter<'_> {
    /// Writes hits with rank, score, id, title and snippet, then the time.
    pub fn write_text(&self, query: &Query, answered: &Answered, out: &mut impl Write) -> Result<(), Failure> {
        self.write_hits(query, &answered.answer.hits, out)?;
        writeln!(out, "{}", self.style.faint(&answered.outcome()))?;
        if self.trace {
            write_trace(&answered.answer, out)?;
        }
        Ok(())
    }

    /// Writes hits with rank, score, id, title and snippet.
    pub fn write_hits(&self, query: &Query, hits: &[Hit], out: &mut impl Write) -> Result<(), Failure> {
        (1..).zip(hits).try_for_each(|(rank, hit)| self.write_hit(query, rank, hit, out))
    }

    fn write_hit(&self, query: &Query, rank: usize, hit: &Hit, out: &mut impl Write) -> Result<(), Failure> {
        let document = self.searcher.document(hit.document)?;
        let id = self.style.id(&printable(&document.id));
        writeln!(out, "{rank:>4}. {}  {id}", self.score_text(hit.units))?;
        let title = document.get("title").map(printable).unwrap_or_default();
        if !title.trim().is_empty() && title != document.id {
            writeln!(out, "{INDENT}{}", self.style.bold(&shortened(title.trim(), TITLE)))?;
        }
        let snippet = self.searcher.snippet(query, &document, SNIPPET)?;
        for line in snippet_lines(&snippet, self.style) {
            writeln!(out, "{INDENT}{line}")?;
        }
        Ok(())
    }

    fn score_text(&self, units: u32) -> String {
        let score = self.model.score(units);
        match self.model {
            ScoreModel::Impact => format!("{score}"),
            ScoreModel::Bm25 | ScoreModel::RankBm25 { .. } => format!("{score:.4}"),
        }
    }

    /// Writes the answer as one line of JSON, with titles and snippets.
    pub fn write_json(&self, query: &Query, answered: &Answered, out: &mut impl Write) -> Result<(), Failure> {
        let hits = (1..).zip(&answered.answer.hits);
        let hits = hits.map(|(rank, hit)| self.described_hit(query, rank, hit)).collect::<Result<Vec<_>, Failure>>()?;
        self.write_line(AnsweredQuery { id: None, query, answered }, hits, out)
    }

    /// Writes an error as one line of JSON, instead of the answer to a query.
    pub fn write_error(&self, id: Option<&str>, query: &str, error: &str, out: &mut impl Write) -> Result<(), Failure> {
        write_json_line(&ErrorLine { id, query, error }, out)
    }

    /// Writes the answer to a query of a log as one line of JSON, with ids and exact scores only.
    pub fn write_log_line(&self, line: AnsweredQuery<'_>, ids: &Ids, out: &mut impl Write) -> Result<(), Failure> {
        let hits = (1..).zip(line.answered.answer.hits.iter().zip(ids.iter()));
        let hits = hits.map(|(rank, (hit, id))| self.plain_hit(rank, hit, id.to_owned())).collect();
        self.write_line(line, hits, out)
    }

    fn write_line(&self, line: AnsweredQuery<'_>, hits: Vec<HitLine>, out: &mut impl Write) -> Result<(), Failure> {
        let AnsweredQuery { id, query, answered: Answered { answer, time, notes } } = line;
        let line = AnswerLine {
            id,
            query: &query.text,
            notes,
            mode: query.mode.to_string(),
            k: query.k,
            score: self.model.to_string(),
            exact: answer.exact,
            microseconds: time.as_nanos() as f64 / 1000.0,
            hits,
            work: self.trace.then_some(&answer.work),
            trace: self.trace.then_some(&answer.trace),
        };
        write_json_line(&line, out)
    }

    fn plain_hit(&self, rank: usize, hit: &Hit, id: String) -> HitLine {
        let score = self.model.score(hit.units);
        HitLine { rank, id, score, units: hit.units, document: hit.document.0, title: None, snippet: None }
    }

    fn described_hit(&self, query: &Query, rank: usize, hit: &Hit) -> Result<HitLine, Failure> {
        let document = self.searcher.document(hit.document)?;
        let snippet = self.searcher.snippet(query, &document, SNIPPET)?;
        let title = document.get("title").map(str::to_owned);
        let has_text = !document.fields.is_empty();
        Ok(HitLine { title, snippet: has_text.then_some(snippet), ..self.plain_hit(rank, hit, document.id) })
    }
}

#[derive(Serialize)]
struct ErrorLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    query: &'a str,
    error: &'a str,
}

#[derive(Serialize)]
struct AnswerLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    query: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    notes: &'a [String],
    mode: String,
    k: usize,
    score: String,
    exact: bool,
    microseconds: f64,
    hits: Vec<HitLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    work: Option<&'a Work>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<&'a Trace>,
}

#[derive(Serialize)]
struct HitLine {
    rank: usize,
    id: String,
    /// The exact score: `units` divided by a power of two.
    score: f64,
    units: u32,
    document: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    snippet: Option<Snippet>,
}

fn write_trace(answer: &Answer, out: &mut impl Write) -> Result<(), Failure> {
    write_timeline(&answer.trace, out)?;
    let Work { postings_decoded, blocks_decoded, blocks_skipped, documents_scored, .. } = answer.work;
    let Work { bytes_uploaded, bytes_from_host, .. } = answer.work;
    if bytes_uploaded > 0 {
        writeln!(out, "  uploaded {} bytes", count(bytes_uploaded))?;
    }
    if bytes_from_host > 0 {
        writeln!(out, "  read about {} bytes of lists in host memory", count(bytes_from_host))?;
    }
    let mut line =
        format!("  decoded {} in {}", counted(postings_decoded, "posting"), counted(blocks_decoded, "block"));
    let _ = write!(line, ", skipped {}", counted(blocks_skipped, "block"));
    let _ = write!(line, ", scored {}", counted(documents_scored, "document"));
    writeln!(out, "{line}")?;
    Ok(())
}

/// Draws a bar for each step, from the arrival of the query to the end of its last step: `░` where it waited for the
/// step, `█` where the step ran.
fn write_timeline(trace: &Trace, out: &mut impl Write) -> Result<(), Failure> {
    let column =
        |time: Duration| (TIMELINE as f64 * time.as_secs_f64() / trace.total().as_secs_f64().max(1e-9)) as usize;
    let mut ended = Duration::ZERO;
    for (start, step) in trace.timeline() {
        let waited = start.saturating_sub(ended);
        // Every step is seen, however short it is.
        let from = column(start).min(TIMELINE - 1);
        let to = column(start + step.duration).clamp(from + 1, TIMELINE);
        let before = column(ended).min(from);
        let bar = format!("{}{}{}", " ".repeat(before), "░".repeat(from - before), "█".repeat(to - from));
        let place = step.place.to_string();
        write!(out, "  {:<12} on {place:<9} {:>10}  {bar:<TIMELINE$}", step.name, duration(step.duration))?;
        match waited >= WORTH_SAYING {
            true => writeln!(out, "  waited {}", duration(waited))?,
            false => writeln!(out)?,
        }
        ended = ended.max(start + step.duration);
    }
    Ok(())
}

/// Breaks a snippet into lines at spaces and highlights its matches.
fn snippet_lines(snippet: &Snippet, style: Style) -> Vec<String> {
    if snippet.text.trim().is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new()];
    let mut column = 0;
    if snippet.is_cut_before {
        lines[0].push_str("… ");
        column = 2;
    }
    let mut start = 0;
    for word in snippet.text.split(' ') {
        let width = word.chars().count();
        if column > 0 && column + width > LINE {
            lines.push(String::new());
            column = 0;
        } else if start > 0 {
            lines.last_mut().expect("there is a line").push(' ');
            column += 1;
        }
        let marked = mark_word(word, start, &snippet.matches, style);
        lines.last_mut().expect("there is a line").push_str(&marked);
        column += width;
        start += word.len() + 1;
    }
    if snippet.is_cut_after {
        lines.last_mut().expect("there is a line").push_str(" …");
    }
    lines
}

/// Returns the word that begins at byte `start` of the snippet, with the parts that match highlighted.
fn mark_word(word: &str, start: usize, matches: &[std::ops::Range<usize>], style: Style) -> String {
    let mut marked = String::new();
    let mut rest = 0;
    for found in matches {
        let from = found.start.saturating_sub(start).clamp(rest, word.len());
        let to = found.end.saturating_sub(start).clamp(from, word.len());
        if from < to {
            marked.push_str(&printable(&word[rest..from]));
            marked.push_str(&style.matched(&printable(&word[from..to])));
            rest = to;
        }
    }
    marked.push_str(&printable(&word[rest..]));
    marked
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanner::answer::{Place, Step};

    #[test]
    fn a_timeline_shows_when_steps_ran_and_when_the_query_waited() {
        let arrived = Instant::now();
        let step = |name, place, start: u64, micros: u64| Step {
            name,
            place,
            started: arrived + Duration::from_micros(start),
            duration: Duration::from_micros(micros),
        };
        let steps = vec![
            step("plan", Place::Cpu, 0, 10),
            step("conjunction", Place::Gpu, 20, 20),
            step("rest", Place::Cpu, 40, 0),
        ];
        let mut out = Vec::new();
        write_timeline(&Trace { arrived: Some(arrived), steps }, &mut out).unwrap();
        let expected = [
            "  plan         on cpu            10 µs  ██████████                              ",
            "  conjunction  on gpu            20 µs            ░░░░░░░░░░████████████████████  waited 10 µs",
            "  rest         on cpu             0 µs                                         █",
        ];
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines, expected, "{text}");
        let mut empty = Vec::new();
        write_timeline(&Trace::default(), &mut empty).unwrap();
        assert!(empty.is_empty());
    }

    #[test]
    fn a_snippet_is_broken_at_spaces_with_its_matches_marked() {
        let text = format!("the falcon {} hunts (falcons) there", "x".repeat(80));
        let at = |word: &str| text.find(word).unwrap()..text.find(word).unwrap() + word.len();
        let matches = vec![at("falcon"), at("falcons")];
        let snippet = Snippet { matches, text, is_cut_before: true, is_cut_after: true };
        let lines = snippet_lines(&snippet, Style::coloured());
        let expected = [
            format!("… the \x1b[1;33mfalcon\x1b[0m {}", "x".repeat(80)),
            "hunts (\x1b[1;33mfalcons\x1b[0m) there …".to_owned(),
        ];
        assert_eq!(lines, expected);
        assert!(snippet_lines(&Snippet::default(), Style::plain()).is_empty());
    }
}
