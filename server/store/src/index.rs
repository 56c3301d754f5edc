//! Fields extracted from the JSON of an object when it is written or loaded: splice offset, UID, labels, fields, owners.
//!
//! The registry knows the selectable fields of each kind and passes an [`Indexer`]; this crate is independent of them.

use std::sync::Arc;

use portico_machinery::GroupResource;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Data of an object that readers use without parsing its JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indexed {
    /// Byte offset within the metadata object at which `resourceVersion` is inserted: after `{`, before or after a comma, or
    /// before the closing brace.
    pub splice: u32,
    /// `metadata.uid`, possibly empty.
    pub uid: Box<str>,
    /// Labels, sorted by key.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// Selectable fields except `metadata.name` and `metadata.namespace`, which the key contains. All objects of a
    /// kind share the names.
    pub fields: Box<[(Arc<str>, Box<str>)]>,
    /// UIDs of all owner references.
    pub owners: Box<[Box<str>]>,
}

impl Indexed {
    /// Returns the value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        let index = self.labels.binary_search_by(|(label, _)| (**label).cmp(key)).ok()?;
        Some(&self.labels[index].1)
    }

    /// Iterates over all labels, sorted by key.
    pub fn label_entries(&self) -> impl Iterator<Item = (&str, &str)> {
        self.labels.iter().map(|(key, value)| (&**key, &**value))
    }

    /// Returns the value of a selectable field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| &**field == name).map(|(_, value)| &**value)
    }

    /// Returns the approximate heap size in bytes.
    pub fn weight(&self) -> usize {
        let labels: usize = self.labels.iter().map(|(key, value)| 32 + key.len() + value.len()).sum();
        let fields: usize = self.fields.iter().map(|(_, value)| 32 + value.len()).sum();
        let owners: usize = self.owners.iter().map(|owner| 16 + owner.len()).sum();
        self.uid.len() + labels + fields + owners
    }
}

/// Error of an [`Indexer`]: the stored bytes cannot be read. The object is reported as corrupt, never skipped.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct IndexError(pub String);

/// Extracts an [`Indexed`] from stored bytes when a resource is loaded. Called for every object of a resource, a microsecond or
/// two each, so implementations should skip unused parts and not build a tree.
pub trait Indexer: Send + Sync + 'static {
    /// Indexes the stored JSON of one object.
    ///
    /// # Errors
    /// If the bytes are not an object of this resource.
    fn index(&self, resource: &GroupResource, json: &[u8]) -> Result<Indexed, IndexError>;
}

/// Indexer of the fields that all kinds have in common: everything but the selectable fields.
#[derive(Clone, Copy, Debug, Default)]
pub struct MetadataIndexer;

#[derive(Deserialize)]
struct Partial<'a> {
    #[serde(borrow)]
    metadata: &'a RawValue,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata<'a> {
    #[serde(borrow)]
    uid: Option<&'a RawValue>,
    labels: Option<std::collections::BTreeMap<Box<str>, Box<str>>>,
    owner_references: Option<Vec<Owner>>,
    #[serde(borrow)]
    generate_name: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    namespace: Option<&'a RawValue>,
    #[serde(borrow)]
    self_link: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Owner {
    uid: Box<str>,
}

impl Indexer for MetadataIndexer {
    fn index(&self, _: &GroupResource, json: &[u8]) -> Result<Indexed, IndexError> {
        let wrong = |error: serde_json::Error| IndexError(portico_gostd::json::error_text(&error));
        let partial: Partial<'_> = serde_json::from_slice(json).map_err(wrong)?;
        let metadata: Metadata<'_> = serde_json::from_str(partial.metadata.get()).map_err(wrong)?;
        let uid: Box<str> = match metadata.uid {
            Some(raw) => serde_json::from_str(raw.get()).map_err(wrong)?,
            None => Box::default(),
        };
        let splice = splice_offset(json, &partial, &metadata)?;
        let owners = metadata.owner_references.unwrap_or_default();
        Ok(Indexed {
            splice,
            uid,
            labels: metadata.labels.unwrap_or_default().into_iter().collect(),
            fields: Box::default(),
            owners: owners.into_iter().map(|owner| owner.uid).collect(),
        })
    }
}

/// Returns the offset after the UID or the last field before it: upstream encodes resourceVersion right after the UID.
fn splice_offset(json: &[u8], partial: &Partial<'_>, metadata: &Metadata<'_>) -> Result<u32, IndexError> {
    let end_of = |raw: &RawValue| raw.get().as_ptr() as usize + raw.get().len() - json.as_ptr() as usize;
    let start = partial.metadata.get().as_ptr() as usize - json.as_ptr() as usize + 1;
    let preceding =
        [metadata.name, metadata.generate_name, metadata.namespace, metadata.self_link, metadata.uid];
    let offset = preceding.into_iter().flatten().map(end_of).max().unwrap_or(start);
    u32::try_from(offset).map_err(|_| IndexError("the object is larger than 4 GiB".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(json: &str) -> Result<Indexed, IndexError> {
        MetadataIndexer.index(&GroupResource::new("", "configmaps"), json.as_bytes())
    }

    #[test]
    fn metadata_is_indexed_and_the_splice_offset_is_after_the_uid() {
        let json = concat!(
            r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"b","uid":"u-1","#,
            r#""labels":{"z":"1","a":"2"},"ownerReferences":[{"uid":"o-1","name":"x"}]},"data":{"metadata":"no"}}"#
        );
        let indexed = index(json).unwrap();
        assert_eq!(&*indexed.uid, "u-1");
        assert_eq!(
            (indexed.label("a"), indexed.label("z"), indexed.label("b")),
            (Some("2"), Some("1"), None)
        );
        assert_eq!(&*indexed.owners, ["o-1".into()]);
        assert_eq!(indexed.splice as usize, json.find(r#","labels""#).unwrap());
    }

    #[test]
    fn bytes_that_are_not_an_object_are_rejected() {
        assert_eq!(index(r#"{"metadata":{}}"#).unwrap().splice, 13);
        assert!(index("").is_err());
        assert!(index(r#"{"kind":"A"}"#).is_err());
        assert!(index(r#"{"metadata":{"labels":3}}"#).is_err());
    }
}
