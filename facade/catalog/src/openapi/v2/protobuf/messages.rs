//! The messages of `openapi.v2.Document` as data: which JSON field has which number and type.
//!
//! Facts of the schema `OpenAPIv2.proto` that upstream's clients are built with. No behaviour but the choice between
//! the alternatives of its oneofs.

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
    /// A repeated field; one value alone stands for a list of one.
    Each(&'static Kind),
    Message(&'static Message),
    /// A message that has nothing but this, in field 1.
    Wrapped(&'static Kind),
    /// An object whose members become entries: a name in field 1, a value in field 2.
    Map(&'static Map),
    /// A message with one of several fields, by what the JSON looks like; nothing fits: left out.
    Choice(fn(&Look<'_>) -> Option<(u32, Kind)>),
    /// `additionalProperties`: a schema in field 1 or a bool in field 2.
    SchemaOrFlag,
}

/// A field: its name in JSON, its number, what it holds.
pub(super) type Field = (&'static str, u32, Kind);

/// An object with fields of its own.
pub(super) struct Message {
    pub fields: &'static [Field],
    /// Whether it also has [`PRIMITIVE`]'s fields, and what is added to their numbers.
    pub primitive: Option<u32>,
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
}

/// What alternatives are told apart by: JSON text of some members.
#[derive(Deserialize)]
pub(super) struct Look<'a> {
    #[serde(rename = "$ref", borrow)]
    reference: Option<&'a RawValue>,
    #[serde(rename = "in", borrow)]
    place: Option<&'a RawValue>,
    #[serde(rename = "type", borrow)]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    flow: Option<&'a RawValue>,
}

const TEXTS: Kind = Kind::Each(&Kind::Text);
const ANYS: Kind = Kind::Each(&Kind::Any);
const PARAMETERS: Kind = Kind::Each(&Kind::Choice(parameter_or_reference));
const REQUIREMENTS: Kind = Kind::Each(&Kind::Map(&Map { entries: 1, value: STRING_ARRAY, extensions: 0 }));
const STRING_ARRAY: Kind = Kind::Wrapped(&TEXTS);
static SCHEMAS: Map = Map { entries: 1, value: Kind::Message(&SCHEMA), extensions: 0 };
const EXTERNAL_DOCS: Kind = Kind::Message(&Message {
    fields: &[("description", 1, Kind::Text), ("url", 2, Kind::Text)],
    primitive: None,
    extensions: 3,
});

/// The whole document.
pub(super) static DOCUMENT: Message = Message {
    fields: &[
        ("swagger", 1, Kind::Text),
        ("info", 2, Kind::Message(&INFO)),
        ("host", 3, Kind::Text),
        ("basePath", 4, Kind::Text),
        ("schemes", 5, TEXTS),
        ("consumes", 6, TEXTS),
        ("produces", 7, TEXTS),
        ("paths", 8, Kind::Map(&Map { entries: 2, value: Kind::Message(&PATH_ITEM), extensions: 1 })),
        ("definitions", 9, Kind::Map(&SCHEMAS)),
        ("parameters", 10, Kind::Map(&Map { entries: 1, value: Kind::Choice(parameter), extensions: 0 })),
        ("responses", 11, Kind::Map(&Map { entries: 1, value: Kind::Message(&RESPONSE), extensions: 0 })),
        ("security", 12, REQUIREMENTS),
        (
            "securityDefinitions",
            13,
            Kind::Map(&Map { entries: 1, value: Kind::Choice(security), extensions: 0 }),
        ),
        ("tags", 14, Kind::Each(&Kind::Message(&TAG))),
        ("externalDocs", 15, EXTERNAL_DOCS),
    ],
    primitive: None,
    extensions: 16,
};

static INFO: Message = Message {
    fields: &[
        ("title", 1, Kind::Text),
        ("version", 2, Kind::Text),
        ("description", 3, Kind::Text),
        ("termsOfService", 4, Kind::Text),
        (
            "contact",
            5,
            Kind::Message(&Message {
                fields: &[("name", 1, Kind::Text), ("url", 2, Kind::Text), ("email", 3, Kind::Text)],
                primitive: None,
                extensions: 4,
            }),
        ),
        (
            "license",
            6,
            Kind::Message(&Message {
                fields: &[("name", 1, Kind::Text), ("url", 2, Kind::Text)],
                primitive: None,
                extensions: 3,
            }),
        ),
    ],
    primitive: None,
    extensions: 7,
};

static TAG: Message = Message {
    fields: &[("name", 1, Kind::Text), ("description", 2, Kind::Text), ("externalDocs", 3, EXTERNAL_DOCS)],
    primitive: None,
    extensions: 4,
};

static PATH_ITEM: Message = Message {
    fields: &[
        ("$ref", 1, Kind::Text),
        ("get", 2, Kind::Message(&OPERATION)),
        ("put", 3, Kind::Message(&OPERATION)),
        ("post", 4, Kind::Message(&OPERATION)),
        ("delete", 5, Kind::Message(&OPERATION)),
        ("options", 6, Kind::Message(&OPERATION)),
        ("head", 7, Kind::Message(&OPERATION)),
        ("patch", 8, Kind::Message(&OPERATION)),
        ("parameters", 9, PARAMETERS),
    ],
    primitive: None,
    extensions: 10,
};

static OPERATION: Message = Message {
    fields: &[
        ("tags", 1, TEXTS),
        ("summary", 2, Kind::Text),
        ("description", 3, Kind::Text),
        ("externalDocs", 4, EXTERNAL_DOCS),
        ("operationId", 5, Kind::Text),
        ("produces", 6, TEXTS),
        ("consumes", 7, TEXTS),
        ("parameters", 8, PARAMETERS),
        (
            "responses",
            9,
            Kind::Map(&Map { entries: 1, value: Kind::Choice(response_or_reference), extensions: 2 }),
        ),
        ("schemes", 10, TEXTS),
        ("deprecated", 11, Kind::Flag),
        ("security", 12, REQUIREMENTS),
    ],
    primitive: None,
    extensions: 13,
};

static RESPONSE: Message = Message {
    fields: &[
        ("description", 1, Kind::Text),
        ("schema", 2, Kind::Choice(schema_or_file)),
        ("headers", 3, Kind::Map(&Map { entries: 1, value: Kind::Message(&HEADER), extensions: 0 })),
        ("examples", 4, Kind::Map(&Map { entries: 1, value: Kind::Any, extensions: 0 })),
    ],
    primitive: None,
    extensions: 5,
};

static REFERENCE: Message = Message {
    fields: &[("$ref", 1, Kind::Text), ("description", 2, Kind::Text)],
    primitive: None,
    extensions: 0,
};

/// A type.
pub(super) static SCHEMA: Message = Message {
    fields: &[
        ("$ref", 1, Kind::Text),
        ("format", 2, Kind::Text),
        ("title", 3, Kind::Text),
        ("description", 4, Kind::Text),
        ("default", 5, Kind::Any),
        ("multipleOf", 6, Kind::Number),
        ("maximum", 7, Kind::Number),
        ("exclusiveMaximum", 8, Kind::Flag),
        ("minimum", 9, Kind::Number),
        ("exclusiveMinimum", 10, Kind::Flag),
        ("maxLength", 11, Kind::Integer),
        ("minLength", 12, Kind::Integer),
        ("pattern", 13, Kind::Text),
        ("maxItems", 14, Kind::Integer),
        ("minItems", 15, Kind::Integer),
        ("uniqueItems", 16, Kind::Flag),
        ("maxProperties", 17, Kind::Integer),
        ("minProperties", 18, Kind::Integer),
        ("required", 19, TEXTS),
        ("enum", 20, ANYS),
        ("additionalProperties", 21, Kind::SchemaOrFlag),
        ("type", 22, STRING_ARRAY),
        ("items", 23, Kind::Wrapped(&Kind::Each(&Kind::Message(&SCHEMA)))),
        ("allOf", 24, Kind::Each(&Kind::Message(&SCHEMA))),
        ("properties", 25, Kind::Map(&SCHEMAS)),
        ("discriminator", 26, Kind::Text),
        ("readOnly", 27, Kind::Flag),
        ("xml", 28, Kind::Message(&XML)),
        ("externalDocs", 29, EXTERNAL_DOCS),
        ("example", 30, Kind::Any),
    ],
    primitive: None,
    extensions: 31,
};

static XML: Message = Message {
    fields: &[
        ("name", 1, Kind::Text),
        ("namespace", 2, Kind::Text),
        ("prefix", 3, Kind::Text),
        ("attribute", 4, Kind::Flag),
        ("wrapped", 5, Kind::Flag),
    ],
    primitive: None,
    extensions: 6,
};

static FILE_SCHEMA: Message = Message {
    fields: &[
        ("format", 1, Kind::Text),
        ("title", 2, Kind::Text),
        ("description", 3, Kind::Text),
        ("default", 4, Kind::Any),
        ("required", 5, TEXTS),
        ("type", 6, Kind::Text),
        ("readOnly", 7, Kind::Flag),
        ("externalDocs", 8, EXTERNAL_DOCS),
        ("example", 9, Kind::Any),
    ],
    primitive: None,
    extensions: 10,
};

/// Fields of everything that describes a value without a schema, numbered as in `PrimitivesItems`.
pub(super) static PRIMITIVE: &[Field] = &[
    ("type", 1, Kind::Text),
    ("format", 2, Kind::Text),
    ("items", 3, Kind::Message(&PRIMITIVE_ITEMS)),
    ("collectionFormat", 4, Kind::Text),
    ("default", 5, Kind::Any),
    ("maximum", 6, Kind::Number),
    ("exclusiveMaximum", 7, Kind::Flag),
    ("minimum", 8, Kind::Number),
    ("exclusiveMinimum", 9, Kind::Flag),
    ("maxLength", 10, Kind::Integer),
    ("minLength", 11, Kind::Integer),
    ("pattern", 12, Kind::Text),
    ("maxItems", 13, Kind::Integer),
    ("minItems", 14, Kind::Integer),
    ("uniqueItems", 15, Kind::Flag),
    ("enum", 16, ANYS),
    ("multipleOf", 17, Kind::Number),
];

static PRIMITIVE_ITEMS: Message = Message { fields: &[], primitive: Some(0), extensions: 18 };

static HEADER: Message =
    Message { fields: &[("description", 18, Kind::Text)], primitive: Some(0), extensions: 19 };

static BODY_PARAMETER: Message = Message {
    fields: &[
        ("description", 1, Kind::Text),
        ("name", 2, Kind::Text),
        ("in", 3, Kind::Text),
        ("required", 4, Kind::Flag),
        ("schema", 5, Kind::Message(&SCHEMA)),
    ],
    primitive: None,
    extensions: 6,
};

/// Parameters in a header or in the path.
static PLAIN_PARAMETER: Message = Message {
    fields: &[
        ("required", 1, Kind::Flag),
        ("in", 2, Kind::Text),
        ("description", 3, Kind::Text),
        ("name", 4, Kind::Text),
    ],
    primitive: Some(4),
    extensions: 22,
};

/// Parameters in the query or in a form.
static FORM_PARAMETER: Message = Message {
    fields: &[
        ("required", 1, Kind::Flag),
        ("in", 2, Kind::Text),
        ("description", 3, Kind::Text),
        ("name", 4, Kind::Text),
        ("allowEmptyValue", 5, Kind::Flag),
    ],
    primitive: Some(5),
    extensions: 23,
};

static BASIC: Message = Message {
    fields: &[("type", 1, Kind::Text), ("description", 2, Kind::Text)],
    primitive: None,
    extensions: 3,
};

static API_KEY: Message = Message {
    fields: &[
        ("type", 1, Kind::Text),
        ("name", 2, Kind::Text),
        ("in", 3, Kind::Text),
        ("description", 4, Kind::Text),
    ],
    primitive: None,
    extensions: 5,
};

const SCOPES: Kind = Kind::Map(&Map { entries: 1, value: Kind::Text, extensions: 0 });

static OAUTH2_IMPLICIT: Message = Message {
    fields: &[
        ("type", 1, Kind::Text),
        ("flow", 2, Kind::Text),
        ("scopes", 3, SCOPES),
        ("authorizationUrl", 4, Kind::Text),
        ("description", 5, Kind::Text),
    ],
    primitive: None,
    extensions: 6,
};

/// The flows `password` and `application`.
static OAUTH2_TOKEN: Message = Message {
    fields: &[
        ("type", 1, Kind::Text),
        ("flow", 2, Kind::Text),
        ("scopes", 3, SCOPES),
        ("tokenUrl", 4, Kind::Text),
        ("description", 5, Kind::Text),
    ],
    primitive: None,
    extensions: 6,
};

static OAUTH2_ACCESS_CODE: Message = Message {
    fields: &[
        ("type", 1, Kind::Text),
        ("flow", 2, Kind::Text),
        ("scopes", 3, SCOPES),
        ("authorizationUrl", 4, Kind::Text),
        ("tokenUrl", 5, Kind::Text),
        ("description", 6, Kind::Text),
    ],
    primitive: None,
    extensions: 7,
};

fn text(member: Option<&RawValue>) -> &str {
    member.map_or("", |m| m.get().trim_matches('"'))
}

/// ParametersItem.
fn parameter_or_reference(look: &Look<'_>) -> Option<(u32, Kind)> {
    if look.reference.is_some() {
        return Some((2, Kind::Message(&REFERENCE)));
    }
    parameter(look).map(|_| (1, Kind::Choice(parameter)))
}

/// Parameter.
fn parameter(look: &Look<'_>) -> Option<(u32, Kind)> {
    match text(look.place) {
        "body" => Some((1, Kind::Message(&BODY_PARAMETER))),
        "header" | "formData" | "query" | "path" => Some((2, Kind::Choice(non_body_parameter))),
        _ => None,
    }
}

/// NonBodyParameter.
fn non_body_parameter(look: &Look<'_>) -> Option<(u32, Kind)> {
    match text(look.place) {
        "header" => Some((1, Kind::Message(&PLAIN_PARAMETER))),
        "formData" => Some((2, Kind::Message(&FORM_PARAMETER))),
        "query" => Some((3, Kind::Message(&FORM_PARAMETER))),
        "path" => Some((4, Kind::Message(&PLAIN_PARAMETER))),
        _ => None,
    }
}

/// ResponseValue.
fn response_or_reference(look: &Look<'_>) -> Option<(u32, Kind)> {
    Some(if look.reference.is_some() {
        (2, Kind::Message(&REFERENCE))
    } else {
        (1, Kind::Message(&RESPONSE))
    })
}

/// SchemaItem.
fn schema_or_file(look: &Look<'_>) -> Option<(u32, Kind)> {
    Some(if text(look.kind) == "file" {
        (2, Kind::Message(&FILE_SCHEMA))
    } else {
        (1, Kind::Message(&SCHEMA))
    })
}

/// SecurityDefinitionsItem.
fn security(look: &Look<'_>) -> Option<(u32, Kind)> {
    match (text(look.kind), text(look.flow)) {
        ("basic", _) => Some((1, Kind::Message(&BASIC))),
        ("apiKey", _) => Some((2, Kind::Message(&API_KEY))),
        ("oauth2", "implicit") => Some((3, Kind::Message(&OAUTH2_IMPLICIT))),
        ("oauth2", "password") => Some((4, Kind::Message(&OAUTH2_TOKEN))),
        ("oauth2", "application") => Some((5, Kind::Message(&OAUTH2_TOKEN))),
        ("oauth2", "accessCode") => Some((6, Kind::Message(&OAUTH2_ACCESS_CODE))),
        _ => None,
    }
}
