//! Numbered lines of a text, with errors that name file and line.

use std::path::Path;

use super::error::EvalError;

/// Calls `visit` with each line that is not blank and its number from 1; a problem that `visit` returns becomes an
/// error at that line.
pub(super) fn for_each_line(
    path: &Path,
    text: &str,
    mut visit: impl FnMut(&str) -> Result<(), String>,
) -> Result<(), EvalError> {
    for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
        visit(line).map_err(|problem| EvalError::Line { path: path.to_owned(), line: number, problem })?;
    }
    Ok(())
}

/// Splits a line at white space; the error is the number of fields if it is not `N`.
pub(super) fn fields<const N: usize>(line: &str) -> Result<[&str; N], usize> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let count = fields.len();
    fields.try_into().map_err(|_| count)
}
