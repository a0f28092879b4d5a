//! Numbered lines of a text file, with errors that name file and line.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use super::error::EvalError;

/// Opens `path` for buffered reading.
pub(super) fn open(path: &Path) -> Result<BufReader<File>, EvalError> {
    File::open(path).map(BufReader::new).map_err(|source| EvalError::Read { path: path.to_owned(), source })
}

/// Calls `visit` with each line that is not blank and its number from 1, without the line end
/// and without a byte order mark; the problem `visit` returns becomes an error at that line.
pub(super) fn for_each_line(
    path: &Path,
    mut reader: impl BufRead,
    mut visit: impl FnMut(&str, usize) -> Result<(), String>,
) -> Result<(), EvalError> {
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        let length =
            reader.read_until(b'\n', &mut bytes).map_err(|source| EvalError::Read { path: path.to_owned(), source })?;
        if length == 0 {
            break;
        }
        let visited = match std::str::from_utf8(&bytes) {
            Ok(text) => match without_mark(text, number).trim_end_matches(['\n', '\r']) {
                blank if blank.trim().is_empty() => Ok(()),
                line => visit(line, number),
            },
            Err(_) => Err(String::from("not valid UTF-8; convert the file to UTF-8")),
        };
        visited.map_err(|problem| EvalError::Line { path: path.to_owned(), line: number, problem })?;
    }
    Ok(())
}

/// Editors on some systems put a byte order mark before the first character of a file.
fn without_mark(text: &str, number: usize) -> &str {
    match text.strip_prefix('\u{feff}') {
        Some(rest) if number == 1 => rest,
        _ => text,
    }
}

/// The fields of a line between white space, if there are exactly `N` of them.
pub(super) fn fields<const N: usize>(line: &str) -> Result<[&str; N], usize> {
    let mut found = [""; N];
    let mut count = 0;
    for field in line.split_ascii_whitespace() {
        if let Some(place) = found.get_mut(count) {
            *place = field;
        }
        count += 1;
    }
    if count == N { Ok(found) } else { Err(count) }
}
