//! Decoding of a custom resource in this order: parse, prune, drop nulls, decode typed metadata, set defaults.

use portico_machinery::Object;
use portico_machinery::gvk::{GroupVersion, GroupVersionKind};
use serde_json::{Map, Value};

use super::body::{self, Body};
use super::default::MAX_DEFAULT_BYTES;
use super::location::Location;
use super::meta::{self, EmbeddedMetadata, OnTypeMismatch};
use super::model::SchemaNode;
use super::resource::CustomResource;
use super::{default, nulls, prune};
use crate::decode::{DecodeError, Decoded, Format, body_prefix, json_type_name, parse_text};

/// Go struct into which upstream decodes `apiVersion` and `kind`, as its errors print it.
const TYPE_META_GO_TYPE: &str =
    r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// Maximum bytes of a body that an error repeats.
const MAX_REPEATED_BYTES: usize = 4 * 1024;

/// Source of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectSource {
    /// Body of a request.
    Body,
    /// Result of a patch of a stored object.
    Patch,
    /// Result of an applied configuration: nulls are kept, and validation rejects them.
    Configuration,
}

impl CustomResource {
    /// Implements [`Schema::decode`](crate::Schema::decode).
    ///
    /// # Errors
    /// [`DecodeError`].
    pub(crate) fn decode(
        &self,
        bytes: &[u8],
        format: Format,
        expected: &GroupVersionKind,
    ) -> Result<Decoded, DecodeError> {
        self.decode_body(parse(bytes, format, &expected.kind)?, bytes, expected, ObjectSource::Body)
    }

    /// Implements [`Schema::decode_untagged`](crate::Schema::decode_untagged).
    ///
    /// # Errors
    /// [`DecodeError`].
    pub(crate) fn decode_untagged(&self, bytes: &[u8], format: Format) -> Result<Decoded, DecodeError> {
        let body = parse(bytes, format, "object")?;
        let map = match body.value {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        let found = GroupVersionKind::default();
        let (map, unknown) =
            self.decode_with_schema(map, Some(self.schema().root()), &found, "object", ObjectSource::Body)?;
        Ok(into_decoded(map, body.duplicates, unknown))
    }

    /// Implements [`Schema::retype`](crate::Schema::retype).
    ///
    /// # Errors
    /// [`DecodeError`].
    pub(crate) fn retype(
        &self,
        object: Object,
        expected: &GroupVersionKind,
        source: ObjectSource,
    ) -> Result<Decoded, DecodeError> {
        let printed = if object.kind().is_empty() { object.to_json() } else { Vec::new() };
        let body = Body { value: object.into_node().0, ..Body::default() };
        self.decode_body(body, &printed, expected, source)
    }

    fn decode_body(
        &self,
        body: Body,
        bytes: &[u8],
        expected: &GroupVersionKind,
        source: ObjectSource,
    ) -> Result<Decoded, DecodeError> {
        let tagged = KindedObject::read(body.value, bytes).map_err(|error| DecodeError::Unrecognized {
            expected: expected.kind.clone(),
            error,
            head: body_prefix(bytes),
        })?;
        let KindedObject { map, api_version, kind: found } = tagged;
        if let Some(error) = body.error {
            return Err(DecodeError::CannotBeHandled { found, expected: expected.kind.clone(), error });
        }
        let other_version = found.group_version() != expected.group_version();
        if other_version && source == ObjectSource::Body {
            let expected = expected.group_version().to_string();
            return Err(DecodeError::Version { found: api_version, expected });
        }
        // An object of another kind is not decoded further: validation rejects it later.
        let root = (!other_version && found.kind == expected.kind).then(|| &**self.schema().root());
        let (map, unknown) = self.decode_with_schema(map, root, &found, &expected.kind, source)?;
        Ok(into_decoded(map, body.duplicates, unknown))
    }

    /// Decodes an object according to its schema, and returns the paths of unknown fields. Without a schema,
    /// decodes only metadata.
    fn decode_with_schema(
        &self,
        mut map: Map<String, Value>,
        root: Option<&SchemaNode>,
        found: &GroupVersionKind,
        expected: &str,
        source: ObjectSource,
    ) -> Result<(Map<String, Value>, Vec<String>), DecodeError> {
        let refuse = |error: String| DecodeError::CannotBeHandled {
            found: found.clone(),
            expected: expected.to_owned(),
            error,
        };
        let mut unknown = Vec::new();
        if let Some(metadata) = map.get_mut("metadata") {
            let read = meta::decode_metadata(self.object_meta(), metadata);
            if let Some(error) = read.error {
                return Err(refuse(error));
            }
            unknown.extend(read.unknown.iter().map(|path| format!("metadata.{path}")));
            *metadata = Value::Object(read.map);
        }
        let Some(root) = root else { return Ok((map, unknown)) };
        unknown.extend(prune::prune_object(&mut map, root, true).paths);
        if source != ObjectSource::Configuration {
            nulls::drop_nulls(&mut map, root);
        }
        let mut embedded = EmbeddedMetadata::new(self.object_meta(), OnTypeMismatch::Reject);
        embedded.fields(&mut map, root, &Location::root("")).map_err(|error| refuse(error.to_string()))?;
        let mut in_embedded = embedded.unknown.into_items();
        in_embedded.sort_unstable();
        unknown.append(&mut in_embedded);
        if default::set_defaults(&mut map, root).exceeded {
            return Err(refuse(format!("defaults add more than {MAX_DEFAULT_BYTES} bytes to it")));
        }
        Ok((map, unknown))
    }
}

fn parse(bytes: &[u8], format: Format, expected: &str) -> Result<Body, DecodeError> {
    if format == Format::Protobuf {
        let error = "custom resources are not read from protobuf".to_owned();
        return Err(DecodeError::Unrecognized {
            expected: expected.to_owned(),
            error,
            head: body_prefix(bytes),
        });
    }
    parse_text(bytes, format, expected, body::parse_body)
}

fn into_decoded(map: Map<String, Value>, mut strict: Vec<String>, unknown: Vec<String>) -> Decoded {
    strict.extend(unknown.into_iter().map(|path| format!("unknown field \"{path}\"")));
    Decoded { object: Object::from_map(map), strict }
}

/// Object with its kind.
struct KindedObject {
    map: Map<String, Value>,
    /// Value of `apiVersion` as the client sent it.
    api_version: String,
    kind: GroupVersionKind,
}

impl KindedObject {
    /// Reads the kind of a value that was sent as `bytes`. Returns upstream's error if it is missing.
    fn read(value: Value, bytes: &[u8]) -> Result<Self, String> {
        let map = match value {
            Value::Object(map) => map,
            Value::Null => Map::new(),
            other => return Err(type_meta_error(&other, &format!("Go value of type {TYPE_META_GO_TYPE}"))),
        };
        let (mut api_version, mut kind) = (String::new(), String::new());
        // In text order: the first member that is not a string is reported.
        for (name, value) in &map {
            match name.as_str() {
                "apiVersion" => api_version = text(name, value)?,
                "kind" => kind = text(name, value)?,
                _ => {}
            }
        }
        if kind.is_empty() {
            let printed = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_REPEATED_BYTES)]);
            return Err(format!("Object 'Kind' is missing in '{printed}'"));
        }
        let version: GroupVersion =
            api_version.parse().map_err(|_| format!("unexpected GroupVersion string: {api_version}"))?;
        Ok(Self { map, kind: version.kind(&kind), api_version })
    }
}

fn text(name: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Null => Ok(String::new()),
        other => Err(type_meta_error(other, &format!("Go struct field .{name} of type string"))),
    }
}

fn type_meta_error(found: &Value, expected: &str) -> String {
    let name = json_type_name(found);
    format!("couldn't get version/kind; json parse error: json: cannot unmarshal {name} into {expected}")
}

#[cfg(test)]
#[path = "decode_tests.rs"]
pub(super) mod tests;
