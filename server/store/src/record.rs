//! Stored states of objects: value and revision. Writing a state out involves no parsing.

use std::io::{self, Write};

use memchr::memmem;
use portico_machinery::GroupResource;

use crate::index::{IndexError, Indexed, Indexer, MetadataIndexer};
use crate::key::Key;

/// Content of an object: canonical JSON at the storage version WITHOUT `metadata.resourceVersion`, and the
/// fields indexed from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    json: Box<[u8]>,
    indexed: Indexed,
    /// Number of bytes by which the stored form exceeds the JSON.
    overhead: u32,
}

impl Value {
    /// Combines bytes with the fields that an [`crate::Indexer`] reads from them (the caller may know them without indexing).
    pub fn new(json: impl Into<Box<[u8]>>, indexed: Indexed) -> Self {
        Self { json: json.into(), indexed, overhead: 0 }
    }

    /// Creates the value of an internal record, with only metadata indexed.
    ///
    /// # Errors
    /// If the bytes are not an object.
    pub fn from_metadata(resource: &GroupResource, json: Vec<u8>) -> Result<Self, IndexError> {
        let indexed = MetadataIndexer.index(resource, &json)?;
        Ok(Self::new(json, indexed))
    }

    /// Creates the placeholder of a value whose bytes cannot be read.
    pub(crate) fn unreadable(uid: &str) -> Self {
        Self::new([], Indexed { uid: uid.into(), ..Indexed::default() })
    }

    /// Records the size of the stored form in bytes, including the format byte.
    pub(crate) fn with_stored_size(self, bytes: usize) -> Self {
        let overhead = bytes.saturating_sub(self.json.len() + 1);
        Self { overhead: u32::try_from(overhead).unwrap_or(u32::MAX), ..self }
    }

    /// Returns the size of the stored form in bytes, without the format byte.
    pub(crate) fn stored_bytes(&self) -> usize {
        self.json.len() + self.overhead as usize
    }

    /// True if the stored bytes cannot be read. Only [`crate::Event::previous`] contains such a value: for the deletion of an
    /// unreadable object, and for a superseded state whose bytes were damaged later.
    pub fn is_unreadable(&self) -> bool {
        self.json.is_empty()
    }

    /// Returns the stored JSON, without the resource version.
    pub fn json(&self) -> &[u8] {
        &self.json
    }

    /// Returns the UID of the object.
    pub fn uid(&self) -> &str {
        &self.indexed.uid
    }

    /// Returns the value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.indexed.label(key)
    }

    /// Returns the value of a selectable field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.indexed.field(name)
    }

    /// Returns the UIDs of all owner references.
    pub fn owners(&self) -> &[Box<str>] {
        &self.indexed.owners
    }

    /// Returns all indexed fields.
    pub fn indexed(&self) -> &Indexed {
        &self.indexed
    }

    /// Returns the approximate size in memory in bytes, including the heap.
    pub fn weight(&self) -> usize {
        size_of::<Self>() + self.json.len() + self.indexed.weight()
    }
}

/// Text in the JSON of an object that is being deleted.
pub(crate) const DELETION_FIELD: &[u8] = b"\"deletionTimestamp\":";

/// One state of one object. For a deleted object (a tombstone), the value is its last state and the revision is
/// that of the deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Key of the object.
    pub key: Key,
    /// Revision that wrote this state: the `metadata.resourceVersion` of the object.
    pub revision: i64,
    /// Content of the state.
    pub value: Value,
}

impl Record {
    /// Writes the JSON of the object with `metadata.resourceVersion` inserted, without parsing it.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        let json = &*self.value.json;
        let offset = (self.value.indexed.splice as usize).min(json.len());
        let (head, tail) = json.split_at(offset);
        out.write_all(head)?;
        match (head.last(), tail.first()) {
            (Some(b'{'), Some(b'}')) => write!(out, "\"resourceVersion\":\"{}\"", self.revision)?,
            (Some(b'{' | b','), _) => write!(out, "\"resourceVersion\":\"{}\",", self.revision)?,
            _ => write!(out, ",\"resourceVersion\":\"{}\"", self.revision)?,
        }
        out.write_all(tail)
    }

    /// Returns the JSON of the object with its `metadata.resourceVersion`.
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.value.json.len() + 44);
        // Writing into a Vec cannot fail.
        let _infallible = self.write_json(&mut out);
        out
    }

    /// True if the object is being deleted, or contains the same text in another field.
    pub(crate) fn may_be_terminating(&self) -> bool {
        memmem::find(&self.value.json, DELETION_FIELD).is_some()
    }

    /// Returns the approximate size in memory in bytes, including the key.
    pub fn weight(&self) -> usize {
        size_of::<Key>() + size_of::<i64>() + self.key.path().len() + 32 + self.value.weight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Resource;

    fn spliced(json: &str, splice: usize) -> String {
        let indexed = Indexed { splice: u32::try_from(splice).unwrap(), ..Indexed::default() };
        let record = Record {
            key: Key::new(&Resource::new("", "nodes"), "", "n"),
            revision: 42,
            value: Value::new(json.as_bytes(), indexed),
        };
        String::from_utf8(record.to_json()).unwrap()
    }

    #[test]
    fn the_revision_is_inserted_with_the_right_comma() {
        let with = r#"{"metadata":{"name":"n","uid":"u","labels":{}},"spec":{}}"#;
        let after_uid = with.find(",\"labels").unwrap();
        let expected = r#"{"metadata":{"name":"n","uid":"u","resourceVersion":"42","labels":{}},"spec":{}}"#;
        assert_eq!(spliced(with, after_uid), expected);
        assert_eq!(spliced(with, after_uid + 1), expected);
        assert_eq!(spliced(r#"{"metadata":{"a":1}}"#, 13), r#"{"metadata":{"resourceVersion":"42","a":1}}"#);
        assert_eq!(spliced(r#"{"metadata":{}}"#, 13), r#"{"metadata":{"resourceVersion":"42"}}"#);
        assert_eq!(spliced(r#"{"metadata":{"a":1}}"#, 18), r#"{"metadata":{"a":1,"resourceVersion":"42"}}"#);
    }
}
