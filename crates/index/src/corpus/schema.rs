//! The options resolved for one format: which slot of a record each field is, and what happens to it.

use super::CorpusOptions;
use super::error::CorpusError;
use super::format::Format;

/// What a value may be, and what it is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotKind {
    Id,
    Indexed,
    StoredOnly,
}

/// A record is a row of slots; slot 0 is the id.
#[derive(Debug)]
pub(super) struct Schema {
    pub(super) format: Format,
    /// `names[slot]`: the field that fills it. No name occurs twice.
    pub(super) names: Vec<String>,
    /// The slots of the fields to index, in order.
    pub(super) indexed: Vec<usize>,
    /// The slots of the fields to store, in order.
    pub(super) stored: Vec<usize>,
    pub(super) vector_field: Option<String>,
    /// The slot of a lone column beside the id (TSV).
    pub(super) lone_column: usize,
}

/// The slots of the formats whose fields are fixed.
pub(super) const TITLE: usize = 1;
pub(super) const TEXT: usize = 2;

impl Schema {
    pub(super) fn new(format: Format, options: &CorpusOptions) -> Result<Schema, CorpusError> {
        if options.vector_field.is_some() && !format.is_json() {
            return Err(CorpusError::NoVectors { format });
        }
        let mut names = slot_names(format, options);
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
            _ => indexed.iter().copied().rfind(|slot| *slot > 0).unwrap_or(1),
        };
        Ok(Schema { format, names, indexed, stored, vector_field: options.vector_field.clone(), lone_column })
    }

    pub(super) fn kind(&self, slot: usize) -> SlotKind {
        if slot == 0 {
            SlotKind::Id
        } else if self.indexed.contains(&slot) {
            SlotKind::Indexed
        } else {
            SlotKind::StoredOnly
        }
    }

    pub(super) fn slot(&self, name: &str) -> Option<usize> {
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

/// The slots a record of this format has before any field is asked for.
fn slot_names(format: Format, options: &CorpusOptions) -> Vec<String> {
    let id = match format {
        Format::Beir if options.id_field == "id" => "_id".to_owned(),
        _ => options.id_field.clone(),
    };
    let fixed = match format {
        Format::Trec | Format::Text => true,
        // Columns have no names of their own: they are the title and the text, or else the fields as listed.
        Format::Tsv => has_title_and_text_only(options),
        Format::Jsonl | Format::Beir => false,
    };
    if fixed { vec![id, "title".to_owned(), "text".to_owned()] } else { vec![id] }
}

fn resolve(format: Format, names: &mut Vec<String>, wanted: &[String]) -> Result<Vec<usize>, CorpusError> {
    let mut slots = Vec::with_capacity(wanted.len());
    for name in wanted {
        let slot = match names.iter().position(|known| known == name) {
            Some(slot) => slot,
            None if matches!(format, Format::Trec | Format::Text) => {
                return Err(CorpusError::UnknownField { format, field: name.clone(), known: names.join(", ") });
            }
            None => {
                names.push(name.clone());
                names.len() - 1
            }
        };
        slots.push(slot);
    }
    Ok(slots)
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
    fn a_field_that_is_indexed_and_stored_is_one_slot() {
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
