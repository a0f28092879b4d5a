//! What is shown of a hit besides its rank, score and id.

use crate::failure::Failure;
use lanner::answer::Snippet;
use lanner::{DocId, Index, Query};
use std::collections::HashSet;

/// The part of a document that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Nothing.
    Nothing,
    /// Its title, and a passage around the words of the query.
    Summary,
    /// These stored fields, whole.
    Fields(Vec<String>),
}

impl Shown {
    /// The fields of a list separated by commas, `none` for none. All must be stored.
    pub fn fields(list: &str, index: &Index) -> Result<Shown, Failure> {
        let names: Vec<String> =
            list.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
        if names.is_empty() || names == ["none"] {
            return Ok(Shown::Nothing);
        }
        let stored = &index.manifest().stored;
        if let Some(absent) = names.iter().find(|name| !stored.contains(name)) {
            let known = match stored.is_empty() {
                true => "no field; 'lanner index --store' says what it stores".to_owned(),
                false => format!("only {}", stored.join(", ")),
            };
            return Err(Failure::new(format!("the index does not store the field {absent:?}, it stores {known}")));
        }
        Ok(Shown::Fields(names))
    }
}

/// What is read of a document to be shown.
#[derive(Default)]
pub struct Details {
    /// Its title, if it has one.
    pub title: Option<String>,
    /// The passage, if any field is stored.
    pub snippet: Option<Snippet>,
    /// Fields by name.
    pub fields: Option<Vec<(String, String)>>,
}

/// Reads documents and finds passages in them around the words of one query.
pub struct Reader<'a> {
    index: &'a Index,
    terms: HashSet<String>,
}

impl<'a> Reader<'a> {
    /// A reader for a query over an index.
    pub fn new(index: &'a Index, query: &Query) -> Result<Reader<'a>, Failure> {
        let terms = query.terms(index.analyzer())?;
        Ok(Reader { index, terms: terms.into_iter().map(|term| term.term).collect() })
    }

    /// Reads what is to be shown of a document; passages have about `longest` characters.
    pub fn details(&self, document: DocId, shown: &Shown, longest: usize) -> Result<Details, Failure> {
        if *shown == Shown::Nothing {
            return Ok(Details::default());
        }
        let stored = self.index.stored(document)?;
        let get = |wanted: &str| stored.iter().find(|(name, _)| *name == wanted).map(|(_, text)| text.clone());
        if let Shown::Fields(names) = shown {
            let fields = names.iter().map(|name| (name.clone(), get(name).unwrap_or_default())).collect();
            return Ok(Details { fields: Some(fields), ..Details::default() });
        }
        let text = get("text").or_else(|| stored.last().map(|(_, text)| text.clone()));
        Ok(Details { title: get("title"), snippet: text.map(|text| self.passage(&text, longest)), fields: None })
    }

    /// A passage of a text around the words of the query.
    pub fn passage(&self, text: &str, longest: usize) -> Snippet {
        Snippet::new(text, &self.terms, self.index.analyzer(), longest)
    }
}
