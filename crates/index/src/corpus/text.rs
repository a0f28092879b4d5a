//! The text format: each file is one document.

use super::batch::{Delivery, PartKind};
use super::cut::CHUNK_BYTES;
use super::error::CorpusError;
use super::lines;
use super::schema::{TEXT, TITLE};
use super::stream::Stream;

/// The longest title, in characters.
const TITLE_CHARACTERS: usize = 120;

/// Whether the content of a file was read, or why it cannot be a document.
pub(super) enum Outcome {
    Read,
    Unusable { line: u64, what: String },
}

/// Appends a whole file to `bytes`, but stops at the first sign that it is not a text.
pub(super) fn read_whole(stream: &mut Stream, bytes: &mut Vec<u8>, limit: usize) -> Result<Outcome, CorpusError> {
    let start = bytes.len();
    loop {
        let chunk = bytes.len();
        if stream.read_into(bytes, CHUNK_BYTES)? == 0 {
            return Ok(Outcome::Read);
        }
        if let Some(at) = memchr::memchr(0, &bytes[chunk..]) {
            let offset = chunk + at - start;
            return Ok(Outcome::Unusable {
                line: 1 + lines::count(&bytes[start..chunk + at]),
                what: format!("a NUL at byte {offset}: not a text file"),
            });
        }
        if bytes.len() - start > limit {
            return Ok(Outcome::Unusable { line: 1, what: format!("longer than {limit} bytes; split the file") });
        }
    }
}

/// The part of a batch that a file is, given its path below the input.
pub(super) fn identified(outcome: Outcome, relative: Vec<u8>) -> PartKind {
    match (outcome, String::from_utf8(relative)) {
        (Outcome::Unusable { line, what }, _) => PartKind::Unusable { line, what },
        (Outcome::Read, Ok(id)) => PartKind::Document { id },
        (Outcome::Read, Err(_)) => PartKind::Unusable {
            line: 1,
            what: "the path is not valid UTF-8, so it cannot be an id; rename the file".to_owned(),
        },
    }
}

pub(super) fn document(id: &str, bytes: &[u8], delivery: &mut Delivery<'_, '_>) {
    let text = match lines::utf8(bytes, 1) {
        Ok(text) => text,
        Err(error) => return delivery.problem(error.line, error.what),
    };
    let title = title(text);
    let slot = |slot| match slot {
        TITLE => Some(title),
        TEXT => Some(text),
        _ => Some(id),
    };
    delivery.document(1, slot, &[]);
}

/// The first line that is not blank, cut to the longest title.
fn title(text: &str) -> &str {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("");
    match line.char_indices().nth(TITLE_CHARACTERS) {
        Some((end, _)) => line[..end].trim_end(),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_title_is_the_first_line_that_is_not_blank() {
        assert_eq!(title("\r\n  \n\t A title \r\nmore"), "A title");
        assert_eq!(title(" \n"), "");
    }

    #[test]
    fn a_long_title_is_cut_at_a_character() {
        let line = "é".repeat(200);
        assert_eq!(title(&line), "é".repeat(120));
    }
}
