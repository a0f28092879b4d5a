//! JSON lines: strings are borrowed from the line where possible, and fields that are not needed are skipped.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};

use super::batch::Delivery;
use super::json_keys;
use super::lenient::LenientSeed;
use super::lines;
use super::schema::{FieldKind, Schema};

/// The values of one record; its memory is reused for the next.
pub(super) struct Record<'b> {
    pub(super) fields: Vec<Option<Cow<'b, str>>>,
    weights: Vec<(Cow<'b, str>, f32)>,
    has_weights: bool,
}

pub(super) fn documents(bytes: &[u8], first_line: u64, delivery: &mut Delivery<'_, '_>) {
    let mut record = Record::new(delivery.schema);
    for (line, bytes) in lines::non_blank(bytes, first_line) {
        let Some(text) = delivery.text(bytes, line) else { continue };
        match record.parse(text, delivery.schema) {
            Ok(()) => record.deliver(text, line, delivery),
            Err(error) => delivery.problem(line, error.in_line()),
        }
    }
}

impl<'b> Record<'b> {
    pub(super) fn new(schema: &Schema) -> Record<'b> {
        Record { fields: vec![None; schema.names.len()], weights: Vec::new(), has_weights: false }
    }

    /// Reads one object, whose id is not checked.
    pub(super) fn parse(&mut self, text: &'b str, schema: &Schema) -> Result<(), Malformed> {
        self.fields.fill(None);
        self.weights.clear();
        self.has_weights = false;
        let mut deserializer = serde_json::Deserializer::from_str(text);
        (&mut deserializer)
            .deserialize_map(RecordVisitor { schema, record: self })
            .and_then(|()| deserializer.end())
            .map_err(|error| Malformed::new(&error))
    }

    /// Passes the record on, or reports what it lacks; `text` is its JSON.
    pub(super) fn deliver(&self, text: &str, line: u64, delivery: &mut Delivery<'_, '_>) {
        match self.lack(text, delivery.schema) {
            Some(what) => delivery.problem(line, what),
            None => {
                let names = || json_keys::top_level(text.as_bytes()).names();
                delivery.document(line, |field| self.fields[field].as_deref(), &self.weights, names);
            }
        }
    }

    fn lack(&self, text: &str, schema: &Schema) -> Option<String> {
        let id = schema.value(0, &|field: usize| self.fields[field].as_deref());
        if id.unwrap_or("").trim().is_empty() {
            return Some(match id {
                Some(_) => format!("field \"{}\" is empty", schema.names[0]),
                None => {
                    let seen = json_keys::top_level(text.as_bytes()).names();
                    missing_id(schema, &seen)
                }
            });
        }
        match &schema.vector_field {
            Some(name) if !self.has_weights => Some(format!("field \"{name}\" is missing")),
            _ => None,
        }
    }
}

/// What is said of a record without an id, with the names of its fields.
pub(super) fn missing_id(schema: &Schema, seen: &[String]) -> String {
    let seen = if seen.is_empty() { String::new() } else { format!("; fields seen: {}", seen.join(", ")) };
    match schema.id_names().split_once(", ") {
        Some((name, others)) => format!("field \"{name}\" is missing, and {others} as well{seen}"),
        None => format!("field \"{}\" is missing{seen}", schema.names[0]),
    }
}

/// Why a record cannot be parsed, and where, in lines and columns of the record from 1.
pub(super) struct Malformed {
    reason: String,
    pub(super) line: u64,
    column: usize,
}

impl Malformed {
    fn new(error: &serde_json::Error) -> Malformed {
        let message = error.to_string();
        let reason = message.rsplit_once(" at line ").map_or(message.as_str(), |(reason, _)| reason).to_owned();
        Malformed { reason, line: error.line() as u64, column: error.column() }
    }

    /// The reason with the column.
    pub(super) fn in_line(&self) -> String {
        format!("{} (column {})", self.reason, self.column)
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
        formatter.write_str("a JSON object")
    }

    // The last value of a repeated key wins, as in most readers.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(role) = map.next_key_seed(RoleSeed(self.schema))? {
            match role {
                Role::Field(field) if self.schema.kind(field) == FieldKind::Alternate => {
                    let value = map.next_value_seed(LenientSeed { is_id: self.schema.is_id(field) })?;
                    self.record.fields[field] = value;
                }
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
            FieldKind::StoredOnly | FieldKind::Alternate => "a string, a number, a boolean or an array of strings",
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
            _ => Ok(Some(Cow::Owned(number.to_string()))),
        }
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        match self.kind {
            FieldKind::Indexed => Err(E::invalid_type(Unexpected::Signed(number), &self)),
            _ => Ok(Some(Cow::Owned(number.to_string()))),
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
            FieldKind::StoredOnly | FieldKind::Alternate => {
                Ok(Some(Cow::Borrowed(if value { "true" } else { "false" })))
            }
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
        record.parse(line, &schema).map_err(|error| error.in_line())?;
        if let Some(what) = record.lack(line, &schema) {
            return Err(what);
        }
        let owned = |field: Option<Cow<'_, str>>| field.map(Cow::into_owned);
        let weights = record.weights.into_iter();
        Ok((
            record.fields.into_iter().map(owned).collect(),
            weights.map(|(term, weight)| (term.into_owned(), weight)).collect(),
        ))
    }

    fn fields(line: &str) -> Vec<Option<String>> {
        let mut fields = parsed(line, &CorpusOptions::default()).unwrap().0;
        assert!(fields.split_off(3).iter().all(Option::is_none), "no other field stands for one of these");
        fields
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
        let missing = "field \"id\" is missing, and _id, docno, docid as well; fields seen: ";
        assert_eq!(
            problem(r#"{"key":"1","text":"a","x":{},"y":[]}"#),
            format!("{missing}key, text, x (object), y (array)")
        );
        assert_eq!(problem(r#"{"id":null}"#), format!("{missing}id"));
        assert_eq!(problem(r#"{"id":" "}"#), "field \"id\" is empty");
    }

    #[test]
    fn a_field_that_stands_for_another_may_have_any_type() {
        let line = r#"{"docid":7,"_id":{"x":[1]},"docno":[[1]],"contents":["a",{"b":"c"}],"body":["a","b"]}"#;
        let (fields, _) = parsed(line, &CorpusOptions::default()).unwrap();
        let texts: Vec<_> = fields.iter().map(Option::as_deref).collect();
        // id, title, text, _id, docno, docid, contents, body
        assert_eq!(texts, [None, None, None, None, None, Some("7"), None, Some("a b")]);
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
            CorpusOptions { store: Some(["a", "b", "c", "d"].map(str::to_owned).to_vec()), ..CorpusOptions::default() };
        let line = r#"{"id":"1","a":1999,"b":0.5,"c":true,"d":-3}"#;
        let (fields, _) = parsed(line, &options).unwrap();
        let stored: Vec<_> = fields[3..7].iter().flatten().collect();
        assert_eq!(stored, ["1999", "0.5", "true", "-3"]);
    }

    #[test]
    fn malformed_lines_give_the_column() {
        assert_eq!(problem(r#"{"id":"1" "text"}"#), "expected `,` or `}` (column 11)");
        assert_eq!(problem(r#"{"id":"1"} x"#), "trailing characters (column 12)");
        assert!(problem("[1]").starts_with("invalid type: sequence, expected a JSON object"));
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
