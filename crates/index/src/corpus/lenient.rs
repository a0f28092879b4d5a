//! Values of fields that only stand for others: text is taken, and any other type counts as absent.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Reads a string or an array of strings, for an id a string or an integer; anything else is `None`.
pub(super) struct LenientSeed {
    pub(super) is_id: bool,
}

impl<'de> DeserializeSeed<'de> for LenientSeed {
    type Value = Option<Cow<'de, str>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(Lenient { is_id: self.is_id, is_element: false })
    }
}

struct Lenient {
    is_id: bool,
    /// Arrays inside arrays are not read.
    is_element: bool,
}

impl<'de> DeserializeSeed<'de> for Lenient {
    type Value = Option<Cow<'de, str>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Lenient {
    type Value = Option<Cow<'de, str>>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Owned(text.to_owned())))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(self.is_id.then(|| Cow::Owned(number.to_string())))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(self.is_id.then(|| Cow::Owned(number.to_string())))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        if self.is_id || self.is_element {
            while elements.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(None);
        }
        let mut joined: Option<String> = None;
        let mut is_text = true;
        while let Some(element) = elements.next_element_seed(Lenient { is_id: false, is_element: true })? {
            let Some(text) = element else {
                is_text = false;
                continue;
            };
            match &mut joined {
                Some(joined) => joined.extend([" ", &*text]),
                None => joined = Some(text.into_owned()),
            }
        }
        Ok(joined.filter(|_| is_text).map(Cow::Owned))
    }
}
