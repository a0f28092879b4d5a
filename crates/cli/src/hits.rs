//! Answers as text for people.

use crate::columns::{self, Plain, shortened};
use crate::failure::Failure;
use crate::quantity::{count, counted, duration};
use crate::query_notes::notes;
use crate::shown::{Details, Reader, Shown};
use crate::terminal::{Style, note, printable};
use crate::timeline::write_trace;
use lanner::answer::Snippet;
use lanner::{Answer, Hit, Query, ScoreModel, Searcher};
use std::io::Write;
use std::time::{Duration, Instant};

/// The most characters of a snippet.
pub const SNIPPET: usize = 180;
/// The most lines of a snippet in a narrow terminal, and of an outcome.
const LINES: usize = 4;
const INDENT: &str = "      ";

/// An answer and the time it took.
pub struct Answered {
    /// The answer, without the hits before the offset.
    pub answer: Answer,
    /// How many hits were left out at the beginning.
    pub offset: usize,
    /// The time from the text of the query to the hits, without ids, titles and snippets.
    pub time: Duration,
    /// How the query was read, where it may have been meant otherwise; empty for the queries of a log.
    pub notes: Vec<String>,
}

impl Answered {
    /// An answer without its first `offset` hits.
    pub fn new(mut answer: Answer, offset: usize, time: Duration) -> Answered {
        answer.hits.drain(..offset.min(answer.hits.len()));
        Answered { answer, offset, time, notes: Vec::new() }
    }

    /// Describes the number of hits and the time in words.
    pub fn outcome(&self) -> String {
        let found = match self.answer.hits.len() {
            0 => "no hits".to_owned(),
            hits => counted(hits as u64, "hit"),
        };
        let place = match self.offset {
            0 => String::new(),
            offset => format!(" after the first {}", count(offset as u64)),
        };
        let exactness = if self.answer.exact { "" } else { ", approximate: the budget was spent" };
        format!("{found}{place} in {}{exactness}", duration(self.time))
    }

    /// The hits with their ranks.
    pub fn ranked(&self) -> impl Iterator<Item = (usize, &Hit)> {
        (self.offset + 1..).zip(&self.answer.hits)
    }
}

/// Answers a query that somebody typed, without its first `offset` hits, and measures the time.
pub fn answer(searcher: &Searcher, query: &Query, offset: usize) -> Result<Answered, Failure> {
    let notes = notes(query, searcher.index().analyzer())?;
    let start = Instant::now();
    let answer = searcher.search(query)?;
    Ok(Answered { notes, ..Answered::new(answer, offset, start.elapsed()) })
}

/// Writes answers from one index, scored by one model.
pub struct Presenter<'a> {
    /// The index that the hits come from.
    pub searcher: &'a Searcher,
    /// The score model, which decides how scores are printed.
    pub model: ScoreModel,
    /// How matches are highlighted.
    pub style: Style,
    /// The columns of a line.
    pub columns: usize,
    /// What is shown of a hit.
    pub shown: Shown,
    /// Whether to show steps and work.
    pub trace: bool,
    /// Whether a query that somebody typed is answered as JSON.
    pub json: bool,
}

impl Presenter<'_> {
    /// Writes the answer to a query that somebody typed; as text, notes on the query go to standard error.
    pub fn write(&self, query: &Query, answered: &Answered, out: &mut impl Write) -> Result<(), Failure> {
        if self.json {
            return self.write_json(query, answered, out);
        }
        answered.notes.iter().for_each(|line| note(line));
        self.write_text(query, answered, out)
    }

    /// Writes hits with rank, score, id and what else is shown, then the time.
    fn write_text(&self, query: &Query, answered: &Answered, out: &mut impl Write) -> Result<(), Failure> {
        self.write_hits(query, answered, out)?;
        let outcome = Snippet { text: answered.outcome(), ..Snippet::default() };
        for line in columns::lines(&outcome, self.columns, self.style, Plain::Text) {
            writeln!(out, "{}", self.style.faint(&line))?;
        }
        if self.trace {
            write_trace(&answered.answer, self.columns, out)?;
        }
        Ok(())
    }

    /// Writes hits with rank, score, id and what else is shown.
    pub fn write_hits(&self, query: &Query, answered: &Answered, out: &mut impl Write) -> Result<(), Failure> {
        let reader = Reader::new(self.searcher.index(), query)?;
        answered.ranked().try_for_each(|(rank, hit)| self.write_hit(&reader, rank, hit, out))
    }

    fn write_hit(&self, reader: &Reader<'_>, rank: usize, hit: &Hit, out: &mut impl Write) -> Result<(), Failure> {
        let id = self.searcher.id(hit.document)?;
        let head = format!("{rank:>4}. {}  ", self.score_text(hit.units));
        let shown_id = shortened(&printable(&id), self.columns.saturating_sub(head.len()).max(1));
        writeln!(out, "{head}{}", self.style.id(&shown_id))?;
        let longest = SNIPPET.min(LINES * self.text_columns());
        let Details { title, snippet, fields } = reader.details(hit.document, &self.shown, longest)?;
        let title = title.filter(|title| !title.trim().is_empty() && *title != id);
        if let Some(title) = title {
            let passage = reader.passage(&title, self.text_columns());
            self.write_lines(&columns::on_one_line(passage, self.text_columns()), Plain::Bold, out)?;
        }
        if let Some(snippet) = snippet {
            self.write_lines(&snippet, Plain::Text, out)?;
        }
        for (name, text) in fields.into_iter().flatten().filter(|(_, text)| !text.trim().is_empty()) {
            writeln!(out, "{INDENT}{}", self.style.faint(&shortened(&printable(&name), self.text_columns())))?;
            self.write_lines(&reader.passage(&text, usize::MAX), Plain::Text, out)?;
        }
        Ok(())
    }

    fn write_lines(&self, passage: &Snippet, plain: Plain, out: &mut impl Write) -> Result<(), Failure> {
        for line in columns::lines(passage, self.text_columns(), self.style, plain) {
            writeln!(out, "{INDENT}{line}")?;
        }
        Ok(())
    }

    fn text_columns(&self) -> usize {
        self.columns - INDENT.len()
    }

    fn score_text(&self, units: u32) -> String {
        let score = self.model.score(units);
        match self.model {
            ScoreModel::Impact => format!("{score}"),
            ScoreModel::Bm25 | ScoreModel::RankBm25 { .. } => format!("{score:.4}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanner::{Document, IndexBuilder};

    #[test]
    fn titles_are_highlighted_as_snippets_are() {
        let folder = tempfile::tempdir().unwrap();
        let document = Document::new("a").field("title", "Lanner Falcons").field("text", "A falcon hunts.");
        IndexBuilder::new(folder.path()).documents([document]).unwrap();
        let searcher = Searcher::open(folder.path()).unwrap();
        let (style, shown) = (Style::coloured(), Shown::Summary);
        let presenter = Presenter {
            searcher: &searcher,
            model: ScoreModel::Bm25,
            style,
            columns: 80,
            shown,
            trace: false,
            json: false,
        };
        let query = Query::new("falcon");
        let mut out = Vec::new();
        presenter.write_hits(&query, &answer(&searcher, &query, 0).unwrap(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        let expected =
            ["      \x1b[1mLanner\x1b[0m \x1b[1;33mFalcons\x1b[0m", "      A \x1b[1;33mfalcon\x1b[0m hunts."];
        assert_eq!(lines, expected);
    }
}
