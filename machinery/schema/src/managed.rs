//! `metadata.managedFields`: decoded into field ownership and times, and encoded again.

use std::collections::BTreeMap;

use portico_machinery::Object;
use serde_json::{Map, Value};

use crate::apply::{FieldOwners, OwnedFields};
use crate::decode::times;
use crate::fields::{FieldSet, FieldsError};

/// Kind of the write by which a manager got its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Server-side apply.
    Apply,
    /// Any other write.
    Update,
}

impl Operation {
    /// Returns the spelling of a `managedFields` entry.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// Identity of the owner of an entry. Ordered as conflicts list managers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Manager {
    pub name: Box<str>,
    pub operation: Operation,
    /// `apiVersion` of the written object. Empty for apply, where the version is not part of the identity.
    pub version: Box<str>,
    /// Subresource, empty for the object itself.
    pub subresource: Box<str>,
}

/// Invalid entry of `managedFields`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManagedFieldsError {
    /// Operation that is neither Apply nor Update.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// Missing `apiVersion`.
    #[error("apiVersion must not be empty")]
    Version,
    /// Missing or unknown `fieldsType`: index of the entry, and the value.
    #[error("invalid fieldsType {} in managed fields entry {}", portico_gostd::strconv::quote(.1), .0)]
    FieldsType(usize, String),
    /// Field set that cannot be decoded.
    #[error("error decoding set: {0}")]
    Fields(#[from] FieldsError),
}

/// Field ownership of an object, with times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManagedFields {
    /// Fields of each manager.
    pub owners: FieldOwners<Manager>,
    /// Time of the last write of each manager, RFC 3339 in whole seconds.
    pub times: BTreeMap<Manager, Box<str>>,
    /// Additional entries, without a time, of managers that already have one. Only written: when reading, the last entry wins.
    pub extra_entries: Vec<(Manager, OwnedFields)>,
}

impl ManagedFields {
    /// Reads the entries of an object. An object without entries has no owners.
    ///
    /// # Errors
    /// [`ManagedFieldsError`].
    pub fn read(object: &Object) -> Result<Self, ManagedFieldsError> {
        let mut managed = Self::default();
        for (i, entry) in entries(object).unwrap_or_default().iter().enumerate() {
            managed.read_entry(i, entry)?;
        }
        Ok(managed)
    }

    fn read_entry(&mut self, i: usize, entry: &Value) -> Result<(), ManagedFieldsError> {
        let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
        let (operation, applied) = match text("operation") {
            "Apply" => (Operation::Apply, true),
            "Update" => (Operation::Update, false),
            _ => return Err(ManagedFieldsError::Operation),
        };
        let version: Box<str> = text("apiVersion").into();
        if version.is_empty() {
            return Err(ManagedFieldsError::Version);
        }
        if text("fieldsType") != "FieldsV1" {
            return Err(ManagedFieldsError::FieldsType(i, text("fieldsType").to_owned()));
        }
        let set = entry.get("fieldsV1").map(FieldSet::from_json).transpose()?.unwrap_or_default();
        let manager = Manager {
            name: text("manager").into(),
            operation,
            version: if applied { Box::default() } else { version.clone() },
            subresource: text("subresource").into(),
        };
        match text("time") {
            "" => self.times.remove(&manager),
            time => {
                let time = times::canonical_seconds(time).unwrap_or_else(|_| time.to_owned());
                self.times.insert(manager.clone(), time.into())
            }
        };
        self.owners.insert(manager, OwnedFields { set, version, applied });
        Ok(())
    }

    /// Writes the entries into an object in upstream's order: by operation, time, manager, version and subresource.
    pub fn write(&self, object: &mut Object) {
        let time = |manager: &Manager| self.times.get(manager).map(AsRef::as_ref).unwrap_or_default();
        let extra_entries = self.extra_entries.iter().map(|(manager, owned)| (manager, owned, ""));
        let mut order: Vec<(&Manager, &OwnedFields, &str)> = self
            .owners
            .iter()
            .map(|(manager, owned)| (manager, owned, time(manager)))
            .chain(extra_entries)
            .collect();
        order.sort_by(|(a, of_a, time_a), (b, of_b, time_b)| {
            (a.operation, time_a, &a.name, &of_a.version, &a.subresource).cmp(&(
                b.operation,
                time_b,
                &b.name,
                &of_b.version,
                &b.subresource,
            ))
        });
        let entries: Vec<Value> =
            order.into_iter().map(|(m, owned, time)| encode_entry(m, owned, time)).collect();
        let metadata = object.map_mut().entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        let Some(metadata) = metadata.as_object_mut() else { return };
        if entries.is_empty() {
            metadata.shift_remove("managedFields");
        } else {
            metadata.insert("managedFields".to_owned(), Value::Array(entries));
        }
    }

    /// Merges the oldest updaters into one bucket per version until at most `limit` updaters remain.
    pub fn cap_updaters(&mut self, limit: usize, bucket_name: &str) {
        let mut updaters: Vec<Manager> = self
            .owners
            .iter()
            .filter(|(_, owned)| !owned.applied)
            .map(|(manager, _)| manager.clone())
            .collect();
        if updaters.len() <= limit {
            return;
        }
        updaters.sort_by(|a, b| self.times.get(a).cmp(&self.times.get(b)).then_with(|| a.cmp(b)));
        let mut count = updaters.len();
        let mut first_of: BTreeMap<Box<str>, Manager> = BTreeMap::new();
        let mut sets_by_bucket: BTreeMap<Manager, Vec<FieldSet>> = BTreeMap::new();
        for manager in updaters {
            if count <= limit {
                break;
            }
            let Some(version) = self.owners.get(&manager).map(|owned| owned.version.clone()) else {
                continue;
            };
            let Some(first) = first_of.get(&version).cloned() else {
                first_of.insert(version, manager);
                continue;
            };
            let bucket = Manager {
                name: bucket_name.into(),
                operation: Operation::Update,
                version: version.clone(),
                subresource: Box::default(),
            };
            let sets = sets_by_bucket.entry(bucket.clone()).or_default();
            sets.extend(self.transfer_ownership(&first, &bucket));
            sets.extend(self.transfer_ownership(&manager, &bucket));
            count -= 1;
        }
        for (bucket, sets) in sets_by_bucket {
            if let Some(owned) = self.owners.get_mut(&bucket) {
                owned.set.extend(FieldSet::union_all(sets));
            }
        }
    }

    /// Transfers the fields and the time of one manager to another. If the target already owns fields, returns the set instead:
    /// the caller merges all sets of a bucket at once, because merging one after the other would copy all previous
    /// ones each time.
    fn transfer_ownership(&mut self, from: &Manager, into: &Manager) -> Option<FieldSet> {
        if from == into {
            return None;
        }
        let owned = self.owners.remove(from)?;
        if let Some(time) = self.times.remove(from) {
            self.times.insert(into.clone(), time);
        }
        if self.owners.contains_key(into) {
            return Some(owned.set);
        }
        self.owners.insert(into.clone(), owned);
        None
    }
}

fn encode_entry(manager: &Manager, owned: &OwnedFields, time: &str) -> Value {
    let mut entry = Map::with_capacity(7);
    let mut put = |field: &str, text: &str| {
        if !text.is_empty() {
            entry.insert(field.to_owned(), Value::from(text));
        }
    };
    put("manager", &manager.name);
    put("operation", manager.operation.as_str());
    put("apiVersion", &owned.version);
    put("time", time);
    put("fieldsType", "FieldsV1");
    put("subresource", &manager.subresource);
    entry.insert("fieldsV1".to_owned(), owned.set.to_json());
    Value::Object(entry)
}

fn entries(object: &Object) -> Option<&[Value]> {
    object.map().get("metadata")?.get("managedFields")?.as_array().map(Vec::as_slice)
}

/// True if a client requests to reset all managers: an empty list, or a list of one empty entry.
#[must_use]
pub fn is_reset(object: &Object) -> bool {
    match entries(object) {
        Some([]) => true,
        Some([only]) => only.as_object().is_some_and(Map::is_empty),
        _ => false,
    }
}

/// True if both objects have the same entries, or the first has none.
#[must_use]
pub fn has_no_new_entries(new: &Object, live: &Object) -> bool {
    entries(new).is_none_or(|new| entries(live) == Some(new))
}

#[cfg(test)]
#[path = "managed_tests.rs"]
mod tests;
