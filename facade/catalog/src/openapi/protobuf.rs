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

use messages::{Discriminators, Field, FieldKind, Map, Message};
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
    deserializer.deserialize_map(FieldsEncoder { out: &mut out, table: MemberTable::Message(document) })?;
    deserializer.end()?;
    Ok(out)
}

/// Writes one JSON value as a field.
struct ValueEncoder<'a> {
    out: &'a mut Vec<u8>,
    number: u32,
    kind: FieldKind,
}

/// Writes the members of one JSON object.
struct FieldsEncoder<'a> {
    out: &'a mut Vec<u8>,
    table: MemberTable,
}

#[derive(Clone, Copy)]
enum MemberTable {
    Message(&'static Message),
    Map(&'static Map),
}

impl MemberTable {
    /// Returns the field of a member, and true if the member becomes an entry with its name.
    fn field(self, name: &str) -> Option<(u32, FieldKind, bool)> {
        let (Self::Message(Message { extensions, .. }) | Self::Map(Map { extensions, .. })) = self;
        if *extensions != 0 && name.starts_with("x-") {
            return Some((*extensions, FieldKind::Any, true));
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

impl<'de> Visitor<'de> for FieldsEncoder<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<(), A::Error> {
        self.write(members, None)
    }
}

impl FieldsEncoder<'_> {
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
            match self.table.field(&name) {
                None => {
                    members.next_value::<IgnoredAny>()?;
                }
                Some((number, kind, false)) => {
                    members.next_value_seed(ValueEncoder { out: self.out, number, kind })?;
                }
                Some((number, kind, true)) => put_message(self.out, number, |out| {
                    put_text(out, 1, &name);
                    members.next_value_seed(ValueEncoder { out, number: 2, kind })
                })?,
            }
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for ValueEncoder<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        let Self { out, number, kind } = self;
        match kind {
            FieldKind::Any => {
                let text = <&RawValue>::deserialize(json)?;
                put_message(out, number, |out| {
                    put_text(out, 2, &yaml(text.get()));
                    Ok(())
                })
            }
            FieldKind::Wrapped(inner) => put_message(out, number, |out| {
                ValueEncoder { out, number: 1, kind: *inner }.deserialize(json)
            }),
            FieldKind::Choice(choose) => {
                let text = <&RawValue>::deserialize(json)?.get();
                let discriminators = serde_json::from_str::<Discriminators<'_>>(text);
                let Some((number_inside, kind)) = discriminators.ok().and_then(|l| choose(&l)) else {
                    return Ok(());
                };
                put_message(out, number, |out| {
                    let mut deserializer = serde_json::Deserializer::from_str(text);
                    ValueEncoder { out, number: number_inside, kind }.deserialize(&mut deserializer)
                })
                .map_err(D::Error::custom)
            }
            _ => json.deserialize_any(Self { out, number, kind }),
        }
    }
}

impl ValueEncoder<'_> {
    /// Kind of a single value of a repeated field.
    fn element_kind(&self) -> FieldKind {
        match self.kind {
            FieldKind::Repeated(element) => *element,
            kind => kind,
        }
    }

    fn integer(self, value: i64) {
        match self.element_kind() {
            FieldKind::Integer => put_integer(self.out, self.number, value),
            FieldKind::Number => put_double(self.out, self.number, value as f64),
            FieldKind::Scalar => self.put_within(|out| put_double(out, 1, value as f64)),
            _ => {}
        }
    }

    /// Writes a message whose content `body` writes.
    fn put_within(self, body: impl FnOnce(&mut Vec<u8>)) {
        let result: Result<(), Infallible> = put_message(self.out, self.number, |out| {
            body(out);
            Ok(())
        });
        result.unwrap_or_else(|never| match never {})
    }

    /// Writes the members of an object that is a message or a reference to one.
    fn put_message_or_reference<'de, A>(self, message: &'static Message, members: A) -> Result<(), A::Error>
    where
        A: MapAccess<'de>,
    {
        put_message(self.out, self.number, |out| {
            let (at, mut reference) = (out.len(), None);
            let table = MemberTable::Message(message);
            put_message(out, 1, |out| FieldsEncoder { out, table }.write(members, Some(&mut reference)))?;
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

impl<'de> Visitor<'de> for ValueEncoder<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        if let FieldKind::Scalar = self.element_kind() {
            self.put_within(|_| {});
        }
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        match self.element_kind() {
            FieldKind::Flag => put_integer(self.out, self.number, value.into()),
            FieldKind::OrFlag(_) | FieldKind::Scalar => {
                self.put_within(|out| put_integer(out, 2, value.into()))
            }
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
        match self.element_kind() {
            FieldKind::Number => put_double(self.out, self.number, value),
            FieldKind::Scalar => self.put_within(|out| put_double(out, 1, value)),
            FieldKind::Integer if value.fract() == 0.0 => put_integer(self.out, self.number, value as i64),
            _ => {}
        }
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        match self.element_kind() {
            FieldKind::Text => put_text(self.out, self.number, value),
            FieldKind::Scalar => self.put_within(|out| put_text(out, 3, value)),
            _ => {}
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        match self.kind {
            FieldKind::Repeated(kind) => {
                while let Some(()) =
                    list.next_element_seed(ValueEncoder { out: self.out, number: self.number, kind: *kind })?
                {
                }
            }
            kind => {
                if let FieldKind::Scalar = kind {
                    self.put_within(|_| {});
                }
                while let Some(IgnoredAny) = list.next_element()? {}
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<(), A::Error> {
        let table = match self.element_kind() {
            FieldKind::Message(message) => MemberTable::Message(message),
            FieldKind::Map(map) => MemberTable::Map(map),
            FieldKind::OrFlag(kind) => {
                return put_message(self.out, self.number, |out| {
                    ValueEncoder { out, number: 1, kind: *kind }.visit_map(members)
                });
            }
            FieldKind::OrReference(message) => return self.put_message_or_reference(message, members),
            FieldKind::Scalar => {
                self.put_within(|_| {});
                return IgnoredAny.visit_map(members).map(|_| ());
            }
            _ => return IgnoredAny.visit_map(members).map(|_| ()),
        };
        put_message(self.out, self.number, |out| FieldsEncoder { out, table }.visit_map(members))
    }
}

/// Converts JSON text to YAML with the same meaning: the few characters that YAML does not allow in quotes, or reads as line
/// breaks, are escaped. They occur in strings only.
fn yaml(json: &str) -> Cow<'_, str> {
    let needs_escape = |c: char| {
        matches!(c, '\x7f'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
    };
    if !json.contains(needs_escape) {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if needs_escape(c) {
            text.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            text.push(c);
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests;
