//! The options resolved for one format: the fields of a record by number, and what each is used for.

use std::sync::Arc;

use super::CorpusOptions;
use super::error::CorpusError;
use super::format::Format;

/// What a field is used for, which decides the types of values that it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldKind {
    Id,
    Indexed,
    StoredOnly,
    /// Read only to stand for another field; a value of another type counts as absent.
    Alternate,
}

/// A record is a row of fields, which are numbered; field 0 is the id.
#[derive(Clone, Debug)]
pub(super) struct Schema {
    pub(super) format: Format,
    /// `names[field]`. No name occurs twice.
    pub(super) names: Vec<String>,
    /// The fields to index, in order.
    pub(super) indexed: Vec<usize>,
    /// The fields to store, in order.
    pub(super) stored: Vec<usize>,
    /// A field that others may stand for if it is absent or empty, and those, the first choice first.
    alternates: Vec<(usize, Vec<usize>)>,
    /// Whether the options leave open which field is the id.
    pub(super) has_usual_id: bool,
    pub(super) vector_field: Option<String>,
    /// The field of a TSV line's column if it has only one beside the id.
    pub(super) lone_column: usize,
    /// The columns of a CSV file, which its header names.
    pub(super) columns: Columns,
}

/// What the header of a CSV file says.
#[derive(Clone, Debug, Default)]
pub(super) struct Columns {
    pub(super) delimiter: u8,
    pub(super) names: Vec<String>,
    /// The field of each column.
    pub(super) fields: Vec<Option<usize>>,
}

/// Names of the id in collections of others, the first choice first.
pub(super) const ID_NAMES: [&str; 4] = ["id", "_id", "docno", "docid"];
/// Names of the text in collections of others, the first choice first.
const TEXT_NAMES: [&str; 3] = ["text", "contents", "body"];

/// The numbers of fields in formats with fixed fields.
pub(super) const TITLE: usize = 1;
pub(super) const TEXT: usize = 2;

/// The schemas of the formats found in an input, made from the same options.
pub(super) struct Schemas {
    pub(super) options: CorpusOptions,
    made: Vec<Arc<Schema>>,
}

impl Schemas {
    pub(super) fn new(options: CorpusOptions) -> Schemas {
        Schemas { options, made: Vec::new() }
    }

    /// Returns the schema of a format; an error if the format cannot have the fields of the options.
    pub(super) fn of(&mut self, format: Format) -> Result<Arc<Schema>, CorpusError> {
        if let Some(schema) = self.made.iter().find(|schema| schema.format == format) {
            return Ok(Arc::clone(schema));
        }
        let schema = Arc::new(Schema::new(format, &self.options)?);
        self.made.push(Arc::clone(&schema));
        Ok(schema)
    }
}

impl Schema {
    pub(super) fn new(format: Format, options: &CorpusOptions) -> Result<Schema, CorpusError> {
        if options.vector_field.is_some() && !format.is_json() {
            return Err(CorpusError::NoVectors { format });
        }
        let mut names = field_names(format, options);
        let indexed = resolve(format, &mut names, &options.indexed())?;
        let stored = resolve(format, &mut names, &options.stored())?;
        if let Some(field) = &options.vector_field
            && names.contains(field)
        {
            let field = field.clone();
            return Err(CorpusError::VectorFieldTaken { field });
        }
        let lone_column = match format {
            Format::Tsv if has_title_and_text_only(options) => TEXT,
            _ => indexed.iter().copied().rfind(|field| *field > 0).unwrap_or(1),
        };
        let alternates = if format.has_named_fields() { add_alternates(&mut names, options) } else { Vec::new() };
        let (vector_field, columns) = (options.vector_field.clone(), Columns::default());
        let has_usual_id = options.id_field.is_none();
        Ok(Schema { format, names, indexed, stored, alternates, has_usual_id, vector_field, lone_column, columns })
    }

    pub(super) fn kind(&self, field: usize) -> FieldKind {
        if field == 0 {
            FieldKind::Id
        } else if self.indexed.contains(&field) {
            FieldKind::Indexed
        } else if self.stored.contains(&field) {
            FieldKind::StoredOnly
        } else {
            FieldKind::Alternate
        }
    }

    /// Whether an alternate stands for the id.
    pub(super) fn is_id(&self, field: usize) -> bool {
        self.alternates.iter().any(|(of, others)| *of == 0 && others.contains(&field))
    }

    /// Returns the field of a column of a CSV file; names are compared without regard to case.
    pub(super) fn column(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known.eq_ignore_ascii_case(name))
    }

    /// Whether one of these fields is the id or may stand for it.
    pub(super) fn has_id(&self, fields: &[Option<usize>]) -> bool {
        fields.iter().flatten().any(|field| *field == 0 || self.is_id(*field))
    }

    /// Returns the value of a field of a record, or that of a field that stands for it.
    #[inline]
    pub(super) fn value<'r>(&self, field: usize, read: &impl Fn(usize) -> Option<&'r str>) -> Option<&'r str> {
        match read(field) {
            Some(text) if !text.is_empty() => Some(text),
            own => self.value_of_alternate(field, read).or(own),
        }
    }

    fn value_of_alternate<'r>(&self, field: usize, read: &impl Fn(usize) -> Option<&'r str>) -> Option<&'r str> {
        let (_, others) = self.alternates.iter().find(|(of, _)| *of == field)?;
        others.iter().filter_map(|other| read(*other)).find(|text| !text.trim().is_empty())
    }

    /// Returns the names of the id and of what may stand for it, for messages.
    pub(super) fn id_names(&self) -> String {
        let others = self.alternates.iter().filter(|(of, _)| *of == 0).flat_map(|(_, others)| others);
        let names: Vec<&str> = [0].iter().chain(others).map(|field| self.names[*field].as_str()).collect();
        names.join(", ")
    }

    pub(super) fn field(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }
}

fn has_title_and_text_only(options: &CorpusOptions) -> bool {
    let named = options.fields.iter().chain(&options.store).flatten();
    let id = options.id_field.as_deref().unwrap_or("id");
    named.into_iter().all(|name| *name == "title" || *name == "text" || *name == id)
}

/// Adds the fields that stand for others where the options name none.
fn add_alternates(names: &mut Vec<String>, options: &CorpusOptions) -> Vec<(usize, Vec<usize>)> {
    let mut alternates = Vec::new();
    let mut add = |names: &mut Vec<String>, field: usize, usual: &[&str]| {
        let own = names[field].clone();
        let is_free = |name: &&&str| **name != own && options.vector_field.as_deref() != Some(**name);
        alternates.push((field, usual.iter().filter(is_free).map(|name| number(names, name)).collect()));
    };
    if options.id_field.is_none() {
        add(names, 0, &ID_NAMES);
    }
    let is_usual = options.fields.is_none() || options.store.is_none();
    let is_named = options.fields.iter().flatten().any(|name| name == TEXT_NAMES[0]);
    if is_usual && !is_named {
        let text = number(names, TEXT_NAMES[0]);
        add(names, text, &TEXT_NAMES);
    }
    alternates
}

/// Returns the number of a field, which is added if it is new.
fn number(names: &mut Vec<String>, name: &str) -> usize {
    names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    })
}

/// Returns the names of fields that every record of this format has, whatever fields the options name.
fn field_names(format: Format, options: &CorpusOptions) -> Vec<String> {
    let usual = if format == Format::Beir { "_id" } else { "id" };
    let id = options.id_field.clone().unwrap_or_else(|| usual.to_owned());
    let fixed = match format {
        Format::Trec | Format::Text => true,
        // Columns have no names: they are title and text, unless the options name other fields.
        Format::Tsv => has_title_and_text_only(options),
        Format::Jsonl | Format::Json | Format::Beir | Format::Bulk | Format::Csv => false,
    };
    if fixed { vec![id, "title".to_owned(), "text".to_owned()] } else { vec![id] }
}

fn resolve(format: Format, names: &mut Vec<String>, wanted: &[String]) -> Result<Vec<usize>, CorpusError> {
    let mut fields = Vec::with_capacity(wanted.len());
    for name in wanted {
        if matches!(format, Format::Trec | Format::Text) && !names.contains(name) {
            return Err(CorpusError::UnknownField { format, field: name.clone(), known: names.join(", ") });
        }
        let field = number(names, name);
        if fields.contains(&field) {
            return Err(CorpusError::RepeatedField { field: name.clone() });
        }
        fields.push(field);
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(fields: &[&str], store: &[&str]) -> CorpusOptions {
        CorpusOptions {
            fields: Some(fields.iter().map(|name| name.to_string()).collect()),
            store: Some(store.iter().map(|name| name.to_string()).collect()),
            ..CorpusOptions::default()
        }
    }

    #[test]
    fn a_field_that_is_indexed_and_stored_has_one_number() {
        let schema = Schema::new(Format::Jsonl, &options(&["body"], &["url", "body"])).unwrap();
        assert_eq!(schema.names[..3], ["id", "body", "url"]);
        assert_eq!((schema.indexed, schema.stored), (vec![1], vec![2, 1]));
    }

    #[test]
    fn a_field_cannot_be_indexed_or_stored_twice() {
        for options in [options(&["body", "title", "body"], &["body"]), options(&["body"], &["url", "url"])] {
            assert!(matches!(Schema::new(Format::Jsonl, &options), Err(CorpusError::RepeatedField { .. })));
        }
    }

    #[test]
    fn usual_names_stand_for_each_other_unless_the_options_name_fields() {
        let value = |options: &CorpusOptions, field: usize, record: &[(&'static str, &'static str)]| {
            let schema = Schema::new(Format::Jsonl, options).unwrap();
            let read =
                |field: usize| record.iter().find(|(name, _)| *name == schema.names[field]).map(|(_, text)| *text);
            schema.value(field, &read)
        };
        let usual = CorpusOptions::default();
        assert_eq!(value(&usual, 0, &[("docid", "c"), ("docno", "b"), ("_id", "a")]), Some("a"));
        assert_eq!(value(&usual, 0, &[("docid", "c"), ("id", ""), ("docno", "b")]), Some("b"));
        assert_eq!(value(&usual, TEXT, &[("body", "b"), ("contents", "c")]), Some("c"));
        assert_eq!(value(&usual, TEXT, &[("body", "b"), ("contents", "c"), ("text", "t")]), Some("t"));
        assert_eq!(value(&usual, TEXT, &[("text", "")]), Some(""));
        assert_eq!(value(&usual, TEXT, &[("title", "t")]), None);
        assert_eq!(value(&options(&["text"], &["text"]), 1, &[("body", "b")]), None);
        // What is shown may stand for the text even where another field is indexed.
        let one = CorpusOptions { fields: Some(vec!["contents".to_owned()]), ..CorpusOptions::default() };
        let schema = Schema::new(Format::Jsonl, &one).unwrap();
        assert_eq!(value(&one, schema.stored[1], &[("contents", "c")]), Some("c"));
        assert_eq!(schema.id_names(), "id, _id, docno, docid");
        assert_eq!(Schema::new(Format::Beir, &usual).unwrap().id_names(), "_id, id, docno, docid");
        let named = CorpusOptions { id_field: Some("key".to_owned()), ..CorpusOptions::default() };
        assert_eq!(Schema::new(Format::Beir, &named).unwrap().id_names(), "key");
    }

    #[test]
    fn the_id_can_be_stored_too() {
        let schema = Schema::new(Format::Beir, &options(&["text"], &["_id"])).unwrap();
        assert_eq!(schema.stored, [0]);
    }

    #[test]
    fn columns_are_title_and_text_whichever_of_them_is_indexed() {
        let schema = Schema::new(Format::Tsv, &options(&["text"], &["title"])).unwrap();
        assert_eq!(schema.names, ["id", "title", "text"]);
        assert_eq!(schema.lone_column, TEXT);
    }

    #[test]
    fn other_columns_follow_the_order_of_the_fields() {
        let schema = Schema::new(Format::Tsv, &options(&["head", "body"], &["url"])).unwrap();
        assert_eq!(schema.names, ["id", "head", "body", "url"]);
        assert_eq!(schema.lone_column, 2);
    }

    #[test]
    fn a_field_that_a_format_cannot_have_is_refused() {
        let error = Schema::new(Format::Trec, &options(&["body"], &[])).unwrap_err();
        assert_eq!(error.to_string(), "trec input has no field \"body\"; its fields are id, title, text");
    }

    #[test]
    fn weights_are_refused_outside_of_json_and_for_a_field_with_another_role() {
        let with_vector =
            |field: &str| CorpusOptions { vector_field: Some(field.to_owned()), ..CorpusOptions::default() };
        let error = Schema::new(Format::Tsv, &with_vector("vector")).unwrap_err();
        assert!(matches!(error, CorpusError::NoVectors { .. }));
        let error = Schema::new(Format::Jsonl, &with_vector("text")).unwrap_err();
        assert!(matches!(error, CorpusError::VectorFieldTaken { .. }));
    }
}
