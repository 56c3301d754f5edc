//! Encodes documents in protobuf: the only form of version 2 that kubectl and older clients request.
//!
//! Mirrors upstream's handlers in kube-openapi; the messages are `openapi.v2.Document` and `openapi.v3.Document`. JSON is
//! converted to bytes in one pass, without an intermediate tree. Members without a field, and values of another type than their
//! field, are omitted: an invalid document of a backend must not make the merged document unavailable.

mod messages;
mod v2;
mod v3;
mod wire;

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use messages::{Field, Kind, Look, Map, Message};
use wire::{put_double, put_integer, put_message, put_text};

/// Encodes a version 2 document.
///
/// # Errors
/// The text is not a JSON object.
pub(super) fn encode_v2(json: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
    encode(json, &v2::DOCUMENT)
}

/// Encodes a version 3 document.
///
/// # Errors
/// The text is not a JSON object.
pub(super) fn encode_v3(json: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
    encode(json, &v3::DOCUMENT)
}

fn encode(json: &[u8], document: &'static Message) -> Result<Vec<u8>, serde_json::Error> {
    // Names become numbers and quotes disappear, so the result is shorter than the JSON, except for tiny documents.
    let mut out = Vec::with_capacity(json.len());
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    deserializer.deserialize_map(Fields { out: &mut out, of: Members::Message(document) })?;
    deserializer.end()?;
    Ok(out)
}

/// Writes one JSON value as a field.
struct Value<'a> {
    out: &'a mut Vec<u8>,
    number: u32,
    kind: Kind,
}

/// Writes the members of one JSON object.
struct Fields<'a> {
    out: &'a mut Vec<u8>,
    of: Members,
}

#[derive(Clone, Copy)]
enum Members {
    Message(&'static Message),
    Map(&'static Map),
}

impl Members {
    /// Returns the field of a member, and true if the member becomes an entry with its name.
    fn field(self, name: &str) -> Option<(u32, Kind, bool)> {
        let (Self::Message(Message { extensions, .. }) | Self::Map(Map { extensions, .. })) = self;
        if *extensions != 0 && name.starts_with("x-") {
            return Some((*extensions, Kind::Any, true));
        }
        let find = |fields: &[Field]| fields.iter().find(|f| f.0 == name).map(|f| (f.1, f.2));
        match self {
            Self::Map(map) if map.default != 0 && name == "default" => Some((map.default, map.value, false)),
            Self::Map(map) => Some((map.entries, map.value, true)),
            Self::Message(message) => {
                let shared = |(fields, base)| find(fields).map(|(number, kind)| (base + number, kind));
                let (number, kind) = find(message.fields).or_else(|| message.shared.and_then(shared))?;
                Some((number, kind, false))
            }
        }
    }
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<(), A::Error> {
        self.write(members, None)
    }
}

impl Fields<'_> {
    /// Writes the members. If `reference` is given, a `$ref` is stored there.
    fn write<'de, A>(self, mut members: A, mut reference: Option<&mut Option<String>>) -> Result<(), A::Error>
    where
        A: MapAccess<'de>,
    {
        while let Some(name) = members.next_key::<Cow<'de, str>>()? {
            if name == "$ref"
                && let Some(reference) = &mut reference
            {
                **reference = Some(members.next_value()?);
                continue;
            }
            match self.of.field(&name) {
                None => {
                    members.next_value::<IgnoredAny>()?;
                }
                Some((number, kind, false)) => {
                    members.next_value_seed(Value { out: self.out, number, kind })?;
                }
                Some((number, kind, true)) => put_message(self.out, number, |out| {
                    put_text(out, 1, &name);
                    members.next_value_seed(Value { out, number: 2, kind })
                })?,
            }
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        let Self { out, number, kind } = self;
        match kind {
            Kind::Any => {
                let text = <&RawValue>::deserialize(json)?;
                put_message(out, number, |out| {
                    put_text(out, 2, &yaml(text.get()));
                    Ok(())
                })
            }
            Kind::Wrapped(inner) => {
                put_message(out, number, |out| Value { out, number: 1, kind: *inner }.deserialize(json))
            }
            Kind::Choice(choose) => {
                let text = <&RawValue>::deserialize(json)?.get();
                let look = serde_json::from_str::<Look<'_>>(text);
                let Some((number_inside, kind)) = look.ok().and_then(|l| choose(&l)) else { return Ok(()) };
                put_message(out, number, |out| {
                    let mut again = serde_json::Deserializer::from_str(text);
                    Value { out, number: number_inside, kind }.deserialize(&mut again)
                })
                .map_err(D::Error::custom)
            }
            _ => json.deserialize_any(Self { out, number, kind }),
        }
    }
}

impl Value<'_> {
    /// Kind of a single value of a repeated field.
    fn one(&self) -> Kind {
        match self.kind {
            Kind::Each(one) => *one,
            kind => kind,
        }
    }

    fn integer(self, value: i64) {
        match self.one() {
            Kind::Integer => put_integer(self.out, self.number, value),
            Kind::Number => put_double(self.out, self.number, value as f64),
            Kind::Scalar => self.within(|out| put_double(out, 1, value as f64)),
            _ => {}
        }
    }

    /// Writes a message whose content `body` writes.
    fn within(self, body: impl FnOnce(&mut Vec<u8>)) {
        let done: Result<(), Infallible> = put_message(self.out, self.number, |out| {
            body(out);
            Ok(())
        });
        done.unwrap_or_else(|never| match never {})
    }

    /// Writes the members of an object that is a message or a reference to one.
    fn or_reference<'de, A>(self, message: &'static Message, members: A) -> Result<(), A::Error>
    where
        A: MapAccess<'de>,
    {
        put_message(self.out, self.number, |out| {
            let (at, mut reference) = (out.len(), None);
            let of = Members::Message(message);
            put_message(out, 1, |out| Fields { out, of }.write(members, Some(&mut reference)))?;
            if let Some(reference) = reference {
                out.truncate(at);
                put_message(out, 2, |out| {
                    put_text(out, 1, &reference);
                    Ok(())
                })?;
            }
            Ok(())
        })
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        if let Kind::Scalar = self.one() {
            self.within(|_| {});
        }
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        match self.one() {
            Kind::Flag => put_integer(self.out, self.number, value.into()),
            Kind::OrFlag(_) | Kind::Scalar => self.within(|out| put_integer(out, 2, value.into())),
            _ => {}
        }
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.integer(value);
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        // No field has a larger range.
        self.integer(i64::try_from(value).unwrap_or(i64::MAX));
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        match self.one() {
            Kind::Number => put_double(self.out, self.number, value),
            Kind::Scalar => self.within(|out| put_double(out, 1, value)),
            Kind::Integer if value.fract() == 0.0 => put_integer(self.out, self.number, value as i64),
            _ => {}
        }
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        match self.one() {
            Kind::Text => put_text(self.out, self.number, value),
            Kind::Scalar => self.within(|out| put_text(out, 3, value)),
            _ => {}
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        match self.kind {
            Kind::Each(kind) => {
                while let Some(()) =
                    list.next_element_seed(Value { out: self.out, number: self.number, kind: *kind })?
                {
                }
            }
            kind => {
                if let Kind::Scalar = kind {
                    self.within(|_| {});
                }
                while let Some(IgnoredAny) = list.next_element()? {}
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<(), A::Error> {
        let of = match self.one() {
            Kind::Message(message) => Members::Message(message),
            Kind::Map(map) => Members::Map(map),
            Kind::OrFlag(kind) => {
                return put_message(self.out, self.number, |out| {
                    Value { out, number: 1, kind: *kind }.visit_map(members)
                });
            }
            Kind::OrReference(message) => return self.or_reference(message, members),
            Kind::Scalar => {
                self.within(|_| {});
                return IgnoredAny.visit_map(members).map(|_| ());
            }
            _ => return IgnoredAny.visit_map(members).map(|_| ()),
        };
        put_message(self.out, self.number, |out| Fields { out, of }.visit_map(members))
    }
}

/// Converts JSON text to YAML with the same meaning: the few characters that YAML does not allow in quotes, or reads as line
/// breaks, are escaped. They occur in strings only.
fn yaml(json: &str) -> Cow<'_, str> {
    let unfit = |c: char| {
        matches!(c, '\x7f'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
    };
    if !json.contains(unfit) {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if unfit(c) {
            text.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            text.push(c);
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests;
