//! Types of the message tables, and the messages that versions 2 and 3 share.

use serde::Deserialize;
use serde_json::value::RawValue;

/// Type of a field.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Text,
    Flag,
    Integer,
    Number,
    /// Any JSON, as YAML text in field 2 of a message.
    Any,
    /// A message with a number in field 1, a bool in field 2 or text in field 3; empty for other values.
    Scalar,
    /// A repeated field; a single value counts as a list of one.
    Each(&'static Kind),
    Message(&'static Message),
    /// A message that contains only this, in field 1.
    Wrapped(&'static Kind),
    /// An object whose members become entries: the name in field 1, the value in field 2.
    Map(&'static Map),
    /// A message with one of several fields, selected by members of the JSON object; omitted if none matches.
    Choice(fn(&Look<'_>) -> Option<(u32, Kind)>),
    /// This type in field 1, or a bool in field 2.
    OrFlag(&'static Kind),
    /// A message in field 1, or a reference in field 2 if there is a `$ref`, whose other members are ignored.
    OrReference(&'static Message),
}

/// A field: JSON name, number, type.
pub(super) type Field = (&'static str, u32, Kind);

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
    pub value: Kind,
    /// Field of members whose names start with `x-`; 0 if they are entries.
    pub extensions: u32,
    /// Field of the member `default`; 0 if it is an entry.
    pub default: u32,
}

impl Map {
    /// A map whose members are all entries, in field 1.
    pub(super) const fn of(value: Kind) -> Self {
        Self { entries: 1, value, extensions: 0, default: 0 }
    }
}

/// JSON text of the members that distinguish alternatives.
#[derive(Deserialize)]
pub(super) struct Look<'a> {
    #[serde(rename = "$ref", borrow)]
    pub reference: Option<&'a RawValue>,
    #[serde(rename = "in", borrow)]
    pub place: Option<&'a RawValue>,
    #[serde(rename = "type", borrow)]
    pub kind: Option<&'a RawValue>,
    #[serde(borrow)]
    pub flow: Option<&'a RawValue>,
}

/// Returns the text of a JSON string.
pub(super) fn text(member: Option<&RawValue>) -> &str {
    member.map_or("", |m| m.get().trim_matches('"'))
}

pub(super) const TEXTS: Kind = Kind::Each(&Kind::Text);
pub(super) const ANYS: Kind = Kind::Each(&Kind::Any);
pub(super) const STRING_ARRAY: Kind = Kind::Wrapped(&TEXTS);
pub(super) const REQUIREMENTS: Kind = Kind::Each(&Kind::Map(&Map::of(STRING_ARRAY)));
/// A map of strings.
pub(super) const STRINGS: Kind = Kind::Map(&Map::of(Kind::Text));

pub(super) const EXTERNAL_DOCS: Kind = Kind::Message(&Message {
    fields: &[("description", 1, Kind::Text), ("url", 2, Kind::Text)],
    shared: None,
    extensions: 3,
});

pub(super) const CONTACT: Kind = Kind::Message(&Message {
    fields: &[("name", 1, Kind::Text), ("url", 2, Kind::Text), ("email", 3, Kind::Text)],
    shared: None,
    extensions: 4,
});

pub(super) const LICENSE: Kind = Kind::Message(&Message {
    fields: &[("name", 1, Kind::Text), ("url", 2, Kind::Text)],
    shared: None,
    extensions: 3,
});

pub(super) static TAG: Message = Message {
    fields: &[("name", 1, Kind::Text), ("description", 2, Kind::Text), ("externalDocs", 3, EXTERNAL_DOCS)],
    shared: None,
    extensions: 4,
};

pub(super) static XML: Message = Message {
    fields: &[
        ("name", 1, Kind::Text),
        ("namespace", 2, Kind::Text),
        ("prefix", 3, Kind::Text),
        ("attribute", 4, Kind::Flag),
        ("wrapped", 5, Kind::Flag),
    ],
    shared: None,
    extensions: 6,
};
