//! A draft becomes a value: normalised, encoded once, indexed without parsing the bytes again.

use portico_machinery::{Object, Status};
use portico_store::{Indexed, Indexer, Key, MetadataIndexer, Value};

use crate::Result;
use crate::served::{Served, field_values};

/// The key of an object of this kind.
pub(crate) fn key(served: &Served, object: &Object) -> Key {
    let namespace = if served.info.namespaced { object.namespace() } else { "" };
    Key::new(&served.storage, namespace, object.name())
}

/// Encodes an object of the storage version. It must be normalised; its resourceVersion is left out.
pub(crate) fn encode(served: &Served, object: &mut Object) -> Result<Value> {
    object.remove(&["metadata", "resourceVersion"]);
    let json = object.to_json();
    let indexed = match splice(&json) {
        Some(splice) => index(served, object, splice),
        None => MetadataIndexer.index(&served.resource, &json).map_err(Status::internal)?,
    };
    // Copied: a buffer that grew is up to twice as large as what is in it, and allocators leave it so when it shrinks.
    Ok(Value::new(json.as_slice(), indexed))
}

fn index(served: &Served, object: &Object, splice: u32) -> Indexed {
    let meta = object.metadata();
    let mut labels: Vec<(Box<str>, Box<str>)> =
        meta.field("labels").entries().map(|(k, v)| (k.into(), v.str().into())).collect();
    labels.sort_unstable();
    Indexed {
        splice,
        uid: object.uid().into(),
        labels: labels.into(),
        fields: field_values(served.strategy, &served.fields, object),
        owners: meta.field("ownerReferences").items().map(|o| o.field("uid").str().into()).collect(),
    }
}

/// Where the resourceVersion belongs: behind the uid. In normalised JSON `kind`, `apiVersion` and `metadata` come first,
/// and in `metadata` only names come before the uid; no string can hold these bytes, as its quotes are escaped.
fn splice(json: &[u8]) -> Option<u32> {
    const UID: &[u8] = b"\"uid\":\"";
    let start = json.windows(UID.len()).take(2_048).position(|w| w == UID)? + UID.len();
    let end = start + json[start..].iter().position(|b| *b == b'"')? + 1;
    u32::try_from(end).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_splice_is_behind_the_uid_even_when_names_try_to_look_like_one() {
        let json =
            br#"{"kind":"Event","apiVersion":"v1","metadata":{"name":"a\"uid\":\"b","uid":"u","labels":{}}}"#;
        let at = splice(json).unwrap() as usize;
        assert!(json[..at].ends_with(br#""uid":"u""#));
        assert_eq!(splice(b"{}"), None);
    }
}
