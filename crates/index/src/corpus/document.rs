//! A document with any fields, as callers of the library give it and get it back.

use serde::Serialize;
use std::borrow::Cow;

/// A document: an external id and named fields.
///
/// Which fields are indexed and which are stored is decided by the options of the build; other fields are ignored.
///
/// ```
/// # use lanner_index::corpus::Document;
/// let document = Document::new("lanner").field("title", "Lanner falcon").field("text", "Lanners hunt in pairs.");
/// assert_eq!(document.get("title"), Some("Lanner falcon"));
/// assert_eq!(document.get("author"), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Document {
    /// The external id.
    pub id: String,
    /// Names and texts of the fields.
    pub fields: Vec<(Cow<'static, str>, String)>,
}

impl Document {
    /// A document without fields.
    pub fn new(id: impl Into<String>) -> Document {
        Document { id: id.into(), fields: Vec::new() }
    }

    /// Adds a field.
    pub fn field(mut self, name: impl Into<Cow<'static, str>>, text: impl Into<String>) -> Document {
        self.fields.push((name.into(), text.into()));
        self
    }

    /// The text of a field, the first of that name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, text)| text.as_str())
    }

    /// Bytes of the id and of all texts.
    pub(super) fn bytes(&self) -> usize {
        self.id.len() + self.fields.iter().map(|(_, text)| text.len()).sum::<usize>()
    }
}

/// An id, a title and a text.
impl From<(String, String, String)> for Document {
    fn from((id, title, text): (String, String, String)) -> Document {
        Document { id, fields: vec![("title".into(), title), ("text".into(), text)] }
    }
}
