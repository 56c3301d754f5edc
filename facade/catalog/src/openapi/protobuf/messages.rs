//! What tables of messages are written in, and the messages that versions 2 and 3 have in common.

use serde::Deserialize;
use serde_json::value::RawValue;

/// What a field holds.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Text,
    Flag,
    Integer,
    Number,
    /// Any JSON, as YAML text in field 2 of a message.
    Any,
    /// A message with a number in field 1, a bool in field 2 or text in field 3; with nothing for anything else.
    Scalar,
    /// A repeated field; one value alone stands for a list of one.
    Each(&'static Kind),
    Message(&'static Message),
    /// A message that has nothing but this, in field 1.
    Wrapped(&'static Kind),
    /// An object whose members become entries: a name in field 1, a value in field 2.
    Map(&'static Map),
    /// A message with one of several fields, by what the JSON looks like; nothing fits: left out.
    Choice(fn(&Look<'_>) -> Option<(u32, Kind)>),
    /// This in field 1, or a bool in field 2.
    OrFlag(&'static Kind),
    /// A message in field 1 or, when there is a `$ref`, which nothing beside it adds to, a reference in field 2.
    OrReference(&'static Message),
}

/// A field: its name in JSON, its number, what it holds.
pub(super) type Field = (&'static str, u32, Kind);

/// An object with fields of its own.
pub(super) struct Message {
    pub fields: &'static [Field],
    /// Fields that several messages have, and what is added to their numbers here.
    pub shared: Option<(&'static [Field], u32)>,
    /// The field of members whose names begin with `x-`; 0: it has none.
    pub extensions: u32,
}

/// An object with members of any name.
pub(super) struct Map {
    /// The field of its entries.
    pub entries: u32,
    pub value: Kind,
    /// The field of members whose names begin with `x-`; 0: they are entries.
    pub extensions: u32,
    /// The field of the member `default`, which is no entry then; 0: it is one.
    pub default: u32,
}

impl Map {
    /// Nothing but entries, in field 1.
    pub(super) const fn of(value: Kind) -> Self {
        Self { entries: 1, value, extensions: 0, default: 0 }
    }
}

/// What distinguishes alternatives: JSON text of some members.
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

/// The text of a JSON string.
pub(super) fn text(member: Option<&RawValue>) -> &str {
    member.map_or("", |m| m.get().trim_matches('"'))
}

pub(super) const TEXTS: Kind = Kind::Each(&Kind::Text);
pub(super) const ANYS: Kind = Kind::Each(&Kind::Any);
pub(super) const STRING_ARRAY: Kind = Kind::Wrapped(&TEXTS);
pub(super) const REQUIREMENTS: Kind = Kind::Each(&Kind::Map(&Map::of(STRING_ARRAY)));
/// Members of any name with text.
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
