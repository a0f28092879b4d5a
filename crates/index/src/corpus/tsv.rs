//! The TSV format: an id, then one or more columns, without quotes or escapes.

use super::batch::Delivery;
use super::lines;

pub(super) fn documents(bytes: &[u8], first_line: u64, delivery: &mut Delivery<'_, '_>) {
    let schema = delivery.schema;
    let mut fields: Vec<Option<&str>> = vec![None; schema.names.len()];
    for (line, record) in lines::non_blank(bytes, first_line) {
        let Some(record) = delivery.text(record, line) else { continue };
        let Some((id, rest)) = record.split_once('\t') else {
            delivery.problem(line, "no tab; expected id<TAB>text".to_owned());
            continue;
        };
        if id.trim().is_empty() {
            delivery.problem(line, "the first column, the id, is empty".to_owned());
            continue;
        }
        fields.fill(None);
        fields[0] = Some(id);
        place_columns(rest, schema.lone_column, &mut fields);
        delivery.document(line, |field| fields[field], &[], Vec::new);
    }
}

/// Assigns columns to fields in order; the last field takes all remaining columns. A single column is the text.
fn place_columns<'r>(rest: &'r str, lone_column: usize, fields: &mut [Option<&'r str>]) {
    let columns = fields.len() - 1;
    if !rest.contains('\t') {
        if let Some(field) = fields.get_mut(lone_column) {
            *field = Some(rest);
        }
        return;
    }
    for (field, column) in fields[1..].iter_mut().zip(rest.splitn(columns, '\t')) {
        *field = Some(column);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(rest: &str, columns: usize) -> Vec<Option<&str>> {
        let mut fields = vec![None; columns + 1];
        place_columns(rest, columns, &mut fields);
        fields.split_off(1)
    }

    #[test]
    fn a_lone_column_is_the_last_field() {
        assert_eq!(placed("text", 2), [None, Some("text")]);
    }

    #[test]
    fn the_last_field_takes_further_tabs() {
        assert_eq!(placed("title\ta\tb", 2), [Some("title"), Some("a\tb")]);
    }

    #[test]
    fn missing_columns_are_absent() {
        assert_eq!(placed("a\tb", 3), [Some("a"), Some("b"), None]);
    }

    #[test]
    fn columns_without_fields_are_dropped() {
        assert_eq!(placed("a\tb", 0), Vec::<Option<&str>>::new());
    }
}
