//! Encoding of an object as a store value: normalizes, encodes and indexes without parsing the bytes again.

use portico_machinery::object::{MAX_DEPTH, is_deeper};
use portico_machinery::{Object, Status};
use portico_store::{Indexed, Indexer, Key, MetadataIndexer, Value};

use crate::Result;
use crate::served_resource::{ServedResource, field_values};

/// Store key of an object of this kind.
pub fn key(served_resource: &ServedResource, object: &Object) -> Key {
    let namespace = if served_resource.info.namespaced { object.namespace() } else { "" };
    Key::new(&served_resource.storage, namespace, object.name())
}

/// Encodes a normalized object of the storage version without its resourceVersion. All writes use this function, so no stored
/// object is too deep to be read.
///
/// # Errors
/// Status 400 if the object has more than [`MAX_DEPTH`] levels.
pub fn encode(served_resource: &ServedResource, object: &mut Object) -> Result<Value> {
    object.remove(&["metadata", "resourceVersion"]);
    let json = object.to_json();
    if is_deeper(&json, MAX_DEPTH) {
        return Err(Box::new(too_deep()));
    }
    let indexed = match splice(&json) {
        Some(splice) => index(served_resource, object, splice),
        None => MetadataIndexer.index(&served_resource.resource, &json).map_err(Status::internal)?,
    };
    // Copied: a growing buffer may be twice as large as its content, and allocators keep the capacity when it shrinks.
    Ok(Value::new(json.as_slice(), indexed))
}

fn too_deep() -> Status {
    Status::bad_request(format!(
        "the object exceeds the maximum depth of {MAX_DEPTH} levels, managed fields included"
    ))
}

fn index(served_resource: &ServedResource, object: &Object, splice: u32) -> Indexed {
    let meta = object.metadata();
    let mut labels: Vec<(Box<str>, Box<str>)> =
        meta.field("labels").entries().map(|(k, v)| (k.into(), v.str().into())).collect();
    labels.sort_unstable();
    Indexed {
        splice,
        uid: object.uid().into(),
        labels: labels.into(),
        fields: field_values(served_resource.strategies.fields, &served_resource.fields, object),
        owners: meta.field("ownerReferences").items().map(|o| o.field("uid").str().into()).collect(),
    }
}

/// Offset at which the resourceVersion is inserted, after the UID. In a custom resource, annotations, labels and owners, which
/// contain other names and UIDs, may precede its own UID.
fn splice(json: &[u8]) -> Option<u32> {
    let (mut depth, mut in_metadata, mut position) = (0_u32, false, 0);
    while position < json.len() {
        match json[position] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b'"' => {
                let end = end_of_string(json, position)?;
                let name = (json.get(end) == Some(&b':')).then(|| &json[position + 1..end - 1]);
                match (depth, name) {
                    (1, Some(name)) => in_metadata = name == b"metadata",
                    (2, Some(b"uid")) if in_metadata => {
                        return u32::try_from(end_of_string(json, end + 1)?).ok();
                    }
                    _ => {}
                }
                position = end;
                continue;
            }
            _ => {}
        }
        position += 1;
    }
    None
}

/// Offset after the closing quote of the string that starts at `start`.
fn end_of_string(json: &[u8], start: usize) -> Option<usize> {
    let mut position = start + 1;
    loop {
        position += memchr::memchr2(b'"', b'\\', json.get(position..)?)?;
        if json[position] == b'"' {
            return Some(position + 1);
        }
        position += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_splice_follows_the_uid_even_if_names_contain_similar_text() {
        let json =
            br#"{"kind":"Event","apiVersion":"v1","metadata":{"name":"a\"uid\":\"b","uid":"u","labels":{}}}"#;
        let position = splice(json).unwrap() as usize;
        assert!(json[..position].ends_with(br#""uid":"u""#));
        assert_eq!(splice(b"{}"), None);
    }

    #[test]
    fn the_splice_follows_the_uid_of_the_object_itself() {
        let json = concat!(
            r#"{"apiVersion":"a/v1","data":{"metadata":{"uid":"1"},"uid":"2"},"uid":"3","metadata":{"labels":{"uid":"4"},"#,
            r#""ownerReferences":[{"name":"x\\","uid":"5"}],"uid":"own"}}"#,
        );
        assert_eq!(&json[splice(json.as_bytes()).unwrap() as usize..], "}}");
    }
}
