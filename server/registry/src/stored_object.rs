//! Object as stored: bytes that are decoded on first use.

use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use portico_machinery::Object;
use portico_store::Record;
use serde::de::DeserializeOwned;

/// Object at a revision, in its storage version. Cheap to clone; clones share the decoded object.
#[derive(Clone)]
pub struct StoredObject {
    inner: Arc<Contents>,
}

struct Contents {
    record: Arc<Record>,
    object: OnceLock<Object>,
}

impl StoredObject {
    /// Wraps a record, not decoded yet.
    #[must_use]
    pub fn new(record: Arc<Record>) -> Self {
        Self { inner: Arc::new(Contents { record, object: OnceLock::new() }) }
    }

    #[must_use]
    pub fn record(&self) -> &Arc<Record> {
        &self.inner.record
    }

    /// Revision of the last write, or of the deletion; 0 for the result of a dry run.
    #[must_use]
    pub fn revision(&self) -> i64 {
        self.inner.record.revision
    }

    /// JSON with `metadata.resourceVersion`, without a closing newline.
    #[must_use]
    pub fn json(&self) -> Bytes {
        match self.inner.record.revision {
            0 => Bytes::copy_from_slice(self.inner.record.value.json()),
            _ => self.inner.record.to_json().into(),
        }
    }

    /// Decoded object with its resourceVersion; decoded on first use and cached.
    #[must_use]
    pub fn object(&self) -> &Object {
        self.inner.object.get_or_init(|| decode(&self.inner.record))
    }

    /// Caches the object from which the record was encoded, so that it need not be decoded.
    pub(crate) fn cache_decoded(&self, mut object: Object) {
        set_version(&mut object, self.inner.record.revision);
        // Another thread may have decoded the same object first.
        let _ = self.inner.object.set(object);
    }

    /// Deserializes only the fields of `T` from the stored bytes; the result is not cached.
    ///
    /// # Errors
    /// Errors of serde if the JSON does not have the fields of `T`.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(self.inner.record.value.json())
    }

    /// `metadata.name`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.inner.record.key.name()
    }

    /// `metadata.namespace`, empty at cluster scope.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.inner.record.key.namespace()
    }

    /// True if the object is being deleted. Decodes only objects whose bytes contain a deletion timestamp.
    #[must_use]
    pub fn is_deleting(&self) -> bool {
        const MARK: &[u8] = b"\"deletionTimestamp\":";
        memchr::memmem::find(self.inner.record.value.json(), MARK).is_some()
            && self.object().deletion_timestamp().is_some()
    }

    /// `metadata.uid`.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.inner.record.value.uid()
    }
}

/// Object of a record with its resourceVersion. Stored bytes are canonical JSON, and the store refuses unreadable bytes when it
/// loads them, so the result is never an empty object.
pub fn decode(record: &Record) -> Object {
    let mut object = content(record);
    set_version(&mut object, record.revision);
    object
}

/// Object of a record as stored, without its resourceVersion.
pub(crate) fn content(record: &Record) -> Object {
    Object::from_json(record.value.json()).unwrap_or_default()
}

fn set_version(object: &mut Object, revision: i64) {
    if revision > 0 {
        object.set(&["metadata", "resourceVersion"], revision.to_string());
    }
}

impl fmt::Debug for StoredObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.inner.record.key, self.inner.record.revision)
    }
}
