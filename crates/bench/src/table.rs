//! Tables as text for the terminal and as Markdown, and the numbers in them.
//!
//! Tables are part of the result files and of the report, so their layout and the three significant digits of their
//! numbers are fixed here instead of following a crate for tables.

use indicatif::HumanCount;
use serde::{Deserialize, Serialize};

/// A table with a title.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    pub title: String,
    /// Remarks below the table.
    pub notes: Vec<String>,
    /// The headings.
    pub columns: Vec<String>,
    /// The number of columns, from the left, that are aligned to the left; the others hold numbers.
    pub text_columns: usize,
    /// Rows with one cell for each column.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates an empty table whose first `text_columns` columns are text.
    pub fn new<T: AsRef<str>>(title: impl Into<String>, text_columns: usize, columns: &[T]) -> Table {
        let columns = columns.iter().map(|name| name.as_ref().to_owned()).collect();
        Table { title: title.into(), columns, text_columns, ..Table::default() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
        debug_assert_eq!(self.rows.last().map(Vec::len), Some(self.columns.len()));
    }

    /// Adds a row of a label and numbers.
    pub fn numbers(&mut self, label: &str, values: impl IntoIterator<Item = f64>) {
        self.row([label.to_owned()].into_iter().chain(values.into_iter().map(number)));
    }

    /// Adds remarks.
    pub fn notes(mut self, notes: &[&str]) -> Table {
        self.notes.extend(notes.iter().map(|&note| note.to_owned()));
        self
    }

    /// Formats the table for the terminal.
    pub fn to_text(&self) -> String {
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|at| self.rows.iter().chain([&self.columns]).map(|row| row[at].chars().count()).max().unwrap_or(0))
            .collect();
        let line = |cells: &Vec<String>| {
            let padded = cells.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| {
                if at < self.text_columns { format!("{cell:width$}") } else { format!("{cell:>width$}") }
            });
            format!("  {}\n", padded.collect::<Vec<_>>().join("  ").trim_end())
        };
        let rule = format!("  {}\n", widths.iter().map(|&w| "─".repeat(w)).collect::<Vec<_>>().join("  "));
        let rows: String = self.rows.iter().map(line).collect();
        let notes: String = self.notes.iter().map(|note| format!("  {note}\n")).collect();
        format!("\n{}\n{}{rule}{rows}{notes}", self.title, line(&self.columns))
    }

    /// Formats the table as Markdown.
    pub fn to_markdown(&self) -> String {
        let line = |cells: &Vec<String>| {
            format!("| {} |\n", cells.iter().map(|cell| cell.replace('|', "\\|")).collect::<Vec<_>>().join(" | "))
        };
        let rules = (0..self.columns.len()).map(|at| if at < self.text_columns { "---" } else { "---:" });
        let rule = format!("| {} |\n", rules.collect::<Vec<_>>().join(" | "));
        let rows: String = self.rows.iter().map(line).collect();
        let notes: String = self.notes.iter().map(|note| format!("\n{note}\n")).collect();
        format!("**{}**\n\n{}{rule}{rows}{notes}", self.title, line(&self.columns))
    }
}

/// Stands for a number that was not measured.
pub const DASH: &str = "–";

/// Formats a number with three significant digits and separators; whole numbers from 100 on.
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        0.0 => 0,
        size if size < 0.01 => 5,
        size if size < 0.1 => 4,
        size if size < 1.0 => 3,
        size if size < 10.0 => 2,
        size if size < 100.0 => 1,
        _ => 0,
    };
    match value {
        _ if !value.is_finite() => DASH.to_owned(),
        _ if value <= -100.0 => format!("-{}", number(-value)),
        _ if decimals == 0 => count(value.round_ties_even() as u64),
        _ => format!("{value:.decimals$}"),
    }
}

/// Formats a whole number with separators.
pub fn count(value: u64) -> String {
    HumanCount(value).to_string()
}

/// Formats a number of bytes in B, kB or MB.
pub fn bytes(value: u64) -> String {
    match value {
        0..10_000 => format!("{} B", count(value)),
        10_000..10_000_000 => format!("{} kB", number(value as f64 / 1e3)),
        _ => format!("{} MB", number(value as f64 / 1e6)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_significant_digits_and_separators() {
        let shown: Vec<String> = [0.0, 0.00123, 0.0456, 0.5, 1.234, 56.78, 999.6, 1234567.0].map(number).to_vec();
        assert_eq!(shown, ["0", "0.00123", "0.0456", "0.500", "1.23", "56.8", "1,000", "1,234,567"]);
        assert_eq!([number(f64::NAN), number(-0.25), number(-1234.0)], [DASH, "-0.250", "-1,234"]);
        assert_eq!([bytes(900), bytes(12_345), bytes(24_009_805)], ["900 B", "12.3 kB", "24.0 MB"]);
    }

    #[test]
    fn a_table_is_aligned_in_text_and_escaped_in_markdown() {
        let mut table = Table::new("Sizes", 1, &["part", "bytes"]);
        table.row(vec!["a|b".to_owned(), "1".to_owned()]);
        table.row(vec!["lexicon".to_owned(), "1,000".to_owned()]);
        assert_eq!(
            table.to_text(),
            "\nSizes\n  part     bytes\n  ───────  ─────\n  a|b          1\n  lexicon  1,000\n"
        );
        assert_eq!(
            table.to_markdown(),
            "**Sizes**\n\n| part | bytes |\n| --- | ---: |\n| a\\|b | 1 |\n| lexicon | 1,000 |\n"
        );
    }
}
