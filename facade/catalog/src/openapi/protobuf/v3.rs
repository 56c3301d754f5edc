//! The messages of `openapi.v3.Document` as data: numbers and types of the JSON fields.
//!
//! The data comes from the schema `OpenAPIv3.proto` that upstream's clients use. The tables include references of callbacks,
//! links and examples, which no Kubernetes document has, but documents of backends can have.

use super::messages::{
    ANYS, CONTACT, EXTERNAL_DOCS, Field, FieldKind, LICENSE, Map, Message, REQUIREMENTS, STRINGS, TAG, TEXTS,
    XML,
};

/// Creates a message with extensions.
const fn message(fields: &'static [Field], extensions: u32) -> Message {
    Message { fields, shared: None, extensions }
}

/// Creates a map whose values are messages or references.
const fn message_or_reference_map(value: &'static Message) -> Map {
    Map::new(FieldKind::OrReference(value))
}

static SCHEMAS: Map = message_or_reference_map(&SCHEMA);
static SCHEMA_OR_REFERENCE: FieldKind = FieldKind::OrReference(&SCHEMA);
const PARAMETERS: FieldKind = FieldKind::Repeated(&FieldKind::OrReference(&PARAMETER));
const SERVERS: FieldKind = FieldKind::Repeated(&FieldKind::Message(&SERVER));
const EXAMPLES: FieldKind = FieldKind::Map(&message_or_reference_map(&EXAMPLE));
static HEADERS: Map = message_or_reference_map(&HEADER);
const CALLBACKS: FieldKind = FieldKind::Map(&message_or_reference_map(&CALLBACK));
const LINKS: FieldKind = FieldKind::Map(&message_or_reference_map(&LINK));
static CONTENT: Map = Map::new(FieldKind::Message(&MEDIA_TYPE));

/// The root message.
pub(super) static DOCUMENT: Message = message(
    &[
        ("openapi", 1, FieldKind::Text),
        ("info", 2, FieldKind::Message(&INFO)),
        ("servers", 3, SERVERS),
        ("paths", 4, FieldKind::Map(&PATHS)),
        ("components", 5, FieldKind::Message(&COMPONENTS)),
        ("security", 6, REQUIREMENTS),
        ("tags", 7, FieldKind::Repeated(&FieldKind::Message(&TAG))),
        ("externalDocs", 8, EXTERNAL_DOCS),
    ],
    9,
);

static PATHS: Map = Map { entries: 1, value: FieldKind::Message(&PATH_ITEM), extensions: 2, default: 0 };

static INFO: Message = message(
    &[
        ("title", 1, FieldKind::Text),
        ("description", 2, FieldKind::Text),
        ("termsOfService", 3, FieldKind::Text),
        ("contact", 4, CONTACT),
        ("license", 5, LICENSE),
        ("version", 6, FieldKind::Text),
        ("summary", 8, FieldKind::Text),
    ],
    7,
);

static SERVER: Message = message(
    &[
        ("url", 1, FieldKind::Text),
        ("description", 2, FieldKind::Text),
        ("variables", 3, FieldKind::Map(&Map::new(FieldKind::Message(&SERVER_VARIABLE)))),
    ],
    4,
);

static SERVER_VARIABLE: Message =
    message(&[("enum", 1, TEXTS), ("default", 2, FieldKind::Text), ("description", 3, FieldKind::Text)], 4);

static COMPONENTS: Message = message(
    &[
        ("schemas", 1, FieldKind::Map(&SCHEMAS)),
        ("responses", 2, FieldKind::Map(&message_or_reference_map(&RESPONSE))),
        ("parameters", 3, FieldKind::Map(&message_or_reference_map(&PARAMETER))),
        ("examples", 4, EXAMPLES),
        ("requestBodies", 5, FieldKind::Map(&message_or_reference_map(&REQUEST_BODY))),
        ("headers", 6, FieldKind::Map(&HEADERS)),
        ("securitySchemes", 7, FieldKind::Map(&message_or_reference_map(&SECURITY_SCHEME))),
        ("links", 8, LINKS),
        ("callbacks", 9, CALLBACKS),
    ],
    10,
);

static PATH_ITEM: Message = message(
    &[
        ("$ref", 1, FieldKind::Text),
        ("summary", 2, FieldKind::Text),
        ("description", 3, FieldKind::Text),
        ("get", 4, FieldKind::Message(&OPERATION)),
        ("put", 5, FieldKind::Message(&OPERATION)),
        ("post", 6, FieldKind::Message(&OPERATION)),
        ("delete", 7, FieldKind::Message(&OPERATION)),
        ("options", 8, FieldKind::Message(&OPERATION)),
        ("head", 9, FieldKind::Message(&OPERATION)),
        ("patch", 10, FieldKind::Message(&OPERATION)),
        ("trace", 11, FieldKind::Message(&OPERATION)),
        ("servers", 12, SERVERS),
        ("parameters", 13, PARAMETERS),
    ],
    14,
);

static OPERATION: Message = message(
    &[
        ("tags", 1, TEXTS),
        ("summary", 2, FieldKind::Text),
        ("description", 3, FieldKind::Text),
        ("externalDocs", 4, EXTERNAL_DOCS),
        ("operationId", 5, FieldKind::Text),
        ("parameters", 6, PARAMETERS),
        ("requestBody", 7, FieldKind::OrReference(&REQUEST_BODY)),
        ("responses", 8, FieldKind::Map(&RESPONSES)),
        ("callbacks", 9, CALLBACKS),
        ("deprecated", 10, FieldKind::Flag),
        ("security", 11, REQUIREMENTS),
        ("servers", 12, SERVERS),
    ],
    13,
);

static RESPONSES: Map =
    Map { entries: 2, value: FieldKind::OrReference(&RESPONSE), extensions: 3, default: 1 };

static RESPONSE: Message = message(
    &[
        ("description", 1, FieldKind::Text),
        ("headers", 2, FieldKind::Map(&HEADERS)),
        ("content", 3, FieldKind::Map(&CONTENT)),
        ("links", 4, LINKS),
    ],
    5,
);

static REQUEST_BODY: Message = message(
    &[
        ("description", 1, FieldKind::Text),
        ("content", 2, FieldKind::Map(&CONTENT)),
        ("required", 3, FieldKind::Flag),
    ],
    4,
);

/// Fields of headers and parameters, numbered as in `Header`.
static VALUE: &[Field] = &[
    ("description", 1, FieldKind::Text),
    ("required", 2, FieldKind::Flag),
    ("deprecated", 3, FieldKind::Flag),
    ("allowEmptyValue", 4, FieldKind::Flag),
    ("style", 5, FieldKind::Text),
    ("explode", 6, FieldKind::Flag),
    ("allowReserved", 7, FieldKind::Flag),
    ("schema", 8, FieldKind::OrReference(&SCHEMA)),
    ("example", 9, FieldKind::Any),
    ("examples", 10, EXAMPLES),
    ("content", 11, FieldKind::Map(&CONTENT)),
];

static HEADER: Message = Message { fields: &[], shared: Some((VALUE, 0)), extensions: 12 };

static PARAMETER: Message = Message {
    fields: &[("name", 1, FieldKind::Text), ("in", 2, FieldKind::Text)],
    shared: Some((VALUE, 2)),
    extensions: 14,
};

static MEDIA_TYPE: Message = message(
    &[
        ("schema", 1, FieldKind::OrReference(&SCHEMA)),
        ("example", 2, FieldKind::Any),
        ("examples", 3, EXAMPLES),
        ("encoding", 4, FieldKind::Map(&Map::new(FieldKind::Message(&ENCODING)))),
    ],
    5,
);

static ENCODING: Message = message(
    &[
        ("contentType", 1, FieldKind::Text),
        ("headers", 2, FieldKind::Map(&HEADERS)),
        ("style", 3, FieldKind::Text),
        ("explode", 4, FieldKind::Flag),
        ("allowReserved", 5, FieldKind::Flag),
    ],
    6,
);

static EXAMPLE: Message = message(
    &[
        ("summary", 1, FieldKind::Text),
        ("description", 2, FieldKind::Text),
        ("value", 3, FieldKind::Any),
        ("externalValue", 4, FieldKind::Text),
    ],
    5,
);

/// Callbacks. Members are expressions, which tables cannot distinguish from fields, so only extensions are encoded.
static CALLBACK: Message = message(&[], 2);

/// `parameters` and `requestBody` are any JSON or expressions, encoded as `Any` in field 1 of a message.
static LINK: Message = message(
    &[
        ("operationRef", 1, FieldKind::Text),
        ("operationId", 2, FieldKind::Text),
        ("parameters", 3, FieldKind::Wrapped(&FieldKind::Any)),
        ("requestBody", 4, FieldKind::Wrapped(&FieldKind::Any)),
        ("description", 5, FieldKind::Text),
        ("server", 6, FieldKind::Message(&SERVER)),
    ],
    7,
);

/// Schema of a type.
static SCHEMA: Message = message(
    &[
        ("nullable", 1, FieldKind::Flag),
        ("discriminator", 2, FieldKind::Message(&DISCRIMINATOR)),
        ("readOnly", 3, FieldKind::Flag),
        ("writeOnly", 4, FieldKind::Flag),
        ("xml", 5, FieldKind::Message(&XML)),
        ("externalDocs", 6, EXTERNAL_DOCS),
        ("example", 7, FieldKind::Any),
        ("deprecated", 8, FieldKind::Flag),
        ("title", 9, FieldKind::Text),
        ("multipleOf", 10, FieldKind::Number),
        ("maximum", 11, FieldKind::Number),
        ("exclusiveMaximum", 12, FieldKind::Flag),
        ("minimum", 13, FieldKind::Number),
        ("exclusiveMinimum", 14, FieldKind::Flag),
        ("maxLength", 15, FieldKind::Integer),
        ("minLength", 16, FieldKind::Integer),
        ("pattern", 17, FieldKind::Text),
        ("maxItems", 18, FieldKind::Integer),
        ("minItems", 19, FieldKind::Integer),
        ("uniqueItems", 20, FieldKind::Flag),
        ("maxProperties", 21, FieldKind::Integer),
        ("minProperties", 22, FieldKind::Integer),
        ("required", 23, TEXTS),
        ("enum", 24, ANYS),
        ("type", 25, FieldKind::Text),
        ("allOf", 26, FieldKind::Repeated(&SCHEMA_OR_REFERENCE)),
        ("oneOf", 27, FieldKind::Repeated(&SCHEMA_OR_REFERENCE)),
        ("anyOf", 28, FieldKind::Repeated(&SCHEMA_OR_REFERENCE)),
        ("not", 29, FieldKind::Message(&SCHEMA)),
        ("items", 30, FieldKind::Wrapped(&SCHEMA_OR_REFERENCE)),
        ("properties", 31, FieldKind::Map(&SCHEMAS)),
        ("additionalProperties", 32, FieldKind::OrFlag(&SCHEMA_OR_REFERENCE)),
        ("default", 33, FieldKind::Scalar),
        ("description", 34, FieldKind::Text),
        ("format", 35, FieldKind::Text),
    ],
    36,
);

static DISCRIMINATOR: Message = message(&[("propertyName", 1, FieldKind::Text), ("mapping", 2, STRINGS)], 3);

static SECURITY_SCHEME: Message = message(
    &[
        ("type", 1, FieldKind::Text),
        ("description", 2, FieldKind::Text),
        ("name", 3, FieldKind::Text),
        ("in", 4, FieldKind::Text),
        ("scheme", 5, FieldKind::Text),
        ("bearerFormat", 6, FieldKind::Text),
        ("flows", 7, FieldKind::Message(&FLOWS)),
        ("openIdConnectUrl", 8, FieldKind::Text),
    ],
    9,
);

static FLOWS: Message = message(
    &[
        ("implicit", 1, FieldKind::Message(&FLOW)),
        ("password", 2, FieldKind::Message(&FLOW)),
        ("clientCredentials", 3, FieldKind::Message(&FLOW)),
        ("authorizationCode", 4, FieldKind::Message(&FLOW)),
    ],
    5,
);

static FLOW: Message = message(
    &[
        ("authorizationUrl", 1, FieldKind::Text),
        ("tokenUrl", 2, FieldKind::Text),
        ("refreshUrl", 3, FieldKind::Text),
        ("scopes", 4, STRINGS),
    ],
    5,
);
