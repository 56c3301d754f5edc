//! Objects whose stored bytes cannot be read: key, revision and reason.
//!
//! They are stored apart from the readable objects of their resource, so that readers do not encounter them by accident. The
//! readable objects stay writable and watchable.

use std::sync::Arc;

use crate::key::{Key, Resource};
use crate::record::{Record, Value};

/// Existing object whose stored bytes cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Key, revision and UID; the value has no bytes.
    pub(crate) record: Arc<Record>,
    has_key: bool,
    /// True if the key can be read but the damaged bytes may include its namespace.
    has_doubtful_namespace: bool,
    is_sealed: bool,
    reason: Arc<str>,
}

impl Unreadable {
    pub(crate) fn new(key: Key, revision: i64, reason: &str) -> Self {
        let record = Arc::new(Record { key, revision, value: Value::unreadable("") });
        let reason = reason.into();
        Self { record, has_key: true, has_doubtful_namespace: false, is_sealed: false, reason }
    }

    /// Creates an object whose value cannot be opened with the current keys; another key may open it.
    pub(crate) fn sealed(key: Key, revision: i64, reason: &str) -> Self {
        Self { is_sealed: true, ..Self::new(key, revision, reason) }
    }

    /// Creates an object whose key cannot be read; `remains` is the displayable rest of the key.
    pub(crate) fn without_key(remains: Key, revision: i64, reason: &str) -> Self {
        Self { has_key: false, ..Self::new(remains, revision, reason) }
    }

    /// Marks the namespace as doubtful: the object may belong to any namespace.
    pub(crate) fn with_doubtful_namespace(self) -> Self {
        Self { has_doubtful_namespace: true, ..self }
    }

    pub(crate) fn with_uid(self, uid: &str) -> Self {
        let (key, revision) = (self.key().clone(), self.revision());
        Self { record: Arc::new(Record { key, revision, value: Value::unreadable(uid) }), ..self }
    }

    /// Returns the key of the object. Without [`Unreadable::has_key`], the remains of the key for display: lookups
    /// do not find it.
    pub fn key(&self) -> &Key {
        &self.record.key
    }

    /// True if the key can be read. An object without a key can only be removed by `portico doctor`.
    pub fn has_key(&self) -> bool {
        self.has_key
    }

    /// True if this may be an object of the namespace.
    pub fn may_be_in(&self, namespace: &str) -> bool {
        !self.has_key || self.has_doubtful_namespace || self.key().namespace() == namespace
    }

    /// True if the object is sealed with an unavailable key: it need not be damaged.
    pub fn is_sealed(&self) -> bool {
        self.is_sealed
    }

    /// Returns the revision that wrote the bytes.
    pub fn revision(&self) -> i64 {
        self.record.revision
    }

    /// Returns the UID of the object, which is also stored outside its bytes; empty if not known.
    pub fn uid(&self) -> &str {
        self.record.value.uid()
    }

    /// Returns the reason why the bytes cannot be read.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// Problems of a store that serves nevertheless.
#[derive(Clone, Debug, Default)]
pub struct StoreCondition {
    /// Reason why writes other than deletions are rejected: the disk is full, or the size limit of the database is reached.
    pub full: Option<String>,
    /// Unreadable objects of the cached resources, in key order.
    pub unreadable: Vec<Unreadable>,
    /// Displayable forms of resource names that cannot be read. Their objects are not served.
    pub unreadable_resources: Vec<String>,
    /// Resources whose lists may lack objects.
    pub missing_states: MissingStates,
}

/// Resources with states that are missing in the database or its index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MissingStates {
    /// No resource, or the engine does not detect missing states.
    #[default]
    None,
    /// Not known yet: the comparison has not run.
    Unknown,
    /// These resources.
    Resources(Vec<Resource>),
    /// Any resource: the resource of the missing states is not known.
    Any,
}

impl MissingStates {
    /// True if states of a resource are missing or may be missing.
    pub(crate) fn may_lack_objects_of(&self, resource: &Resource) -> bool {
        match self {
            Self::None | Self::Unknown => false,
            Self::Resources(resources) => resources.contains(resource),
            Self::Any => true,
        }
    }
}
