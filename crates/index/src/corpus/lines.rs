//! Lines: finding their ends, counting them, and checking that they are UTF-8.

/// Returns the position after the first line feed.
pub(super) fn line_end(bytes: &[u8]) -> Option<usize> {
    memchr::memchr(b'\n', bytes).map(|at| at + 1)
}

/// Counts the line feeds in `bytes`.
pub(super) fn count(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// Iterates over the lines with their numbers and without a carriage return at the end.
pub(super) fn all(bytes: &[u8], first_line: u64) -> impl Iterator<Item = (u64, &[u8])> {
    let mut start = 0;
    let lines = std::iter::from_fn(move || {
        if start == bytes.len() {
            return None;
        }
        let rest = &bytes[start..];
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        start += (end + 1).min(rest.len());
        Some(&rest[..end])
    });
    (first_line..).zip(lines).map(|(number, line)| (number, line.strip_suffix(b"\r").unwrap_or(line)))
}

/// Iterates over the lines that are not blank.
pub(super) fn non_blank(bytes: &[u8], first_line: u64) -> impl Iterator<Item = (u64, &[u8])> {
    all(bytes, first_line).filter(|(_, line)| !line.trim_ascii().is_empty())
}

/// The line and the message of a record that is not UTF-8.
pub(super) struct NotText {
    pub(super) line: u64,
    pub(super) what: String,
}

/// Returns the record as text; `line` is the line on which it begins.
pub(super) fn utf8(record: &[u8], line: u64) -> Result<&str, NotText> {
    std::str::from_utf8(record).map_err(|error| {
        let offset = error.valid_up_to();
        NotText {
            line: line + count(&record[..offset]),
            what: format!("invalid UTF-8 at byte {offset} of the record; convert the file to UTF-8"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_are_skipped_and_counted() {
        let lines: Vec<_> = non_blank(b"a\r\n \t\r\n\n b\nc", 7).collect();
        assert_eq!(lines, [(7, b"a".as_slice()), (10, b" b".as_slice()), (11, b"c".as_slice())]);
    }

    #[test]
    fn an_invalid_byte_is_reported_by_line_and_offset() {
        let error = utf8(b"one\ntw\xffo", 5).map(str::len).err().unwrap();
        assert_eq!(error.line, 6);
        assert_eq!(error.what, "invalid UTF-8 at byte 6 of the record; convert the file to UTF-8");
    }
}
