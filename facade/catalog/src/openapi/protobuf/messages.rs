//! Types of the message tables, and the messages that versions 2 and 3 share.

use serde::Deserialize;
use serde_json::value::RawValue;

/// Type of a field.
#[derive(Clone, Copy)]
pub(super) enum FieldKind {
    Text,
    Flag,
    Integer,
    Number,
    /// Any JSON, as YAML text in field 2 of a message.
    Any,
    /// A message with a number in field 1, a bool in field 2 or text in field 3; empty for other values.
    Scalar,
    /// A repeated field; a single value counts as a list of one.
    Repeated(&'static FieldKind),
    Message(&'static Message),
    /// A message that contains only this, in field 1.
    Wrapped(&'static FieldKind),
    /// An object whose members become entries: the name in field 1, the value in field 2.
    Map(&'static Map),
    /// A message with one of several fields, selected by members of the JSON object; omitted if none matches.
    Choice(fn(&Discriminators<'_>) -> Option<(u32, FieldKind)>),
    /// This type in field 1, or a bool in field 2.
    OrFlag(&'static FieldKind),
    /// A message in field 1, or a reference in field 2 if there is a `$ref`, whose other members are ignored.
    OrReference(&'static Message),
}

/// A field: JSON name, number, type.
pub(super) type Field = (&'static str, u32, FieldKind);

/// An object with a fixed set of fields.
pub(super) struct Message {
    pub fields: &'static [Field],
    /// Fields shared by several messages, and the offset that is added to their numbers.
    pub shared: Option<(&'static [Field], u32)>,
    /// Field of members whose names start with `x-`; 0 if there is none.
    pub extensions: u32,
}

/// An object with arbitrary members.
pub(super) struct Map {
    /// Field of the entries.
    pub entries: u32,
    pub value: FieldKind,
    /// Field of members whose names start with `x-`; 0 if they are entries.
    pub extensions: u32,
    /// Field of the member `default`; 0 if it is an entry.
    pub default: u32,
}

impl Map {
    /// A map whose members are all entries, in field 1.
    pub(super) const fn new(value: FieldKind) -> Self {
        Self { entries: 1, value, extensions: 0, default: 0 }
    }
}

/// JSON text of the members that distinguish alternatives.
#[derive(Deserialize)]
pub(super) struct Discriminators<'a> {
    #[serde(rename = "$ref", borrow)]
    pub reference: Option<&'a RawValue>,
    #[serde(rename = "in", borrow)]
    pub location: Option<&'a RawValue>,
    #[serde(rename = "type", borrow)]
    pub kind: Option<&'a RawValue>,
    #[serde(borrow)]
    pub flow: Option<&'a RawValue>,
}

/// Returns the text of a JSON string.
pub(super) fn text(member: Option<&RawValue>) -> &str {
    member.map_or("", |m| m.get().trim_matches('"'))
}

pub(super) const TEXTS: FieldKind = FieldKind::Repeated(&FieldKind::Text);
pub(super) const ANYS: FieldKind = FieldKind::Repeated(&FieldKind::Any);
pub(super) const STRING_ARRAY: FieldKind = FieldKind::Wrapped(&TEXTS);
pub(super) const REQUIREMENTS: FieldKind = FieldKind::Repeated(&FieldKind::Map(&Map::new(STRING_ARRAY)));
/// A map of strings.
pub(super) const STRINGS: FieldKind = FieldKind::Map(&Map::new(FieldKind::Text));

pub(super) const EXTERNAL_DOCS: FieldKind = FieldKind::Message(&Message {
    fields: &[("description", 1, FieldKind::Text), ("url", 2, FieldKind::Text)],
    shared: None,
    extensions: 3,
});

pub(super) const CONTACT: FieldKind = FieldKind::Message(&Message {
    fields: &[("name", 1, FieldKind::Text), ("url", 2, FieldKind::Text), ("email", 3, FieldKind::Text)],
    shared: None,
    extensions: 4,
});

pub(super) const LICENSE: FieldKind = FieldKind::Message(&Message {
    fields: &[("name", 1, FieldKind::Text), ("url", 2, FieldKind::Text)],
    shared: None,
    extensions: 3,
});

pub(super) static TAG: Message = Message {
    fields: &[
        ("name", 1, FieldKind::Text),
        ("description", 2, FieldKind::Text),
        ("externalDocs", 3, EXTERNAL_DOCS),
    ],
    shared: None,
    extensions: 4,
};

pub(super) static XML: Message = Message {
    fields: &[
        ("name", 1, FieldKind::Text),
        ("namespace", 2, FieldKind::Text),
        ("prefix", 3, FieldKind::Text),
        ("attribute", 4, FieldKind::Flag),
        ("wrapped", 5, FieldKind::Flag),
    ],
    shared: None,
    extensions: 6,
};
