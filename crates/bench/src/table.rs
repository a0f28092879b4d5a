//! Tables of text: for the terminal and for Markdown.

use serde::{Deserialize, Serialize};

/// A table with a title.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// What a reader must know to judge it.
    pub notes: Vec<String>,
    /// The heads of the columns; the first column is text, the others are numbers unless `text_columns` says more.
    pub columns: Vec<String>,
    /// How many columns, from the left, are aligned as text.
    pub text_columns: usize,
    /// The rows, as many cells as there are columns.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table whose first `text_columns` columns are text.
    pub fn new(title: impl Into<String>, text_columns: usize, columns: &[&str]) -> Table {
        let columns = columns.iter().map(|&name| name.to_owned()).collect();
        Table { title: title.into(), columns, text_columns, ..Table::default() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// For the terminal.
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

    /// For a page.
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

/// A number with as many decimals as make three significant digits, and thousands apart.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let decimals = match value.abs() {
        0.0 => 0,
        size if size < 0.01 => 5,
        size if size < 0.1 => 4,
        size if size < 1.0 => 3,
        size if size < 10.0 => 2,
        size if size < 100.0 => 1,
        _ => 0,
    };
    let text = format!("{value:.decimals$}");
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    format!("{}{fraction}", thousands(whole))
}

/// A whole number with thousands apart.
pub fn count(value: u64) -> String {
    thousands(&value.to_string())
}

/// Bytes in the unit that suits them.
pub fn bytes(value: u64) -> String {
    match value {
        0..10_000 => format!("{} B", count(value)),
        10_000..10_000_000 => format!("{} kB", number(value as f64 / 1e3)),
        _ => format!("{} MB", number(value as f64 / 1e6)),
    }
}

fn thousands(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    let mut out = sign.to_owned();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_significant_digits_and_thousands_apart() {
        let shown: Vec<String> = [0.0, 0.00123, 0.0456, 0.5, 1.234, 56.78, 999.6, 1234567.0].map(number).to_vec();
        assert_eq!(shown, ["0", "0.00123", "0.0456", "0.500", "1.23", "56.8", "1,000", "1,234,567"]);
        assert_eq!(number(f64::NAN), "–");
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
