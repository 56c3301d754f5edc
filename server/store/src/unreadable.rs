//! Objects whose stored bytes cannot be read: which one, at which revision, and why.
//!
//! They are kept apart from the readable objects of their resource, so that no reader meets one by accident: the others
//! stay readable, writable and watchable.

use std::sync::Arc;

use crate::key::{Key, Resource};
use crate::record::{Record, Value};

/// An object that exists and whose stored bytes cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Key, revision and uid; the value has no bytes.
    pub(crate) record: Arc<Record>,
    has_key: bool,
    /// True if its key can be read, but the bytes that are damaged may be those of its namespace.
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

    /// Of an object that cannot be opened: another key may.
    pub(crate) fn sealed(key: Key, revision: i64, reason: &str) -> Self {
        Self { is_sealed: true, ..Self::new(key, revision, reason) }
    }

    /// Of an object whose key cannot be read; `shown` is what is left of the key.
    pub(crate) fn without_key(shown: Key, revision: i64, reason: &str) -> Self {
        Self { has_key: false, ..Self::new(shown, revision, reason) }
    }

    /// Marks the namespace as doubtful: the object may belong to any.
    pub(crate) fn of_doubtful_namespace(self) -> Self {
        Self { has_doubtful_namespace: true, ..self }
    }

    pub(crate) fn with_uid(self, uid: &str) -> Self {
        let (key, revision) = (self.key().clone(), self.revision());
        Self { record: Arc::new(Record { key, revision, value: Value::unreadable(uid) }), ..self }
    }

    /// Which object. Without [`Unreadable::has_key`] what is left of its key, for people: no object is found by it.
    pub fn key(&self) -> &Key {
        &self.record.key
    }

    /// Whether its key can be read. Without one it can only be removed by `portico doctor`.
    pub fn has_key(&self) -> bool {
        self.has_key
    }

    /// True if it may be an object of this namespace.
    pub fn may_be_in(&self, namespace: &str) -> bool {
        !self.has_key || self.has_doubtful_namespace || self.key().namespace() == namespace
    }

    /// Whether it is sealed, and what it is sealed with not known: it need not be damaged.
    pub fn is_sealed(&self) -> bool {
        self.is_sealed
    }

    /// The revision that wrote the bytes.
    pub fn revision(&self) -> i64 {
        self.record.revision
    }

    /// The object's uid, which is also stored outside of its bytes; empty when it is not known.
    pub fn uid(&self) -> &str {
        self.record.value.uid()
    }

    /// What is wrong with the bytes.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// What is wrong with a store that serves all the same.
#[derive(Clone, Debug, Default)]
pub struct Condition {
    /// Why writes other than deletions are refused: the disk, or the database's size limit, is full.
    pub full: Option<String>,
    /// Objects that cannot be read, of the resources that are loaded; in key order.
    pub unreadable: Vec<Unreadable>,
    /// Resources whose names cannot be read, as far as they can be shown: none of their objects is served.
    pub unreadable_resources: Vec<String>,
    /// Resources whose lists may lack objects.
    pub incomplete: Incomplete,
}

/// Resources of which states are missing in the database or in its index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Incomplete {
    /// No resource, or the engine does not compare them.
    #[default]
    None,
    /// The comparison is due.
    Unknown,
    /// The states of these resources.
    Resources(Vec<Resource>),
    /// Any resource: it is not known to which one the states belong.
    Any,
}

impl Incomplete {
    /// True if states of a resource are known to be missing, or may be.
    pub(crate) fn may_lack(&self, resource: &Resource) -> bool {
        match self {
            Self::None | Self::Unknown => false,
            Self::Resources(resources) => resources.contains(resource),
            Self::Any => true,
        }
    }
}
