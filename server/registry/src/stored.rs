//! An object as the store holds it: bytes first, decoded only when somebody looks inside.

use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use portico_machinery::Object;
use portico_store::Record;
use serde::de::DeserializeOwned;

/// An object at a revision, in its storage version; cheap to clone, and clones share what was decoded.
#[derive(Clone)]
pub struct Stored {
    inner: Arc<Contents>,
}

struct Contents {
    record: Arc<Record>,
    object: OnceLock<Object>,
}

impl Stored {
    /// A record that nobody has looked into yet.
    #[must_use]
    pub fn new(record: Arc<Record>) -> Self {
        Self { inner: Arc::new(Contents { record, object: OnceLock::new() }) }
    }

    /// The record.
    #[must_use]
    pub fn record(&self) -> &Arc<Record> {
        &self.inner.record
    }

    /// The revision of its last write; for a deletion that of the deletion; 0 for what a dry run would have written.
    #[must_use]
    pub fn revision(&self) -> i64 {
        self.inner.record.revision
    }

    /// Its JSON with `metadata.resourceVersion`, without a closing newline.
    #[must_use]
    pub fn json(&self) -> Bytes {
        match self.inner.record.revision {
            0 => Bytes::copy_from_slice(self.inner.record.value.json()),
            _ => self.inner.record.to_json().into(),
        }
    }

    /// The decoded object, with its resourceVersion; decoded on first use and kept.
    #[must_use]
    pub fn object(&self) -> &Object {
        self.inner.object.get_or_init(|| decode(&self.inner.record))
    }

    /// Keeps what the record was encoded from, so that nobody decodes it.
    pub(crate) fn know(&self, mut object: Object) {
        set_version(&mut object, self.inner.record.revision);
        // Somebody who was faster has decoded the same.
        let _ = self.inner.object.set(object);
    }

    /// Reads what is asked for off the bytes; nothing else is decoded, and nothing is kept.
    ///
    /// # Errors
    /// What serde says when the JSON has another shape.
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

    /// Whether it is being deleted; what is not is hardly ever decoded to find out.
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

/// The object in a record, with its resourceVersion. Stored bytes are our own canonical JSON; bytes that cannot be read
/// are refused when the store loads them, so an empty object is never seen.
pub fn decode(record: &Record) -> Object {
    let mut object = content(record);
    set_version(&mut object, record.revision);
    object
}

/// The object in a record as it was stored: without its resourceVersion.
pub(crate) fn content(record: &Record) -> Object {
    Object::from_json(record.value.json()).unwrap_or_default()
}

fn set_version(object: &mut Object, revision: i64) {
    if revision > 0 {
        object.set(&["metadata", "resourceVersion"], revision.to_string());
    }
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.inner.record.key, self.inner.record.revision)
    }
}
