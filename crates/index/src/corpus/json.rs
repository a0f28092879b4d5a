//! JSON lines: strings are borrowed from the line where possible, and fields that are not needed are skipped.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};

use super::batch::Delivery;
use super::lines;
use super::schema::{FieldKind, Schema};

/// The values of one record; its memory is reused for the next.
struct Record<'b> {
    fields: Vec<Option<Cow<'b, str>>>,
    weights: Vec<(Cow<'b, str>, f32)>,
    has_weights: bool,
}

pub(super) fn documents(bytes: &[u8], first_line: u64, delivery: &mut Delivery<'_, '_>) {
    let schema = delivery.schema;
    let mut record = Record { fields: vec![None; schema.names.len()], weights: Vec::new(), has_weights: false };
    for (line, bytes) in lines::non_blank(bytes, first_line) {
        let Some(text) = delivery.text(bytes, line) else { continue };
        match parse(text, schema, &mut record) {
            Ok(()) => delivery.document(line, |field| record.fields[field].as_deref(), &record.weights),
            Err(what) => delivery.problem(line, what),
        }
    }
}

fn parse<'b>(text: &'b str, schema: &Schema, record: &mut Record<'b>) -> Result<(), String> {
    record.fields.fill(None);
    record.weights.clear();
    record.has_weights = false;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    (&mut deserializer)
        .deserialize_map(RecordVisitor { schema, record })
        .and_then(|()| deserializer.end())
        .map_err(|error| explain(&error))?;
    let id = record.fields[0].as_deref().unwrap_or("");
    if id.trim().is_empty() {
        let state = if record.fields[0].is_some() { "empty" } else { "missing" };
        let name = &schema.names[0];
        return Err(format!("field \"{name}\" is {state}"));
    }
    match &schema.vector_field {
        Some(name) if !record.has_weights => Err(format!("field \"{name}\" is missing")),
        _ => Ok(()),
    }
}

/// Returns the parser's message with the column; the line is always 1, since each record is parsed alone.
fn explain(error: &serde_json::Error) -> String {
    let message = error.to_string();
    match message.rsplit_once(" at line ") {
        Some((reason, _)) => format!("{reason} (column {})", error.column()),
        None => message,
    }
}

/// What a key of the record means.
enum Role {
    Field(usize),
    Weights,
    Ignored,
}

struct RoleSeed<'s>(&'s Schema);

impl<'de> DeserializeSeed<'de> for RoleSeed<'_> {
    type Value = Role;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Role, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for RoleSeed<'_> {
    type Value = Role;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a field name")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Role, E> {
        Ok(match self.0.field(key) {
            Some(field) => Role::Field(field),
            None if self.0.vector_field.as_deref() == Some(key) => Role::Weights,
            None => Role::Ignored,
        })
    }
}

struct RecordVisitor<'s, 'b> {
    schema: &'s Schema,
    record: &'s mut Record<'b>,
}

impl<'de> Visitor<'de> for RecordVisitor<'_, 'de> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("one JSON object per line")
    }

    // The last value of a repeated key wins, as in most readers.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(role) = map.next_key_seed(RoleSeed(self.schema))? {
            match role {
                Role::Field(field) => {
                    let seed = ValueSeed { name: &self.schema.names[field], kind: self.schema.kind(field) };
                    self.record.fields[field] = map.next_value_seed(seed)?;
                }
                Role::Weights => {
                    self.record.weights.clear();
                    self.record.has_weights = map.next_value_seed(WeightsSeed(&mut self.record.weights))?;
                }
                Role::Ignored => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// Reads the value of one field as text; null counts as absent.
struct ValueSeed<'s> {
    name: &'s str,
    kind: FieldKind,
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Option<Cow<'de, str>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Option<Cow<'de, str>>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let expected = match self.kind {
            FieldKind::Id => "a string or an integer",
            FieldKind::Indexed => "a string or an array of strings",
            FieldKind::StoredOnly => "a string, a number, a boolean or an array of strings",
        };
        write!(formatter, "{expected} in field \"{}\"", self.name)
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        match self.kind {
            FieldKind::Indexed => Err(E::invalid_type(Unexpected::Unsigned(number), &self)),
            FieldKind::Id | FieldKind::StoredOnly => Ok(Some(Cow::Owned(number.to_string()))),
        }
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        match self.kind {
            FieldKind::Indexed => Err(E::invalid_type(Unexpected::Signed(number), &self)),
            FieldKind::Id | FieldKind::StoredOnly => Ok(Some(Cow::Owned(number.to_string()))),
        }
    }

    // An id must keep the text of the file, which a float does not.
    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        match (self.kind, serde_json::Number::from_f64(number)) {
            (FieldKind::StoredOnly, Some(number)) => Ok(Some(Cow::Owned(number.to_string()))),
            _ => Err(E::invalid_type(Unexpected::Float(number), &self)),
        }
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        match self.kind {
            FieldKind::StoredOnly => Ok(Some(Cow::Borrowed(if value { "true" } else { "false" }))),
            FieldKind::Id | FieldKind::Indexed => Err(E::invalid_type(Unexpected::Bool(value), &self)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        if self.kind == FieldKind::Id {
            return Err(A::Error::invalid_type(Unexpected::Seq, &self));
        }
        let mut joined = String::new();
        let mut is_first = true;
        while let Some(()) =
            elements.next_element_seed(ElementSeed { name: self.name, is_first, joined: &mut joined })?
        {
            is_first = false;
        }
        Ok(Some(Cow::Owned(joined)))
    }
}

/// Appends one string of an array, after a space.
struct ElementSeed<'s> {
    name: &'s str,
    is_first: bool,
    joined: &'s mut String,
}

impl<'de> DeserializeSeed<'de> for ElementSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for ElementSeed<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "strings in the array of field \"{}\"", self.name)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        if !self.is_first {
            self.joined.push(' ');
        }
        self.joined.push_str(text);
        Ok(())
    }
}

/// Reads an object of terms and weights, without weights of zero; returns false for null.
struct WeightsSeed<'s, 'b>(&'s mut Vec<(Cow<'b, str>, f32)>);

impl<'de> DeserializeSeed<'de> for WeightsSeed<'_, 'de> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for WeightsSeed<'_, 'de> {
    type Value = bool;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object of terms and weights")
    }

    fn visit_unit<E: Error>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        while let Some(term) = map.next_key_seed(TermSeed)? {
            let weight = map.next_value::<f64>()? as f32;
            if !weight.is_finite() || weight < 0.0 {
                return Err(A::Error::custom(format_args!("the weight of \"{term}\" is negative or too large")));
            }
            if weight > 0.0 {
                self.0.push((term, weight));
            }
        }
        Ok(true)
    }
}

struct TermSeed;

impl<'de> DeserializeSeed<'de> for TermSeed {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for TermSeed {
    type Value = Cow<'de, str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a term")
    }

    fn visit_borrowed_str<E: Error>(self, term: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(term))
    }

    fn visit_str<E: Error>(self, term: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(term.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::{CorpusOptions, Format};

    type Parsed = (Vec<Option<String>>, Vec<(String, f32)>);

    fn parsed(line: &str, options: &CorpusOptions) -> Result<Parsed, String> {
        let schema = Schema::new(Format::Jsonl, options).unwrap();
        let mut record = Record {
            fields: vec![Some("left over".into()); schema.names.len()],
            weights: vec![("left over".into(), 1.0)],
            has_weights: true,
        };
        parse(line, &schema, &mut record)?;
        let owned = |field: Option<Cow<'_, str>>| field.map(Cow::into_owned);
        let weights = record.weights.into_iter();
        Ok((
            record.fields.into_iter().map(owned).collect(),
            weights.map(|(term, weight)| (term.into_owned(), weight)).collect(),
        ))
    }

    fn fields(line: &str) -> Vec<Option<String>> {
        parsed(line, &CorpusOptions::default()).unwrap().0
    }

    fn problem(line: &str) -> String {
        parsed(line, &CorpusOptions::default()).unwrap_err()
    }

    fn some(texts: [&str; 3]) -> Vec<Option<String>> {
        texts.map(|text| Some(text.to_owned())).to_vec()
    }

    #[test]
    fn fields_are_found_in_any_order_and_others_are_skipped() {
        assert_eq!(fields(r#"{"x":{"id":[1]},"text":"b","title":"a","id":"7","y":null}"#), some(["7", "a", "b"]));
    }

    #[test]
    fn escapes_are_resolved_in_values_and_keys() {
        assert_eq!(
            fields(r#"{"\u0069d":"\ud83d\ude00","title":"a\tb","text":"\"q\""}"#),
            some(["😀", "a\tb", "\"q\""])
        );
    }

    #[test]
    fn arrays_of_strings_are_joined_and_null_is_absent() {
        assert_eq!(
            fields(r#"{"id":"1","title":null,"text":["a","","b\n"]}"#),
            [Some("1".into()), None, Some("a  b\n".into())]
        );
    }

    #[test]
    fn an_integer_is_an_id_and_keeps_its_text() {
        assert_eq!(fields(r#"{"id":18446744073709551615}"#)[0].as_deref(), Some("18446744073709551615"));
        assert_eq!(fields(r#"{"id":-5}"#)[0].as_deref(), Some("-5"));
        assert_eq!(
            problem(r#"{"id":1.5}"#),
            "invalid type: floating point `1.5`, expected a string or an integer in field \"id\" (column 9)"
        );
    }

    #[test]
    fn a_missing_or_empty_id_is_a_problem() {
        let missing = "field \"id\" is missing";
        assert_eq!(problem(r#"{"_id":"1","text":"a"}"#), missing);
        assert_eq!(problem(r#"{"id":null}"#), missing);
        assert_eq!(problem(r#"{"id":" "}"#), "field \"id\" is empty");
    }

    #[test]
    fn other_types_in_an_indexed_field_are_problems() {
        for value in ["{}", "1", "-1", "0.5", "true", "[1]", "[[]]", "[null]"] {
            let message = problem(&format!("{{\"id\":\"1\",\"text\":{value}}}"));
            assert!(message.contains("field \"text\""), "{value}: {message}");
        }
    }

    #[test]
    fn scalars_can_be_stored() {
        let options =
            CorpusOptions { store: ["a", "b", "c", "d"].map(str::to_owned).to_vec(), ..CorpusOptions::default() };
        let line = r#"{"id":"1","a":1999,"b":0.5,"c":true,"d":-3}"#;
        let (fields, _) = parsed(line, &options).unwrap();
        let stored: Vec<_> = fields[3..].iter().flatten().collect();
        assert_eq!(stored, ["1999", "0.5", "true", "-3"]);
    }

    #[test]
    fn malformed_lines_give_the_column() {
        assert_eq!(problem(r#"{"id":"1" "text"}"#), "expected `,` or `}` (column 11)");
        assert_eq!(problem(r#"{"id":"1"} x"#), "trailing characters (column 12)");
        assert!(problem("[1]").starts_with("invalid type: sequence, expected one JSON object per line"));
        assert!(problem(r#"{"id":"1","text":"cut of"#).starts_with("EOF while parsing a string"));
    }

    #[test]
    fn deep_nesting_in_a_skipped_value_is_no_harm() {
        let line = format!("{{\"x\":{}{},\"id\":\"1\"}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(fields(&line)[0].as_deref(), Some("1"));
    }

    #[test]
    fn weights_are_read_in_order_without_zeros() {
        let options = CorpusOptions { vector_field: Some("vector".to_owned()), ..CorpusOptions::default() };
        let read = |vector: &str| {
            let line = format!("{{\"id\":\"1\",\"vector\":{vector}}}");
            parsed(&line, &options).map(|(_, weights)| weights)
        };
        assert_eq!(
            read(r#"{"b":2,"a":0.5,"z":0,"\u0063":1e-3}"#).unwrap(),
            [("b".into(), 2.0), ("a".into(), 0.5), ("c".into(), 0.001)]
        );
        assert_eq!(read("{}").unwrap(), []);
        assert_eq!(read("null").unwrap_err(), "field \"vector\" is missing");
        for bad in [r#"{"a":-1}"#, r#"{"a":1e39}"#, r#"{"a":"1"}"#, r#"["a"]"#, "1"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
