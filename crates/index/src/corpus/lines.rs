//! Lines: where they end, how many there are, and whether they are text.

/// The position after the first line feed.
pub(super) fn line_end(bytes: &[u8]) -> Option<usize> {
    memchr::memchr(b'\n', bytes).map(|at| at + 1)
}

/// How many lines end in `bytes`.
pub(super) fn count(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// The lines that are not blank, with their numbers; a carriage return at the end is not part of a line.
pub(super) fn non_blank(bytes: &[u8], first_line: u64) -> impl Iterator<Item = (u64, &[u8])> {
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
    lines
        .zip(first_line..)
        .map(|(line, number)| (number, line.strip_suffix(b"\r").unwrap_or(line)))
        .filter(|(_, line)| !line.trim_ascii().is_empty())
}

/// Why a record is not text: the line and the message of a problem.
pub(super) struct NotText {
    pub(super) line: u64,
    pub(super) what: String,
}

/// The record as text; `line` is the line it begins on.
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
    fn the_place_of_an_invalid_byte_is_given_as_line_and_offset() {
        let error = utf8(b"one\ntw\xffo", 5).map(str::len).err().unwrap();
        assert_eq!(error.line, 6);
        assert_eq!(error.what, "invalid UTF-8 at byte 6 of the record; convert the file to UTF-8");
    }
}
