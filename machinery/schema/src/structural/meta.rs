//! `apiVersion`, `kind` and `metadata` at the root and in embedded resources. Metadata has the types of ObjectMeta, regardless
//! of the schema.

use portico_machinery::Bounded;
use portico_machinery::field::{Error, Path};
use portico_machinery::object::sort_keys;
use serde_json::{Map, Value};

use super::at::At;
use super::model::Node;
use super::printed;
use crate::decode::{self, strict_errors};
use crate::model::{Emit, FieldType};
use crate::normalise;
use crate::typed::Typed;

/// Decoded metadata, with errors.
#[derive(Debug, Default)]
pub(super) struct Read {
    /// Metadata as upstream prints it, keys sorted.
    pub map: Map<String, Value>,
    /// Unknown members, as paths below `metadata`.
    pub unknown: Vec<String>,
    /// First member of a wrong type, with upstream's message.
    pub error: Option<String>,
}

/// Decodes metadata. Null is empty metadata.
pub(super) fn read(types: &Typed, value: &Value) -> Read {
    let mut sorted = value.clone();
    sort_keys(&mut sorted);
    match sorted {
        Value::Object(map) if is_plain(types, &map) => Read { map, ..Read::default() },
        sorted => read_along(types, &sorted),
    }
}

/// True if all members are non-empty strings or maps of strings, as in most requests: decoding does not change such metadata.
fn is_plain(types: &Typed, metadata: &Map<String, Value>) -> bool {
    let made = |emit| matches!(emit, Emit::Always | Emit::Struct | Emit::Nullable);
    let nothing_is_made = types.root().fields.iter().all(|field| !made(field.emit));
    let held_plainly = |(name, held): (&String, &Value)| {
        let field = types.root().field(name).map(|field| types.types().resolve(&field.ty));
        match (field, held) {
            (Some(FieldType::String), Value::String(text)) => !text.is_empty(),
            (Some(FieldType::Map(of)), Value::Object(entries)) => {
                **of == FieldType::String && !entries.is_empty() && entries.values().all(Value::is_string)
            }
            _ => false,
        }
    };
    nothing_is_made && metadata.iter().all(held_plainly)
}

/// Decodes arbitrary metadata with sorted keys.
fn read_along(types: &Typed, sorted: &Value) -> Read {
    let (decoded, error) = match decode::read_json(types, &sorted.to_string()) {
        Ok(read) => read,
        Err(error) => return Read { error: Some(error.0), ..Read::default() },
    };
    let mut object = decoded.object;
    normalise::object(types, &mut object);
    object.sort_keys();
    let path = |text: String| text.strip_prefix("unknown field \"")?.strip_suffix('"').map(str::to_owned);
    let unknown = decoded.strict.into_iter().filter_map(path).collect();
    Read { map: std::mem::take(object.map_mut()), unknown, error }
}

/// Decodes metadata member by member and drops members of a wrong type.
pub(super) fn read_leniently(types: &Typed, value: &Value) -> Map<String, Value> {
    let whole = read(types, value);
    if whole.error.is_none() {
        return whole.map;
    }
    let mut kept = Map::new();
    for (key, member) in value.as_object().into_iter().flatten() {
        let alone = read(types, &Value::Object(Map::from_iter([(key.clone(), member.clone())])));
        if alone.error.is_none() {
            kept.extend(alone.map);
        }
    }
    kept.sort_keys();
    kept
}

/// Handling of members of a wrong type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Misfits {
    /// Return an error: used for requests.
    Refuse,
    /// Drop the member: stored objects stay readable.
    Drop,
}

/// Walk that decodes the metadata of embedded resources.
#[derive(Debug)]
pub(super) struct Embedded<'t> {
    types: &'t Typed,
    misfits: Misfits,
    /// Unknown members, as full paths.
    pub unknown: Bounded<String>,
    /// True if a value changed.
    pub any: bool,
}

impl<'t> Embedded<'t> {
    pub(super) fn new(types: &'t Typed, misfits: Misfits) -> Self {
        Self { types, misfits, unknown: strict_errors(), any: false }
    }

    /// Walks the fields of an object. The metadata of the root is not that of an embedded resource.
    ///
    /// # Errors
    /// First type mismatch, if mismatches are errors.
    pub(super) fn fields(
        &mut self,
        map: &mut Map<String, Value>,
        node: &Node,
        at: &At<'_>,
    ) -> Result<(), Error> {
        for (key, value) in map.iter_mut() {
            let named = node.property(key);
            let Some(below) = named.or(node.additional.schema()).filter(|n| n.marks.embedded) else {
                continue;
            };
            let at = if named.is_some() { at.field(key) } else { at.key(key) };
            self.value(value, below, &at)?;
        }
        Ok(())
    }

    /// Walks any value at a path. If `is_object`, the value is an object itself, regardless of its schema.
    ///
    /// # Errors
    /// First type mismatch, if mismatches are errors.
    pub(super) fn whole(
        &mut self,
        value: &mut Value,
        node: &Node,
        is_object: bool,
        path: &Path,
    ) -> Result<(), Error> {
        let at = At::root(path.as_str());
        match value {
            Value::Object(map) if is_object => {
                self.resource(map, &at)?;
                self.fields(map, node, &at)
            }
            value => self.value(value, node, &at),
        }
    }

    fn value(&mut self, value: &mut Value, node: &Node, at: &At<'_>) -> Result<(), Error> {
        match (value, &node.items) {
            (Value::Object(map), _) => {
                if node.embedded {
                    self.resource(map, at)?;
                }
                self.fields(map, node, at)
            }
            (Value::Array(list), Some(items)) => {
                let mut places = list.iter_mut().enumerate();
                places.try_for_each(|(index, item)| self.value(item, items, &at.index(index)))
            }
            _ => Ok(()),
        }
    }

    fn resource(&mut self, map: &mut Map<String, Value>, at: &At<'_>) -> Result<(), Error> {
        for name in ["apiVersion", "kind"] {
            match map.get(name) {
                None | Some(Value::String(_)) => {}
                Some(_) if self.misfits == Misfits::Drop => {
                    map.shift_remove(name);
                    self.any = true;
                }
                Some(other) => {
                    let shown = printed::value(other);
                    return Err(Error::invalid_printed(&at.field(name).path(), &shown, "must be a string"));
                }
            }
        }
        let Some(metadata) = map.get_mut("metadata") else { return Ok(()) };
        let read = match self.misfits {
            Misfits::Refuse => {
                let read = read(self.types, metadata);
                if let Some(error) = read.error {
                    let shown = printed::value(metadata);
                    return Err(Error::invalid_printed(&at.field("metadata").path(), &shown, &error));
                }
                let at = at.field("metadata");
                for below in &read.unknown {
                    self.unknown.push_with(|| format!("{}.{below}", at.path()));
                }
                read.map
            }
            // Values that are not objects are rejected by validation.
            Misfits::Drop if !metadata.is_object() && !metadata.is_null() => return Ok(()),
            Misfits::Drop => read_leniently(self.types, metadata),
        };
        if metadata.as_object() != Some(&read) {
            *metadata = Value::Object(read);
            self.any = true;
        }
        Ok(())
    }
}
