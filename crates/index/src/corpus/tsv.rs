//! The TSV format: an id, then one or more columns, without quotes or escapes.

use super::batch::Delivery;
use super::lines;

pub(super) fn documents(bytes: &[u8], first_line: u64, delivery: &mut Delivery<'_, '_>) {
    let schema = delivery.schema;
    let mut slots: Vec<Option<&str>> = vec![None; schema.names.len()];
    for (line, record) in lines::non_blank(bytes, first_line) {
        let record = match lines::utf8(record, line) {
            Ok(record) => record,
            Err(error) => {
                delivery.problem(error.line, error.what);
                continue;
            }
        };
        let Some((id, rest)) = record.split_once('\t') else {
            delivery.problem(line, "no tab; expected id<TAB>text".to_owned());
            continue;
        };
        if id.trim().is_empty() {
            delivery.problem(line, "the first column, the id, is empty".to_owned());
            continue;
        }
        slots.fill(None);
        slots[0] = Some(id);
        place_columns(rest, schema.lone_column, &mut slots);
        delivery.document(line, |slot| slots[slot], &[]);
    }
}

/// Assigns columns to fields in order; the last field takes all remaining columns. A single column is the text.
fn place_columns<'r>(rest: &'r str, lone_column: usize, slots: &mut [Option<&'r str>]) {
    let columns = slots.len() - 1;
    if !rest.contains('\t') {
        if let Some(slot) = slots.get_mut(lone_column) {
            *slot = Some(rest);
        }
        return;
    }
    for (slot, column) in slots[1..].iter_mut().zip(rest.splitn(columns, '\t')) {
        *slot = Some(column);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(rest: &str, columns: usize) -> Vec<Option<&str>> {
        let mut slots = vec![None; columns + 1];
        place_columns(rest, columns, &mut slots);
        slots.split_off(1)
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
