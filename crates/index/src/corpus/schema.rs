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
}

/// A record is a row of fields, which are numbered; field 0 is the id.
#[derive(Debug)]
pub(super) struct Schema {
    pub(super) format: Format,
    /// `names[field]`. No name occurs twice.
    pub(super) names: Vec<String>,
    /// The fields to index, in order.
    pub(super) indexed: Vec<usize>,
    /// The fields to store, in order.
    pub(super) stored: Vec<usize>,
    pub(super) vector_field: Option<String>,
    /// The field of a TSV line's column if it has only one beside the id.
    pub(super) lone_column: usize,
}

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
        let indexed = resolve(format, &mut names, &options.fields)?;
        let stored = resolve(format, &mut names, &options.store)?;
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
        Ok(Schema { format, names, indexed, stored, vector_field: options.vector_field.clone(), lone_column })
    }

    pub(super) fn kind(&self, field: usize) -> FieldKind {
        if field == 0 {
            FieldKind::Id
        } else if self.indexed.contains(&field) {
            FieldKind::Indexed
        } else {
            FieldKind::StoredOnly
        }
    }

    pub(super) fn field(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }
}

fn has_title_and_text_only(options: &CorpusOptions) -> bool {
    options
        .fields
        .iter()
        .chain(&options.store)
        .all(|name| *name == "title" || *name == "text" || *name == options.id_field)
}

/// Returns the names of fields that every record of this format has, whatever fields the options name.
fn field_names(format: Format, options: &CorpusOptions) -> Vec<String> {
    let id = match format {
        Format::Beir if options.id_field == "id" => "_id".to_owned(),
        _ => options.id_field.clone(),
    };
    let fixed = match format {
        Format::Trec | Format::Text => true,
        // Columns have no names: they are title and text, unless the options name other fields.
        Format::Tsv => has_title_and_text_only(options),
        Format::Jsonl | Format::Beir => false,
    };
    if fixed { vec![id, "title".to_owned(), "text".to_owned()] } else { vec![id] }
}

fn resolve(format: Format, names: &mut Vec<String>, wanted: &[String]) -> Result<Vec<usize>, CorpusError> {
    let mut fields = Vec::with_capacity(wanted.len());
    for name in wanted {
        let field = match names.iter().position(|known| known == name) {
            Some(field) => field,
            None if matches!(format, Format::Trec | Format::Text) => {
                return Err(CorpusError::UnknownField { format, field: name.clone(), known: names.join(", ") });
            }
            None => {
                names.push(name.clone());
                names.len() - 1
            }
        };
        fields.push(field);
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(fields: &[&str], store: &[&str]) -> CorpusOptions {
        CorpusOptions {
            fields: fields.iter().map(|name| name.to_string()).collect(),
            store: store.iter().map(|name| name.to_string()).collect(),
            ..CorpusOptions::default()
        }
    }

    #[test]
    fn a_field_that_is_indexed_and_stored_has_one_number() {
        let schema = Schema::new(Format::Jsonl, &options(&["body"], &["url", "body"])).unwrap();
        assert_eq!(schema.names, ["id", "body", "url"]);
        assert_eq!((schema.indexed, schema.stored), (vec![1], vec![2, 1]));
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
