//! The messages of `openapi.v2.Document` as data: numbers and types of the JSON fields.
//!
//! The data comes from the schema `OpenAPIv2.proto` that upstream's clients use. The only logic is the selection of the
//! alternatives of its oneofs.

use super::messages::{
    ANYS, CONTACT, EXTERNAL_DOCS, Field, Kind, LICENSE, Look, Map, Message, REQUIREMENTS, STRING_ARRAY,
    STRINGS, TAG, TEXTS, XML, text,
};

const PARAMETERS: Kind = Kind::Each(&Kind::Choice(parameter_or_reference));
static SCHEMAS: Map = Map::of(Kind::Message(&SCHEMA));
/// The root message.
pub(super) static DOCUMENT: Message = Message {
    fields: &[
        ("swagger", 1, Kind::Text),
        ("info", 2, Kind::Message(&INFO)),
        ("host", 3, Kind::Text),
        ("basePath", 4, Kind::Text),
        ("schemes", 5, TEXTS),
        ("consumes", 6, TEXTS),
        ("produces", 7, TEXTS),
        (
            "paths",
            8,
            Kind::Map(&Map { entries: 2, value: Kind::Message(&PATH_ITEM), extensions: 1, default: 0 }),
        ),
        ("definitions", 9, Kind::Map(&SCHEMAS)),
        ("parameters", 10, Kind::Map(&Map::of(Kind::Choice(parameter)))),
        ("responses", 11, Kind::Map(&Map::of(Kind::Message(&RESPONSE)))),
        ("security", 12, REQUIREMENTS),
        ("securityDefinitions", 13, Kind::Map(&Map::of(Kind::Choice(security)))),
        ("tags", 14, Kind::Each(&Kind::Message(&TAG))),
        ("externalDocs", 15, EXTERNAL_DOCS),
    ],
    shared: None,
    extensions: 16,
};

static INFO: Message = Message {
    fields: &[
        ("title", 1, Kind::Text),
        ("version", 2, Kind::Text),
        ("description", 3, Kind::Text),
        ("termsOfService", 4, Kind::Text),
        ("contact", 5, CONTACT),
        ("license", 6, LICENSE),
    ],
    shared: None,
    extensions: 7,
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
    shared: None,
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
            Kind::Map(&Map {
                entries: 1,
                value: Kind::Choice(response_or_reference),
                extensions: 2,
                default: 0,
            }),
        ),
        ("schemes", 10, TEXTS),
        ("deprecated", 11, Kind::Flag),
        ("security", 12, REQUIREMENTS),
    ],
    shared: None,
    extensions: 13,
};

static RESPONSE: Message = Message {
    fields: &[
        ("description", 1, Kind::Text),
        ("schema", 2, Kind::Choice(schema_or_file)),
        ("headers", 3, Kind::Map(&Map::of(Kind::Message(&HEADER)))),
        ("examples", 4, Kind::Map(&Map::of(Kind::Any))),
    ],
    shared: None,
    extensions: 5,
};

static REFERENCE: Message = Message {
    fields: &[("$ref", 1, Kind::Text), ("description", 2, Kind::Text)],
    shared: None,
    extensions: 0,
};

/// Schema of a type.
static SCHEMA: Message = Message {
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
        ("additionalProperties", 21, Kind::OrFlag(&Kind::Message(&SCHEMA))),
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
    shared: None,
    extensions: 31,
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
    shared: None,
    extensions: 10,
};

/// Fields of values without a schema, numbered as in `PrimitivesItems`.
static PRIMITIVE: &[Field] = &[
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

static PRIMITIVE_ITEMS: Message = Message { fields: &[], shared: Some((PRIMITIVE, 0)), extensions: 18 };

static HEADER: Message =
    Message { fields: &[("description", 18, Kind::Text)], shared: Some((PRIMITIVE, 0)), extensions: 19 };

static BODY_PARAMETER: Message = Message {
    fields: &[
        ("description", 1, Kind::Text),
        ("name", 2, Kind::Text),
        ("in", 3, Kind::Text),
        ("required", 4, Kind::Flag),
        ("schema", 5, Kind::Message(&SCHEMA)),
    ],
    shared: None,
    extensions: 6,
};

/// A parameter in a header or in the path.
static PLAIN_PARAMETER: Message = Message {
    fields: &[
        ("required", 1, Kind::Flag),
        ("in", 2, Kind::Text),
        ("description", 3, Kind::Text),
        ("name", 4, Kind::Text),
    ],
    shared: Some((PRIMITIVE, 4)),
    extensions: 22,
};

/// A parameter in the query or in a form.
static FORM_PARAMETER: Message = Message {
    fields: &[
        ("required", 1, Kind::Flag),
        ("in", 2, Kind::Text),
        ("description", 3, Kind::Text),
        ("name", 4, Kind::Text),
        ("allowEmptyValue", 5, Kind::Flag),
    ],
    shared: Some((PRIMITIVE, 5)),
    extensions: 23,
};

static BASIC: Message = Message {
    fields: &[("type", 1, Kind::Text), ("description", 2, Kind::Text)],
    shared: None,
    extensions: 3,
};

static API_KEY: Message = Message {
    fields: &[
        ("type", 1, Kind::Text),
        ("name", 2, Kind::Text),
        ("in", 3, Kind::Text),
        ("description", 4, Kind::Text),
    ],
    shared: None,
    extensions: 5,
};

static OAUTH2_IMPLICIT: Message = Message {
    fields: &[
        ("type", 1, Kind::Text),
        ("flow", 2, Kind::Text),
        ("scopes", 3, STRINGS),
        ("authorizationUrl", 4, Kind::Text),
        ("description", 5, Kind::Text),
    ],
    shared: None,
    extensions: 6,
};

/// The flows `password` and `application`.
static OAUTH2_TOKEN: Message = Message {
    fields: &[
        ("type", 1, Kind::Text),
        ("flow", 2, Kind::Text),
        ("scopes", 3, STRINGS),
        ("tokenUrl", 4, Kind::Text),
        ("description", 5, Kind::Text),
    ],
    shared: None,
    extensions: 6,
};

static OAUTH2_ACCESS_CODE: Message = Message {
    fields: &[
        ("type", 1, Kind::Text),
        ("flow", 2, Kind::Text),
        ("scopes", 3, STRINGS),
        ("authorizationUrl", 4, Kind::Text),
        ("tokenUrl", 5, Kind::Text),
        ("description", 6, Kind::Text),
    ],
    shared: None,
    extensions: 7,
};

/// Selects the alternative of `ParametersItem`.
fn parameter_or_reference(look: &Look<'_>) -> Option<(u32, Kind)> {
    if look.reference.is_some() {
        return Some((2, Kind::Message(&REFERENCE)));
    }
    parameter(look).map(|_| (1, Kind::Choice(parameter)))
}

/// Selects the alternative of `Parameter`.
fn parameter(look: &Look<'_>) -> Option<(u32, Kind)> {
    match text(look.place) {
        "body" => Some((1, Kind::Message(&BODY_PARAMETER))),
        "header" | "formData" | "query" | "path" => Some((2, Kind::Choice(non_body_parameter))),
        _ => None,
    }
}

/// Selects the alternative of `NonBodyParameter`.
fn non_body_parameter(look: &Look<'_>) -> Option<(u32, Kind)> {
    match text(look.place) {
        "header" => Some((1, Kind::Message(&PLAIN_PARAMETER))),
        "formData" => Some((2, Kind::Message(&FORM_PARAMETER))),
        "query" => Some((3, Kind::Message(&FORM_PARAMETER))),
        "path" => Some((4, Kind::Message(&PLAIN_PARAMETER))),
        _ => None,
    }
}

/// Selects the alternative of `ResponseValue`.
fn response_or_reference(look: &Look<'_>) -> Option<(u32, Kind)> {
    Some(if look.reference.is_some() {
        (2, Kind::Message(&REFERENCE))
    } else {
        (1, Kind::Message(&RESPONSE))
    })
}

/// Selects the alternative of `SchemaItem`.
fn schema_or_file(look: &Look<'_>) -> Option<(u32, Kind)> {
    Some(if text(look.kind) == "file" {
        (2, Kind::Message(&FILE_SCHEMA))
    } else {
        (1, Kind::Message(&SCHEMA))
    })
}

/// Selects the alternative of `SecurityDefinitionsItem`.
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
