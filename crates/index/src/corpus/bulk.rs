//! The bulk format of Elasticsearch and OpenSearch: a line with an action, then, except after `delete`, a line with the
//! source of the document.

use std::borrow::Cow;

use super::batch::Delivery;
use super::json::Record;
use super::json_keys::{self, End, Kind};
use super::lines;
use super::schema::Schema;

/// What a line in the place of an action is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// `index` or `create`: the next line is a document.
    Add,
    /// `update`: the next line changes a document.
    Update,
    /// `delete`, which has no source.
    Delete,
    /// Not an action.
    Other,
}

impl Action {
    fn of(line: &[u8]) -> Action {
        // An action is short, and a line that is not one should not be read twice.
        let keys = match memchr::memmem::find(&line[..line.len().min(16)], b"\"") {
            Some(_) => json_keys::top_level(line),
            None => return Action::Other,
        };
        match (&keys.fields[..], keys.end) {
            ([(name, Kind::Object)], End::At(_)) => match name.as_str() {
                "index" | "create" => Action::Add,
                "update" => Action::Update,
                "delete" => Action::Delete,
                _ => Action::Other,
            },
            _ => Action::Other,
        }
    }

    fn has_source(self) -> bool {
        matches!(self, Action::Add | Action::Update)
    }
}

/// Whether a line is an action.
pub(super) fn is_action(line: &[u8]) -> bool {
    Action::of(line) != Action::Other
}

/// Finds the ends of actions with their sources in bytes that come piece after piece.
#[derive(Clone, Debug, Default)]
pub(super) struct Ends {
    /// The part of the line that was read so far, if it is in the place of an action.
    line: Vec<u8>,
    /// The line is the source of the action before it.
    in_source: bool,
}

impl Ends {
    /// Reads on, and returns the position after the first action that ends, with its source.
    pub(super) fn next(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            let end = lines::line_end(&bytes[at..]);
            let piece = &bytes[at..end.map_or(bytes.len(), |length| at + length)];
            at += piece.len();
            if self.in_source {
                self.in_source = end.is_none();
                if end.is_some() {
                    return Some(at);
                }
                continue;
            }
            self.line.extend_from_slice(piece);
            if end.is_some() {
                self.in_source = Action::of(self.line.trim_ascii()).has_source();
                self.line.clear();
                if !self.in_source {
                    return Some(at);
                }
            }
        }
        None
    }
}

/// What is said of an action that the build of an index cannot follow.
const UNFIT: &str = "only index and create make documents, and an index is built from them; leave the action out";

pub(super) fn documents(bytes: &[u8], first_line: u64, delivery: &mut Delivery<'_, '_>) {
    let mut record = Record::new(delivery.schema);
    let mut rest = lines::all(bytes, first_line);
    while let Some((line, action)) = rest.next() {
        if action.trim_ascii().is_empty() {
            continue;
        }
        let kind = Action::of(action.trim_ascii());
        let source = if kind.has_source() { rest.next() } else { None };
        match (kind, source) {
            (Action::Add, Some(source)) => add(action, source, &mut record, delivery),
            (Action::Add, None) => {
                delivery.problem(line, "an action without the line of its document; is the file complete?".to_owned());
            }
            (Action::Update | Action::Delete, _) => delivery.problem(line, UNFIT.to_owned()),
            (Action::Other, _) => {
                delivery.problem(line, "no action; expected {\"index\":{\"_id\":\"…\"}}, then the document".to_owned());
            }
        }
    }
}

/// Reads a document; its id is that of the action unless the options name the field.
fn add<'b>(action: &[u8], (line, source): (u64, &'b [u8]), record: &mut Record<'b>, delivery: &mut Delivery<'_, '_>) {
    let Some(text) = delivery.text(source, line) else { return };
    match record.parse(text, delivery.schema) {
        Ok(()) => {
            if let Some(id) = id_of(action, delivery.schema) {
                record.fields[0] = Some(Cow::Owned(id));
            }
            record.deliver(text, line, delivery);
        }
        Err(error) => delivery.problem(line, error.in_line()),
    }
}

fn id_of(action: &[u8], schema: &Schema) -> Option<String> {
    if !schema.has_usual_id {
        return None;
    }
    let action: serde_json::Value = serde_json::from_slice(action).ok()?;
    match action.as_object()?.values().next()?.get("_id")? {
        serde_json::Value::String(id) => Some(id.clone()),
        serde_json::Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
    fn an_action_is_an_object_with_one_of_four_names() {
        let of = |line: &str| Action::of(line.as_bytes());
        assert_eq!(of(r#"{"index":{}}"#), Action::Add);
        assert_eq!(of(r#"{ "create" : { "_id": "1", "_index": "a" } }"#), Action::Add);
        assert_eq!(of(r#"{"update":{"_id":1}}"#), Action::Update);
        assert_eq!(of(r#"{"delete":{"_id":1}}"#), Action::Delete);
        for line in [r#"{"index":1}"#, r#"{"index":{},"id":1}"#, r#"{"text":{}}"#, "{", "", "index"] {
            assert_eq!(of(line), Action::Other, "{line}");
        }
    }

    #[test]
    fn an_action_is_not_cut_from_its_source() {
        let text = b"{\"index\":{}}\n{\"index\":{}}\n{\"delete\":{}}\nstray\n{\"create\":{}}\n{}";
        assert_eq!(ends(text, 100), [26, 40, 46]);
    }

    proptest! {
        #[test]
        fn ends_do_not_depend_on_the_pieces(
            lines in prop::collection::vec(prop::sample::select(vec![r#"{"index":{}}"#, r#"{"delete":{}}"#, "x", ""]), 0..9),
            piece in 1usize..20,
        ) {
            let text = lines.join("\n");
            prop_assert_eq!(ends(text.as_bytes(), piece), ends(text.as_bytes(), 1000));
        }
    }
}
