//! `apiVersion`, `kind` and `metadata` at the root and in embedded resources. Metadata has the types of ObjectMeta, regardless
//! of the schema.

use portico_machinery::Bounded;
use portico_machinery::field::{Error, Path};
use portico_machinery::object::sort_keys;
use serde_json::{Map, Value};

use super::location::Location;
use super::model::SchemaNode;
use super::printed;
use crate::decode::{self, strict_errors};
use crate::model::{Emit, FieldType};
use crate::normalize;
use crate::typed::Typed;

/// Decoded metadata, with errors.
#[derive(Debug, Default)]
pub(super) struct DecodedMetadata {
    /// Metadata as upstream prints it, keys sorted.
    pub map: Map<String, Value>,
    /// Unknown members, as paths below `metadata`.
    pub unknown: Vec<String>,
    /// First member of a wrong type, with upstream's message.
    pub error: Option<String>,
}

/// Decodes metadata. Null is empty metadata.
pub(super) fn decode_metadata(types: &Typed, value: &Value) -> DecodedMetadata {
    let mut sorted = value.clone();
    sort_keys(&mut sorted);
    match sorted {
        Value::Object(map) if is_plain(types, &map) => DecodedMetadata { map, ..DecodedMetadata::default() },
        sorted => decode_typed(types, &sorted),
    }
}

/// True if all members are non-empty strings or maps of strings, as in most requests: decoding does not change such metadata.
fn is_plain(types: &Typed, metadata: &Map<String, Value>) -> bool {
    let is_always_emitted = |emit| matches!(emit, Emit::Always | Emit::Struct | Emit::Nullable);
    let emits_nothing = types.root().fields.iter().all(|field| !is_always_emitted(field.emit));
    let is_plain_field = |(name, value): (&String, &Value)| {
        let field = types.root().field(name).map(|field| types.types().resolve(&field.ty));
        match (field, value) {
            (Some(FieldType::String), Value::String(text)) => !text.is_empty(),
            (Some(FieldType::Map(of)), Value::Object(entries)) => {
                **of == FieldType::String && !entries.is_empty() && entries.values().all(Value::is_string)
            }
            _ => false,
        }
    };
    emits_nothing && metadata.iter().all(is_plain_field)
}

/// Decodes arbitrary metadata with sorted keys.
fn decode_typed(types: &Typed, sorted: &Value) -> DecodedMetadata {
    let (decoded, error) = match decode::decode_metadata_json(types, &sorted.to_string()) {
        Ok(read) => read,
        Err(error) => return DecodedMetadata { error: Some(error.0), ..DecodedMetadata::default() },
    };
    let mut object = decoded.object;
    normalize::normalize_object(types, &mut object);
    object.sort_keys();
    let path = |text: String| text.strip_prefix("unknown field \"")?.strip_suffix('"').map(str::to_owned);
    let unknown = decoded.strict.into_iter().filter_map(path).collect();
    DecodedMetadata { map: std::mem::take(object.map_mut()), unknown, error }
}

/// Decodes metadata member by member and drops members of a wrong type.
pub(super) fn decode_leniently(types: &Typed, value: &Value) -> Map<String, Value> {
    let decoded = decode_metadata(types, value);
    if decoded.error.is_none() {
        return decoded.map;
    }
    let mut valid = Map::new();
    for (key, member) in value.as_object().into_iter().flatten() {
        let single = decode_metadata(types, &Value::Object(Map::from_iter([(key.clone(), member.clone())])));
        if single.error.is_none() {
            valid.extend(single.map);
        }
    }
    valid.sort_keys();
    valid
}

/// Handling of members of a wrong type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnTypeMismatch {
    /// Return an error: used for requests.
    Reject,
    /// Drop the member: stored objects stay readable.
    Drop,
}

/// Walk that decodes the metadata of embedded resources.
#[derive(Debug)]
pub(super) struct EmbeddedMetadata<'t> {
    types: &'t Typed,
    on_type_mismatch: OnTypeMismatch,
    /// Unknown members, as full paths.
    pub unknown: Bounded<String>,
    /// True if a value changed.
    pub has_changed: bool,
}

impl<'t> EmbeddedMetadata<'t> {
    pub(super) fn new(types: &'t Typed, on_type_mismatch: OnTypeMismatch) -> Self {
        Self { types, on_type_mismatch, unknown: strict_errors(), has_changed: false }
    }

    /// Walks the fields of an object. The metadata of the root is not that of an embedded resource.
    ///
    /// # Errors
    /// First type mismatch, if mismatches are errors.
    pub(super) fn fields(
        &mut self,
        map: &mut Map<String, Value>,
        node: &SchemaNode,
        location: &Location<'_>,
    ) -> Result<(), Error> {
        for (key, value) in map.iter_mut() {
            let named = node.property(key);
            let Some(child) = named.or(node.additional.schema()).filter(|n| n.subtree_flags.embedded) else {
                continue;
            };
            let location = if named.is_some() { location.field(key) } else { location.key(key) };
            self.value(value, child, &location)?;
        }
        Ok(())
    }

    /// Walks any value at a path. If `is_object`, the value is an object itself, regardless of its schema.
    ///
    /// # Errors
    /// First type mismatch, if mismatches are errors.
    pub(super) fn root(
        &mut self,
        value: &mut Value,
        node: &SchemaNode,
        is_object: bool,
        path: &Path,
    ) -> Result<(), Error> {
        let location = Location::root(path.as_str());
        match value {
            Value::Object(map) if is_object => {
                self.resource(map, &location)?;
                self.fields(map, node, &location)
            }
            value => self.value(value, node, &location),
        }
    }

    fn value(&mut self, value: &mut Value, node: &SchemaNode, location: &Location<'_>) -> Result<(), Error> {
        match (value, &node.items) {
            (Value::Object(map), _) => {
                if node.embedded {
                    self.resource(map, location)?;
                }
                self.fields(map, node, location)
            }
            (Value::Array(list), Some(items)) => {
                let mut places = list.iter_mut().enumerate();
                places.try_for_each(|(index, item)| self.value(item, items, &location.index(index)))
            }
            _ => Ok(()),
        }
    }

    fn resource(&mut self, map: &mut Map<String, Value>, location: &Location<'_>) -> Result<(), Error> {
        for name in ["apiVersion", "kind"] {
            match map.get(name) {
                None | Some(Value::String(_)) => {}
                Some(_) if self.on_type_mismatch == OnTypeMismatch::Drop => {
                    map.shift_remove(name);
                    self.has_changed = true;
                }
                Some(other) => {
                    let printed = printed::print_value(other);
                    return Err(Error::invalid_printed(
                        &location.field(name).path(),
                        &printed,
                        "must be a string",
                    ));
                }
            }
        }
        let Some(metadata) = map.get_mut("metadata") else { return Ok(()) };
        let read = match self.on_type_mismatch {
            OnTypeMismatch::Reject => {
                let read = decode_metadata(self.types, metadata);
                if let Some(error) = read.error {
                    let printed = printed::print_value(metadata);
                    return Err(Error::invalid_printed(&location.field("metadata").path(), &printed, &error));
                }
                let location = location.field("metadata");
                for unknown_path in &read.unknown {
                    self.unknown.push_with(|| format!("{}.{unknown_path}", location.path()));
                }
                read.map
            }
            // Values that are not objects are rejected by validation.
            OnTypeMismatch::Drop if !metadata.is_object() && !metadata.is_null() => return Ok(()),
            OnTypeMismatch::Drop => decode_leniently(self.types, metadata),
        };
        if metadata.as_object() != Some(&read) {
            *metadata = Value::Object(read);
            self.has_changed = true;
        }
        Ok(())
    }
}
