//! Maps and objects: computed, or borrowed from JSON.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use indexmap::Equivalent;
#[cfg(feature = "json")]
use serde_json::{Map as JsonMap, Value as Json};

#[cfg(feature = "json")]
use super::json::from_json;
use super::{Key, Map, MapBuilder, Value};
#[cfg(feature = "json")]
use crate::decl::{DeclKind, DeclType};
use crate::error::EvalError;

/// A key and a value.
type Entry<'v> = (Value<'v>, Value<'v>);

/// Maximum number of members that are searched linearly.
#[cfg(feature = "json")]
const MAX_SCANNED_ENTRIES: usize = 16;

impl<'v> Map<'v> {
    /// Returns the entries of a computed map.
    pub(crate) fn computed(&self) -> Option<&MapBuilder<'v>> {
        match self {
            Self::Computed(entries) | Self::Object { fields: entries, .. } => Some(entries),
            #[cfg(feature = "json")]
            Self::Json { .. } => None,
        }
    }

    /// Returns the name of the type of an object that the expression constructed.
    #[must_use]
    pub fn object_name(&self) -> Option<&str> {
        if let Self::Object { name, .. } = self { Some(name) } else { None }
    }

    /// Returns the map without its declaration.
    pub(super) fn without_declaration(&self) -> Self {
        match self {
            Self::Computed(_) | Self::Object { .. } => self.clone(),
            #[cfg(feature = "json")]
            Self::Json { members, .. } => Self::Json { members, of: DeclType::dynamic() },
        }
    }

    /// Returns the name of the Go type, for messages.
    pub(super) fn go_type(&self) -> &'static str {
        match self {
            Self::Computed(_) => "*types.baseMap",
            Self::Object { .. } => "*dynamic.ObjectVal",
            #[cfg(feature = "json")]
            Self::Json { of, .. } if matches!(of.kind, DeclKind::Dyn) => "map[string]interface {}",
            #[cfg(feature = "json")]
            Self::Json { .. } => "*common.unstructuredMap",
        }
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Computed(entries) | Self::Object { fields: entries, .. } => entries.len(),
            #[cfg(feature = "json")]
            Self::Json { members, .. } => members.len(),
        }
    }

    /// True if there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value of a field or of a string key. Fields of declared objects have escaped names; their null
    /// members are absent.
    ///
    /// # Errors
    /// The value does not match its declaration.
    pub fn get_str(&self, name: &str) -> Result<Option<Value<'v>>, EvalError> {
        match self {
            Self::Computed(entries) | Self::Object { fields: entries, .. } => {
                Ok(entries.get(&Name(name)).cloned())
            }
            #[cfg(feature = "json")]
            Self::Json { members, of } => match &of.kind {
                DeclKind::Object(_) => {
                    let Some(field) = of.field(name) else { return Ok(None) };
                    match member(members, &field.name) {
                        None | Some(Json::Null) => Ok(None),
                        Some(json) => from_json(json, &field.of).map(Some),
                    }
                }
                _ => member(members, name).map(|json| from_json(json, of.values())).transpose(),
            },
        }
    }

    /// Returns the value of a key.
    ///
    /// # Errors
    /// The value does not match its declaration; `no such overload` for a key of an impossible type.
    pub fn get(&self, key: &Value<'v>) -> Result<Option<Value<'v>>, EvalError> {
        match (self, key) {
            (_, Value::String(name)) => self.get_str(name),
            (Self::Computed(entries) | Self::Object { fields: entries, .. }, key) => {
                Ok(Key::lookup(key).and_then(|key| entries.get(&key).cloned()))
            }
            #[cfg(feature = "json")]
            (Self::Json { of, .. }, _) if matches!(of.kind, DeclKind::Dyn) => Ok(None),
            #[cfg(feature = "json")]
            (Self::Json { .. }, _) => Err(EvalError::no_such_overload()),
        }
    }

    /// Iterates over the keys. Keys of declared objects are the escaped names of the declared fields that are present.
    pub fn keys(&self) -> Box<dyn Iterator<Item = Value<'v>> + '_> {
        match self {
            Self::Computed(entries) | Self::Object { fields: entries, .. } => {
                Box::new(entries.keys().map(Key::to_value))
            }
            #[cfg(feature = "json")]
            Self::Json { members, of } => match &of.kind {
                DeclKind::Object(object) => {
                    let is_present = |name: &str| members.get(name).is_some_and(|json| !json.is_null());
                    let fields = object.fields.iter().filter(move |field| is_present(&field.name));
                    Box::new(fields.map(|field| Value::from(&*field.escaped)))
                }
                _ => Box::new(members.keys().map(|name| Value::from(name.as_str()))),
            },
        }
    }

    /// Iterates over the entries; an entry is an error if its value does not match its declaration.
    pub fn iter(&self) -> Box<dyn Iterator<Item = Result<Entry<'v>, EvalError>> + '_> {
        match self {
            Self::Computed(entries) | Self::Object { fields: entries, .. } => {
                Box::new(entries.iter().map(|(key, value)| Ok((key.to_value(), value.clone()))))
            }
            #[cfg(feature = "json")]
            Self::Json { .. } => Box::new(
                self.keys().filter_map(|key| Some(self.get(&key).transpose()?.map(|value| (key, value)))),
            ),
        }
    }

    /// Collects all entries.
    ///
    /// # Errors
    /// A value does not match its declaration.
    pub fn entries(&self) -> Result<Vec<Entry<'v>>, EvalError> {
        self.iter().collect()
    }
}

/// Returns a member by name. Linear search is faster than hashing for few members.
#[cfg(feature = "json")]
fn member<'v>(members: &'v JsonMap<String, Json>, name: &str) -> Option<&'v Json> {
    if members.len() > MAX_SCANNED_ENTRIES {
        return members.get(name);
    }
    members.iter().find(|(key, _)| *key == name).map(|(_, json)| json)
}

/// A string for lookups without allocating a key.
struct Name<'a>(&'a str);

impl Hash for Name<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Equivalent<Key<'_>> for Name<'_> {
    fn equivalent(&self, key: &Key<'_>) -> bool {
        matches!(key, Key::String(text) if **text == *self.0)
    }
}

impl<'v> From<MapBuilder<'v>> for Map<'v> {
    fn from(entries: MapBuilder<'v>) -> Self {
        Self::Computed(Arc::new(entries))
    }
}
