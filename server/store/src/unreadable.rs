//! Objects whose stored bytes cannot be read: which one, at which revision, and why.
//!
//! They are kept apart from the readable objects of their resource, so that no reader meets one by accident: the others
//! stay readable, writable and watchable.

use std::sync::Arc;

use crate::key::Key;
use crate::record::{Record, Value};

/// An object that exists and whose stored bytes cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Key, revision and uid; the value has no bytes.
    pub(crate) record: Arc<Record>,
    reason: Arc<str>,
}

impl Unreadable {
    pub(crate) fn new(key: Key, revision: i64, uid: &str, reason: &str) -> Self {
        let record = Arc::new(Record { key, revision, value: Value::unreadable(uid) });
        Self { record, reason: reason.into() }
    }

    /// Which object.
    pub fn key(&self) -> &Key {
        &self.record.key
    }

    /// The revision that wrote the bytes.
    pub fn revision(&self) -> i64 {
        self.record.revision
    }

    /// The object's uid, which is also stored outside of its bytes.
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
}
