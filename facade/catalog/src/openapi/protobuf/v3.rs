//! The messages of `openapi.v3.Document` as data: numbers and types of the JSON fields.
//!
//! The data comes from the schema `OpenAPIv3.proto` that upstream's clients use. The tables include references of callbacks,
//! links and examples, which no Kubernetes document has, but documents of backends can have.

use super::messages::{
    ANYS, CONTACT, EXTERNAL_DOCS, Field, Kind, LICENSE, Map, Message, REQUIREMENTS, STRINGS, TAG, TEXTS, XML,
};

/// Creates a message with extensions.
const fn message(fields: &'static [Field], extensions: u32) -> Message {
    Message { fields, shared: None, extensions }
}

/// Creates a map whose values are messages or references.
const fn named(value: &'static Message) -> Map {
    Map::of(Kind::OrReference(value))
}

static SCHEMAS: Map = named(&SCHEMA);
static SCHEMA_OR_REFERENCE: Kind = Kind::OrReference(&SCHEMA);
const PARAMETERS: Kind = Kind::Each(&Kind::OrReference(&PARAMETER));
const SERVERS: Kind = Kind::Each(&Kind::Message(&SERVER));
const EXAMPLES: Kind = Kind::Map(&named(&EXAMPLE));
static HEADERS: Map = named(&HEADER);
const CALLBACKS: Kind = Kind::Map(&named(&CALLBACK));
const LINKS: Kind = Kind::Map(&named(&LINK));
static CONTENT: Map = Map::of(Kind::Message(&MEDIA_TYPE));

/// The root message.
pub(super) static DOCUMENT: Message = message(
    &[
        ("openapi", 1, Kind::Text),
        ("info", 2, Kind::Message(&INFO)),
        ("servers", 3, SERVERS),
        ("paths", 4, Kind::Map(&PATHS)),
        ("components", 5, Kind::Message(&COMPONENTS)),
        ("security", 6, REQUIREMENTS),
        ("tags", 7, Kind::Each(&Kind::Message(&TAG))),
        ("externalDocs", 8, EXTERNAL_DOCS),
    ],
    9,
);

static PATHS: Map = Map { entries: 1, value: Kind::Message(&PATH_ITEM), extensions: 2, default: 0 };

static INFO: Message = message(
    &[
        ("title", 1, Kind::Text),
        ("description", 2, Kind::Text),
        ("termsOfService", 3, Kind::Text),
        ("contact", 4, CONTACT),
        ("license", 5, LICENSE),
        ("version", 6, Kind::Text),
        ("summary", 8, Kind::Text),
    ],
    7,
);

static SERVER: Message = message(
    &[
        ("url", 1, Kind::Text),
        ("description", 2, Kind::Text),
        ("variables", 3, Kind::Map(&Map::of(Kind::Message(&SERVER_VARIABLE)))),
    ],
    4,
);

static SERVER_VARIABLE: Message =
    message(&[("enum", 1, TEXTS), ("default", 2, Kind::Text), ("description", 3, Kind::Text)], 4);

static COMPONENTS: Message = message(
    &[
        ("schemas", 1, Kind::Map(&SCHEMAS)),
        ("responses", 2, Kind::Map(&named(&RESPONSE))),
        ("parameters", 3, Kind::Map(&named(&PARAMETER))),
        ("examples", 4, EXAMPLES),
        ("requestBodies", 5, Kind::Map(&named(&REQUEST_BODY))),
        ("headers", 6, Kind::Map(&HEADERS)),
        ("securitySchemes", 7, Kind::Map(&named(&SECURITY_SCHEME))),
        ("links", 8, LINKS),
        ("callbacks", 9, CALLBACKS),
    ],
    10,
);

static PATH_ITEM: Message = message(
    &[
        ("$ref", 1, Kind::Text),
        ("summary", 2, Kind::Text),
        ("description", 3, Kind::Text),
        ("get", 4, Kind::Message(&OPERATION)),
        ("put", 5, Kind::Message(&OPERATION)),
        ("post", 6, Kind::Message(&OPERATION)),
        ("delete", 7, Kind::Message(&OPERATION)),
        ("options", 8, Kind::Message(&OPERATION)),
        ("head", 9, Kind::Message(&OPERATION)),
        ("patch", 10, Kind::Message(&OPERATION)),
        ("trace", 11, Kind::Message(&OPERATION)),
        ("servers", 12, SERVERS),
        ("parameters", 13, PARAMETERS),
    ],
    14,
);

static OPERATION: Message = message(
    &[
        ("tags", 1, TEXTS),
        ("summary", 2, Kind::Text),
        ("description", 3, Kind::Text),
        ("externalDocs", 4, EXTERNAL_DOCS),
        ("operationId", 5, Kind::Text),
        ("parameters", 6, PARAMETERS),
        ("requestBody", 7, Kind::OrReference(&REQUEST_BODY)),
        ("responses", 8, Kind::Map(&RESPONSES)),
        ("callbacks", 9, CALLBACKS),
        ("deprecated", 10, Kind::Flag),
        ("security", 11, REQUIREMENTS),
        ("servers", 12, SERVERS),
    ],
    13,
);

static RESPONSES: Map = Map { entries: 2, value: Kind::OrReference(&RESPONSE), extensions: 3, default: 1 };

static RESPONSE: Message = message(
    &[
        ("description", 1, Kind::Text),
        ("headers", 2, Kind::Map(&HEADERS)),
        ("content", 3, Kind::Map(&CONTENT)),
        ("links", 4, LINKS),
    ],
    5,
);

static REQUEST_BODY: Message = message(
    &[("description", 1, Kind::Text), ("content", 2, Kind::Map(&CONTENT)), ("required", 3, Kind::Flag)],
    4,
);

/// Fields of headers and parameters, numbered as in `Header`.
static VALUE: &[Field] = &[
    ("description", 1, Kind::Text),
    ("required", 2, Kind::Flag),
    ("deprecated", 3, Kind::Flag),
    ("allowEmptyValue", 4, Kind::Flag),
    ("style", 5, Kind::Text),
    ("explode", 6, Kind::Flag),
    ("allowReserved", 7, Kind::Flag),
    ("schema", 8, Kind::OrReference(&SCHEMA)),
    ("example", 9, Kind::Any),
    ("examples", 10, EXAMPLES),
    ("content", 11, Kind::Map(&CONTENT)),
];

static HEADER: Message = Message { fields: &[], shared: Some((VALUE, 0)), extensions: 12 };

static PARAMETER: Message = Message {
    fields: &[("name", 1, Kind::Text), ("in", 2, Kind::Text)],
    shared: Some((VALUE, 2)),
    extensions: 14,
};

static MEDIA_TYPE: Message = message(
    &[
        ("schema", 1, Kind::OrReference(&SCHEMA)),
        ("example", 2, Kind::Any),
        ("examples", 3, EXAMPLES),
        ("encoding", 4, Kind::Map(&Map::of(Kind::Message(&ENCODING)))),
    ],
    5,
);

static ENCODING: Message = message(
    &[
        ("contentType", 1, Kind::Text),
        ("headers", 2, Kind::Map(&HEADERS)),
        ("style", 3, Kind::Text),
        ("explode", 4, Kind::Flag),
        ("allowReserved", 5, Kind::Flag),
    ],
    6,
);

static EXAMPLE: Message = message(
    &[
        ("summary", 1, Kind::Text),
        ("description", 2, Kind::Text),
        ("value", 3, Kind::Any),
        ("externalValue", 4, Kind::Text),
    ],
    5,
);

/// Callbacks. Members are expressions, which tables cannot distinguish from fields, so only extensions are encoded.
static CALLBACK: Message = message(&[], 2);

/// `parameters` and `requestBody` are any JSON or expressions, encoded as `Any` in field 1 of a message.
static LINK: Message = message(
    &[
        ("operationRef", 1, Kind::Text),
        ("operationId", 2, Kind::Text),
        ("parameters", 3, Kind::Wrapped(&Kind::Any)),
        ("requestBody", 4, Kind::Wrapped(&Kind::Any)),
        ("description", 5, Kind::Text),
        ("server", 6, Kind::Message(&SERVER)),
    ],
    7,
);

/// Schema of a type.
static SCHEMA: Message = message(
    &[
        ("nullable", 1, Kind::Flag),
        ("discriminator", 2, Kind::Message(&DISCRIMINATOR)),
        ("readOnly", 3, Kind::Flag),
        ("writeOnly", 4, Kind::Flag),
        ("xml", 5, Kind::Message(&XML)),
        ("externalDocs", 6, EXTERNAL_DOCS),
        ("example", 7, Kind::Any),
        ("deprecated", 8, Kind::Flag),
        ("title", 9, Kind::Text),
        ("multipleOf", 10, Kind::Number),
        ("maximum", 11, Kind::Number),
        ("exclusiveMaximum", 12, Kind::Flag),
        ("minimum", 13, Kind::Number),
        ("exclusiveMinimum", 14, Kind::Flag),
        ("maxLength", 15, Kind::Integer),
        ("minLength", 16, Kind::Integer),
        ("pattern", 17, Kind::Text),
        ("maxItems", 18, Kind::Integer),
        ("minItems", 19, Kind::Integer),
        ("uniqueItems", 20, Kind::Flag),
        ("maxProperties", 21, Kind::Integer),
        ("minProperties", 22, Kind::Integer),
        ("required", 23, TEXTS),
        ("enum", 24, ANYS),
        ("type", 25, Kind::Text),
        ("allOf", 26, Kind::Each(&SCHEMA_OR_REFERENCE)),
        ("oneOf", 27, Kind::Each(&SCHEMA_OR_REFERENCE)),
        ("anyOf", 28, Kind::Each(&SCHEMA_OR_REFERENCE)),
        ("not", 29, Kind::Message(&SCHEMA)),
        ("items", 30, Kind::Wrapped(&SCHEMA_OR_REFERENCE)),
        ("properties", 31, Kind::Map(&SCHEMAS)),
        ("additionalProperties", 32, Kind::OrFlag(&SCHEMA_OR_REFERENCE)),
        ("default", 33, Kind::Scalar),
        ("description", 34, Kind::Text),
        ("format", 35, Kind::Text),
    ],
    36,
);

static DISCRIMINATOR: Message = message(&[("propertyName", 1, Kind::Text), ("mapping", 2, STRINGS)], 3);

static SECURITY_SCHEME: Message = message(
    &[
        ("type", 1, Kind::Text),
        ("description", 2, Kind::Text),
        ("name", 3, Kind::Text),
        ("in", 4, Kind::Text),
        ("scheme", 5, Kind::Text),
        ("bearerFormat", 6, Kind::Text),
        ("flows", 7, Kind::Message(&FLOWS)),
        ("openIdConnectUrl", 8, Kind::Text),
    ],
    9,
);

static FLOWS: Message = message(
    &[
        ("implicit", 1, Kind::Message(&FLOW)),
        ("password", 2, Kind::Message(&FLOW)),
        ("clientCredentials", 3, Kind::Message(&FLOW)),
        ("authorizationCode", 4, Kind::Message(&FLOW)),
    ],
    5,
);

static FLOW: Message = message(
    &[
        ("authorizationUrl", 1, Kind::Text),
        ("tokenUrl", 2, Kind::Text),
        ("refreshUrl", 3, Kind::Text),
        ("scopes", 4, STRINGS),
    ],
    5,
);
