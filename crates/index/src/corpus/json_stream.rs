//! JSON objects on any lines: pretty-printed, one after the other, or in arrays.
//!
//! A document is an object that is inside no other. Brackets and commas around documents separate them, and need not
//! be right, except that an array that is never closed shows that the file is not complete.

use super::batch::Delivery;
use super::json::Record;
use super::lines;

/// Finds the ends of documents in bytes that come piece after piece.
#[derive(Clone, Debug, Default)]
pub(super) struct Ends {
    /// Objects that are open.
    objects: u64,
    /// Arrays around documents that are open.
    arrays: u64,
    in_string: bool,
    /// The byte before was a backslash in a string.
    is_escaped: bool,
}

impl Ends {
    /// Reads on, and returns the position after the first document that ends; `None` if none does.
    pub(super) fn next(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            if self.in_string {
                at += self.string(&bytes[at..]);
                continue;
            }
            let byte = bytes[at];
            at += 1;
            match byte {
                b'"' => self.in_string = true,
                b'{' => self.objects += 1,
                b'}' if self.objects > 0 => {
                    self.objects -= 1;
                    if self.objects == 0 {
                        return Some(at);
                    }
                }
                b'[' if self.objects == 0 => self.arrays += 1,
                b']' if self.objects == 0 => self.arrays = self.arrays.saturating_sub(1),
                _ => {}
            }
        }
        None
    }

    /// Reads on in a string, and returns how far.
    fn string(&mut self, bytes: &[u8]) -> usize {
        if self.is_escaped {
            self.is_escaped = false;
            return 1;
        }
        let Some(end) = memchr::memchr2(b'"', b'\\', bytes) else { return bytes.len() };
        match bytes[end] {
            b'"' => self.in_string = false,
            _ => self.is_escaped = true,
        }
        end + 1
    }

    /// Whether the bytes so far end inside an array of documents.
    pub(super) fn is_in_array(&self) -> bool {
        self.arrays > 0 && self.objects == 0
    }
}

pub(super) fn documents(bytes: &[u8], first_line: u64, delivery: &mut Delivery<'_, '_>) {
    let mut record = Record::new(delivery.schema);
    let mut ends = Ends::default();
    let (mut start, mut line) = (0, first_line);
    loop {
        let next = ends.next(&bytes[start..]);
        let end = next.map_or(bytes.len(), |length| start + length);
        let piece = &bytes[start..end];
        let mut gap = separators(piece);
        line += lines::count(&piece[..gap]);
        if gap < piece.len() && piece[gap] != b'{' {
            delivery.problem(line, "expected a JSON object".to_owned());
            let stray = memchr::memchr(b'{', &piece[gap..]).unwrap_or(piece.len() - gap);
            line += lines::count(&piece[gap..gap + stray]);
            gap += stray;
        }
        if let Some(text) = delivery.text(&piece[gap..], line).filter(|text| !text.is_empty()) {
            match record.parse(text, delivery.schema) {
                Ok(()) => record.deliver(text, line, delivery),
                Err(error) => {
                    let at = line + error.line.saturating_sub(1);
                    let rest =
                        if next.is_none() { "; the object has no end, and nothing after it is read" } else { "" };
                    delivery.problem(at, error.in_line() + rest);
                }
            }
        }
        line += lines::count(&piece[gap..]);
        start = end;
        if start == bytes.len() {
            return;
        }
    }
}

/// Counts the bytes before an object that only separate it from the one before.
fn separators(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| byte.is_ascii_whitespace() || b",[]".contains(*byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The ends of all documents, when the bytes come in pieces of this length.
    fn ends(bytes: &[u8], piece: usize) -> Vec<usize> {
        let mut ends = Ends::default();
        let mut found = Vec::new();
        for (number, bytes) in bytes.chunks(piece).enumerate() {
            let mut at = 0;
            while let Some(length) = ends.next(&bytes[at..]) {
                at += length;
                found.push(number * piece + at);
            }
        }
        found
    }

    #[test]
    fn a_document_ends_with_the_object_that_is_in_no_other() {
        assert_eq!(ends(br#"[{"a":"}\"{","b":[{}]} , {}]{}"#, 100), [22, 27, 30]);
        assert_eq!(ends(br#"}] "{}" {"#, 100), Vec::<usize>::new());
    }

    #[test]
    fn an_array_that_is_not_closed_is_known() {
        for (text, expected) in [("[{}", true), ("[{}]", false), ("{}", false), ("[[{}]", true), ("[{\"a\":[", false)] {
            let mut ends = Ends::default();
            let mut at = 0;
            while let Some(length) = ends.next(&text.as_bytes()[at..]) {
                at += length;
            }
            assert_eq!(ends.is_in_array(), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn ends_do_not_depend_on_the_pieces(text in r#"[\[\]{}",:\\a ]{0,60}"#, piece in 1usize..9) {
            prop_assert_eq!(ends(text.as_bytes(), piece), ends(text.as_bytes(), 1000));
        }
    }
}
