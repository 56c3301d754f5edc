//! The messages of `openapi.v2.Document` as data: numbers and types of the JSON fields.
//!
//! The data comes from the schema `OpenAPIv2.proto` that upstream's clients use. The only logic is the selection of the
//! alternatives of its oneofs.

use super::messages::{
    ANYS, CONTACT, Discriminators, EXTERNAL_DOCS, Field, FieldKind, LICENSE, Map, Message, REQUIREMENTS,
    STRING_ARRAY, STRINGS, TAG, TEXTS, XML, text,
};

const PARAMETERS: FieldKind = FieldKind::Repeated(&FieldKind::Choice(parameter_or_reference));
static SCHEMAS: Map = Map::new(FieldKind::Message(&SCHEMA));
/// The root message.
pub(super) static DOCUMENT: Message = Message {
    fields: &[
        ("swagger", 1, FieldKind::Text),
        ("info", 2, FieldKind::Message(&INFO)),
        ("host", 3, FieldKind::Text),
        ("basePath", 4, FieldKind::Text),
        ("schemes", 5, TEXTS),
        ("consumes", 6, TEXTS),
        ("produces", 7, TEXTS),
        (
            "paths",
            8,
            FieldKind::Map(&Map {
                entries: 2,
                value: FieldKind::Message(&PATH_ITEM),
                extensions: 1,
                default: 0,
            }),
        ),
        ("definitions", 9, FieldKind::Map(&SCHEMAS)),
        ("parameters", 10, FieldKind::Map(&Map::new(FieldKind::Choice(parameter)))),
        ("responses", 11, FieldKind::Map(&Map::new(FieldKind::Message(&RESPONSE)))),
        ("security", 12, REQUIREMENTS),
        ("securityDefinitions", 13, FieldKind::Map(&Map::new(FieldKind::Choice(security)))),
        ("tags", 14, FieldKind::Repeated(&FieldKind::Message(&TAG))),
        ("externalDocs", 15, EXTERNAL_DOCS),
    ],
    shared: None,
    extensions: 16,
};

static INFO: Message = Message {
    fields: &[
        ("title", 1, FieldKind::Text),
        ("version", 2, FieldKind::Text),
        ("description", 3, FieldKind::Text),
        ("termsOfService", 4, FieldKind::Text),
        ("contact", 5, CONTACT),
        ("license", 6, LICENSE),
    ],
    shared: None,
    extensions: 7,
};

static PATH_ITEM: Message = Message {
    fields: &[
        ("$ref", 1, FieldKind::Text),
        ("get", 2, FieldKind::Message(&OPERATION)),
        ("put", 3, FieldKind::Message(&OPERATION)),
        ("post", 4, FieldKind::Message(&OPERATION)),
        ("delete", 5, FieldKind::Message(&OPERATION)),
        ("options", 6, FieldKind::Message(&OPERATION)),
        ("head", 7, FieldKind::Message(&OPERATION)),
        ("patch", 8, FieldKind::Message(&OPERATION)),
        ("parameters", 9, PARAMETERS),
    ],
    shared: None,
    extensions: 10,
};

static OPERATION: Message = Message {
    fields: &[
        ("tags", 1, TEXTS),
        ("summary", 2, FieldKind::Text),
        ("description", 3, FieldKind::Text),
        ("externalDocs", 4, EXTERNAL_DOCS),
        ("operationId", 5, FieldKind::Text),
        ("produces", 6, TEXTS),
        ("consumes", 7, TEXTS),
        ("parameters", 8, PARAMETERS),
        (
            "responses",
            9,
            FieldKind::Map(&Map {
                entries: 1,
                value: FieldKind::Choice(response_or_reference),
                extensions: 2,
                default: 0,
            }),
        ),
        ("schemes", 10, TEXTS),
        ("deprecated", 11, FieldKind::Flag),
        ("security", 12, REQUIREMENTS),
    ],
    shared: None,
    extensions: 13,
};

static RESPONSE: Message = Message {
    fields: &[
        ("description", 1, FieldKind::Text),
        ("schema", 2, FieldKind::Choice(schema_or_file)),
        ("headers", 3, FieldKind::Map(&Map::new(FieldKind::Message(&HEADER)))),
        ("examples", 4, FieldKind::Map(&Map::new(FieldKind::Any))),
    ],
    shared: None,
    extensions: 5,
};

static REFERENCE: Message = Message {
    fields: &[("$ref", 1, FieldKind::Text), ("description", 2, FieldKind::Text)],
    shared: None,
    extensions: 0,
};

/// Schema of a type.
static SCHEMA: Message = Message {
    fields: &[
        ("$ref", 1, FieldKind::Text),
        ("format", 2, FieldKind::Text),
        ("title", 3, FieldKind::Text),
        ("description", 4, FieldKind::Text),
        ("default", 5, FieldKind::Any),
        ("multipleOf", 6, FieldKind::Number),
        ("maximum", 7, FieldKind::Number),
        ("exclusiveMaximum", 8, FieldKind::Flag),
        ("minimum", 9, FieldKind::Number),
        ("exclusiveMinimum", 10, FieldKind::Flag),
        ("maxLength", 11, FieldKind::Integer),
        ("minLength", 12, FieldKind::Integer),
        ("pattern", 13, FieldKind::Text),
        ("maxItems", 14, FieldKind::Integer),
        ("minItems", 15, FieldKind::Integer),
        ("uniqueItems", 16, FieldKind::Flag),
        ("maxProperties", 17, FieldKind::Integer),
        ("minProperties", 18, FieldKind::Integer),
        ("required", 19, TEXTS),
        ("enum", 20, ANYS),
        ("additionalProperties", 21, FieldKind::OrFlag(&FieldKind::Message(&SCHEMA))),
        ("type", 22, STRING_ARRAY),
        ("items", 23, FieldKind::Wrapped(&FieldKind::Repeated(&FieldKind::Message(&SCHEMA)))),
        ("allOf", 24, FieldKind::Repeated(&FieldKind::Message(&SCHEMA))),
        ("properties", 25, FieldKind::Map(&SCHEMAS)),
        ("discriminator", 26, FieldKind::Text),
        ("readOnly", 27, FieldKind::Flag),
        ("xml", 28, FieldKind::Message(&XML)),
        ("externalDocs", 29, EXTERNAL_DOCS),
        ("example", 30, FieldKind::Any),
    ],
    shared: None,
    extensions: 31,
};

static FILE_SCHEMA: Message = Message {
    fields: &[
        ("format", 1, FieldKind::Text),
        ("title", 2, FieldKind::Text),
        ("description", 3, FieldKind::Text),
        ("default", 4, FieldKind::Any),
        ("required", 5, TEXTS),
        ("type", 6, FieldKind::Text),
        ("readOnly", 7, FieldKind::Flag),
        ("externalDocs", 8, EXTERNAL_DOCS),
        ("example", 9, FieldKind::Any),
    ],
    shared: None,
    extensions: 10,
};

/// Fields of values without a schema, numbered as in `PrimitivesItems`.
static PRIMITIVE: &[Field] = &[
    ("type", 1, FieldKind::Text),
    ("format", 2, FieldKind::Text),
    ("items", 3, FieldKind::Message(&PRIMITIVE_ITEMS)),
    ("collectionFormat", 4, FieldKind::Text),
    ("default", 5, FieldKind::Any),
    ("maximum", 6, FieldKind::Number),
    ("exclusiveMaximum", 7, FieldKind::Flag),
    ("minimum", 8, FieldKind::Number),
    ("exclusiveMinimum", 9, FieldKind::Flag),
    ("maxLength", 10, FieldKind::Integer),
    ("minLength", 11, FieldKind::Integer),
    ("pattern", 12, FieldKind::Text),
    ("maxItems", 13, FieldKind::Integer),
    ("minItems", 14, FieldKind::Integer),
    ("uniqueItems", 15, FieldKind::Flag),
    ("enum", 16, ANYS),
    ("multipleOf", 17, FieldKind::Number),
];

static PRIMITIVE_ITEMS: Message = Message { fields: &[], shared: Some((PRIMITIVE, 0)), extensions: 18 };

static HEADER: Message =
    Message { fields: &[("description", 18, FieldKind::Text)], shared: Some((PRIMITIVE, 0)), extensions: 19 };

static BODY_PARAMETER: Message = Message {
    fields: &[
        ("description", 1, FieldKind::Text),
        ("name", 2, FieldKind::Text),
        ("in", 3, FieldKind::Text),
        ("required", 4, FieldKind::Flag),
        ("schema", 5, FieldKind::Message(&SCHEMA)),
    ],
    shared: None,
    extensions: 6,
};

/// A parameter in a header or in the path.
static PLAIN_PARAMETER: Message = Message {
    fields: &[
        ("required", 1, FieldKind::Flag),
        ("in", 2, FieldKind::Text),
        ("description", 3, FieldKind::Text),
        ("name", 4, FieldKind::Text),
    ],
    shared: Some((PRIMITIVE, 4)),
    extensions: 22,
};

/// A parameter in the query or in a form.
static FORM_PARAMETER: Message = Message {
    fields: &[
        ("required", 1, FieldKind::Flag),
        ("in", 2, FieldKind::Text),
        ("description", 3, FieldKind::Text),
        ("name", 4, FieldKind::Text),
        ("allowEmptyValue", 5, FieldKind::Flag),
    ],
    shared: Some((PRIMITIVE, 5)),
    extensions: 23,
};

static BASIC: Message = Message {
    fields: &[("type", 1, FieldKind::Text), ("description", 2, FieldKind::Text)],
    shared: None,
    extensions: 3,
};

static API_KEY: Message = Message {
    fields: &[
        ("type", 1, FieldKind::Text),
        ("name", 2, FieldKind::Text),
        ("in", 3, FieldKind::Text),
        ("description", 4, FieldKind::Text),
    ],
    shared: None,
    extensions: 5,
};

static OAUTH2_IMPLICIT: Message = Message {
    fields: &[
        ("type", 1, FieldKind::Text),
        ("flow", 2, FieldKind::Text),
        ("scopes", 3, STRINGS),
        ("authorizationUrl", 4, FieldKind::Text),
        ("description", 5, FieldKind::Text),
    ],
    shared: None,
    extensions: 6,
};

/// The flows `password` and `application`.
static OAUTH2_TOKEN: Message = Message {
    fields: &[
        ("type", 1, FieldKind::Text),
        ("flow", 2, FieldKind::Text),
        ("scopes", 3, STRINGS),
        ("tokenUrl", 4, FieldKind::Text),
        ("description", 5, FieldKind::Text),
    ],
    shared: None,
    extensions: 6,
};

static OAUTH2_ACCESS_CODE: Message = Message {
    fields: &[
        ("type", 1, FieldKind::Text),
        ("flow", 2, FieldKind::Text),
        ("scopes", 3, STRINGS),
        ("authorizationUrl", 4, FieldKind::Text),
        ("tokenUrl", 5, FieldKind::Text),
        ("description", 6, FieldKind::Text),
    ],
    shared: None,
    extensions: 7,
};

/// Selects the alternative of `ParametersItem`.
fn parameter_or_reference(look: &Discriminators<'_>) -> Option<(u32, FieldKind)> {
    if look.reference.is_some() {
        return Some((2, FieldKind::Message(&REFERENCE)));
    }
    parameter(look).map(|_| (1, FieldKind::Choice(parameter)))
}

/// Selects the alternative of `Parameter`.
fn parameter(look: &Discriminators<'_>) -> Option<(u32, FieldKind)> {
    match text(look.location) {
        "body" => Some((1, FieldKind::Message(&BODY_PARAMETER))),
        "header" | "formData" | "query" | "path" => Some((2, FieldKind::Choice(non_body_parameter))),
        _ => None,
    }
}

/// Selects the alternative of `NonBodyParameter`.
fn non_body_parameter(look: &Discriminators<'_>) -> Option<(u32, FieldKind)> {
    match text(look.location) {
        "header" => Some((1, FieldKind::Message(&PLAIN_PARAMETER))),
        "formData" => Some((2, FieldKind::Message(&FORM_PARAMETER))),
        "query" => Some((3, FieldKind::Message(&FORM_PARAMETER))),
        "path" => Some((4, FieldKind::Message(&PLAIN_PARAMETER))),
        _ => None,
    }
}

/// Selects the alternative of `ResponseValue`.
fn response_or_reference(look: &Discriminators<'_>) -> Option<(u32, FieldKind)> {
    Some(if look.reference.is_some() {
        (2, FieldKind::Message(&REFERENCE))
    } else {
        (1, FieldKind::Message(&RESPONSE))
    })
}

/// Selects the alternative of `SchemaItem`.
fn schema_or_file(look: &Discriminators<'_>) -> Option<(u32, FieldKind)> {
    Some(if text(look.kind) == "file" {
        (2, FieldKind::Message(&FILE_SCHEMA))
    } else {
        (1, FieldKind::Message(&SCHEMA))
    })
}

/// Selects the alternative of `SecurityDefinitionsItem`.
fn security(look: &Discriminators<'_>) -> Option<(u32, FieldKind)> {
    match (text(look.kind), text(look.flow)) {
        ("basic", _) => Some((1, FieldKind::Message(&BASIC))),
        ("apiKey", _) => Some((2, FieldKind::Message(&API_KEY))),
        ("oauth2", "implicit") => Some((3, FieldKind::Message(&OAUTH2_IMPLICIT))),
        ("oauth2", "password") => Some((4, FieldKind::Message(&OAUTH2_TOKEN))),
        ("oauth2", "application") => Some((5, FieldKind::Message(&OAUTH2_TOKEN))),
        ("oauth2", "accessCode") => Some((6, FieldKind::Message(&OAUTH2_ACCESS_CODE))),
        _ => None,
    }
}
