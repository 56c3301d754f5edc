//! A stored state of an object: its value and the revision that wrote it. Parses nothing when it is read out.

use std::io::{self, Write};

use memchr::memmem;
use portico_machinery::GroupResource;

use crate::index::{IndexError, Indexed, Indexer, MetadataIndexer};
use crate::key::Key;

/// An object's content: canonical JSON at the storage version WITHOUT `metadata.resourceVersion`, and what was read
/// out of it once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    json: Box<[u8]>,
    indexed: Indexed,
    /// How many bytes more than the JSON its stored form takes.
    overhead: u32,
}

impl Value {
    /// Joins bytes with what an [`crate::Indexer`] reads out of them (the writer of the bytes may know it without reading).
    pub fn new(json: impl Into<Box<[u8]>>, indexed: Indexed) -> Self {
        Self { json: json.into(), indexed, overhead: 0 }
    }

    /// Of a record beside the objects: what everybody can read out of it is its metadata.
    ///
    /// # Errors
    /// When the bytes are no object.
    pub fn of_metadata(resource: &GroupResource, json: Vec<u8>) -> Result<Self, IndexError> {
        let indexed = MetadataIndexer.index(resource, &json)?;
        Ok(Self::new(json, indexed))
    }

    /// In the place of bytes that cannot be read.
    pub(crate) fn unreadable(uid: &str) -> Self {
        Self::new([], Indexed { uid: uid.into(), ..Indexed::default() })
    }

    /// Notes how many bytes it takes in the database, format byte included.
    pub(crate) fn stored_as(self, bytes: usize) -> Self {
        let overhead = bytes.saturating_sub(self.json.len() + 1);
        Self { overhead: u32::try_from(overhead).unwrap_or(u32::MAX), ..self }
    }

    /// How many bytes it takes in the database, without the format byte.
    pub(crate) fn stored_bytes(&self) -> usize {
        self.json.len() + self.overhead as usize
    }

    /// Whether the stored bytes cannot be read. Only [`crate::Event::previous`] shows such a value: of the deletion of an
    /// unreadable object, and of what superseded bytes that were damaged later.
    pub fn is_unreadable(&self) -> bool {
        self.json.is_empty()
    }

    /// The stored JSON, without the resource version.
    pub fn json(&self) -> &[u8] {
        &self.json
    }

    /// The object's uid.
    pub fn uid(&self) -> &str {
        &self.indexed.uid
    }

    /// A label's value.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.indexed.label(key)
    }

    /// A selectable field's value.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.indexed.field(name)
    }

    /// The uids of all owner references.
    pub fn owners(&self) -> &[Box<str>] {
        &self.indexed.owners
    }

    /// All that was read out of the bytes.
    pub fn indexed(&self) -> &Indexed {
        &self.indexed
    }

    /// About how many bytes of memory this takes, heap included.
    pub fn weight(&self) -> usize {
        size_of::<Self>() + self.json.len() + self.indexed.weight()
    }
}

/// What the JSON of an object that is being deleted has.
pub(crate) const DELETION: &[u8] = b"\"deletionTimestamp\":";

/// One state of one object. For a deleted object (a tombstone) the value is its last state and the revision that of
/// the deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Which object.
    pub key: Key,
    /// The revision that wrote this state: the object's `metadata.resourceVersion`.
    pub revision: i64,
    /// The content.
    pub value: Value,
}

impl Record {
    /// Writes the object's JSON with `metadata.resourceVersion` in its place. Parses nothing.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        let json = &*self.value.json;
        let at = (self.value.indexed.splice as usize).min(json.len());
        let (head, tail) = json.split_at(at);
        out.write_all(head)?;
        match (head.last(), tail.first()) {
            (Some(b'{'), Some(b'}')) => write!(out, "\"resourceVersion\":\"{}\"", self.revision)?,
            (Some(b'{' | b','), _) => write!(out, "\"resourceVersion\":\"{}\",", self.revision)?,
            _ => write!(out, ",\"resourceVersion\":\"{}\"", self.revision)?,
        }
        out.write_all(tail)
    }

    /// The object's JSON with its `metadata.resourceVersion`.
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.value.json.len() + 44);
        // Writing into a Vec cannot fail.
        let _infallible = self.write_json(&mut out);
        out
    }

    /// Whether it is being deleted, or only says so elsewhere.
    pub(crate) fn may_be_deleting(&self) -> bool {
        memmem::find(&self.value.json, DELETION).is_some()
    }

    /// About how many bytes of memory this takes, key included.
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
    fn the_revision_is_spliced_in_with_the_right_comma() {
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
