//! The text format: each file is one document.

use super::batch::{Delivery, PartKind};
use super::decompress::{BUFFER_BYTES, Decompressed};
use super::error::CorpusError;
use super::schema::{TEXT, TITLE};

/// The longest title, in characters.
const TITLE_CHARACTERS: usize = 120;

/// What reading a whole file found.
pub(super) enum Outcome {
    Read,
    Binary,
    TooLong,
}

/// Appends a whole file to `bytes`, but stops at the first NUL.
pub(super) fn read_whole(file: &mut Decompressed, bytes: &mut Vec<u8>, limit: usize) -> Result<Outcome, CorpusError> {
    let start = bytes.len();
    loop {
        let piece = bytes.len();
        if file.read_into(bytes, BUFFER_BYTES)? == 0 {
            return Ok(Outcome::Read);
        }
        if memchr::memchr(0, &bytes[piece..]).is_some() {
            return Ok(Outcome::Binary);
        }
        if bytes.len() - start > limit {
            return Ok(Outcome::TooLong);
        }
    }
}

/// Returns the part of a batch that a file makes, given its path below the input.
pub(super) fn identified(relative: Vec<u8>) -> PartKind {
    match String::from_utf8(relative) {
        Ok(id) => PartKind::Document { id },
        Err(_) => PartKind::Problem {
            line: 1,
            what: "the path is not valid UTF-8, so it cannot be an id; rename the file".to_owned(),
        },
    }
}

pub(super) fn document(id: &str, bytes: &[u8], delivery: &mut Delivery<'_, '_>) {
    let Some(text) = delivery.text(bytes, 1) else { return };
    let title = title(text);
    let field = |field| match field {
        TITLE => Some(title),
        TEXT => Some(text),
        _ => Some(id),
    };
    delivery.document(1, field, &[], Vec::new);
}

/// Returns the first line that is not blank, cut to the longest title.
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
