//! The names of an object's fields, for the detection of formats and for messages.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The kind of a value, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Scalar,
    Array,
    Object,
}

/// How the object ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It is whole, and ends before this byte.
    At(usize),
    /// The bytes end before it.
    Cut,
    /// It is not JSON.
    Malformed,
}

/// The fields of the object with which some bytes begin, those before its end or its first error.
#[derive(Debug)]
pub(super) struct Keys {
    pub(super) fields: Vec<(String, Kind)>,
    pub(super) end: End,
}

/// The most fields that are named.
const NAMED_FIELDS: usize = 20;

impl Keys {
    pub(super) fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|(key, _)| key == name)
    }

    /// The names of the first fields, with the kind of those that are not text.
    pub(super) fn names(&self) -> Vec<String> {
        let named = self.fields.iter().take(NAMED_FIELDS).map(|(name, kind)| match kind {
            Kind::Scalar => name.clone(),
            Kind::Array => format!("{name} (array)"),
            Kind::Object => format!("{name} (object)"),
        });
        named.collect()
    }
}

/// Reads the names in the object with which `bytes` begin.
pub(super) fn top_level(bytes: &[u8]) -> Keys {
    let mut fields = Vec::new();
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<IgnoredAny>();
    // The end is that of a first reading, which skips all values; the names are read again.
    let end = match values.next() {
        Some(Ok(_)) => End::At(values.byte_offset()),
        Some(Err(error)) if error.is_eof() => End::Cut,
        _ => End::Malformed,
    };
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    // An error ends the names; what comes before it counts.
    let _ = (&mut deserializer).deserialize_map(KeysVisitor(&mut fields));
    Keys { fields, end }
}

struct KeysVisitor<'k>(&'k mut Vec<(String, Kind)>);

impl<'de> Visitor<'de> for KeysVisitor<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            // A value that is cut off has a name all the same.
            self.0.push((name, Kind::Scalar));
            let kind = map.next_value_seed(KindSeed)?;
            if let Some(field) = self.0.last_mut() {
                field.1 = kind;
            }
        }
        Ok(())
    }
}

struct KindSeed;

impl<'de> DeserializeSeed<'de> for KindSeed {
    type Value = Kind;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Kind, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for KindSeed {
    type Value = Kind;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Kind, E> {
        Ok(Kind::Scalar)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Kind, E> {
        Ok(Kind::Scalar)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Kind, E> {
        Ok(Kind::Scalar)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Kind, E> {
        Ok(Kind::Scalar)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Kind, E> {
        Ok(Kind::Scalar)
    }

    fn visit_unit<E: Error>(self) -> Result<Kind, E> {
        Ok(Kind::Scalar)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Kind, A::Error> {
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Kind::Array)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Kind, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Kind::Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_up_to_the_end_or_the_first_error() {
        let read = |text: &str| {
            let keys = top_level(text.as_bytes());
            (keys.names().join(" "), keys.end)
        };
        assert_eq!(read(r#"{"a":1,"b":{"c":2},"d":[{}]} x"#), ("a b (object) d (array)".to_owned(), End::At(28)));
        assert_eq!(read(r#"{"a":1,"b":"cut o"#), ("a b".to_owned(), End::Cut));
        assert_eq!(read(r#"{"a":1,"b" 2}"#), ("a b".to_owned(), End::Malformed));
        assert_eq!(read("[1]"), (String::new(), End::At(3)));
        assert_eq!(read(""), (String::new(), End::Malformed));
    }
}
