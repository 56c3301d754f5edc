//! Whether two states of an object hold the same: an update that changes nothing is not written.

use portico_machinery::Object;
use serde_json::Value;

/// Whether both hold the same content: everything but `metadata.resourceVersion` and the times of
/// `metadata.managedFields`. Key order does not matter. Both must be normalised.
#[must_use]
pub fn same_content(new: &Object, old: &Object) -> bool {
    same_but(new.map(), old.map(), &["metadata"])
        && match (new.map().get("metadata"), old.map().get("metadata")) {
            (Some(Value::Object(a)), Some(Value::Object(b))) => {
                same_but(a, b, &["resourceVersion", "managedFields"])
                    && same_managed_fields(a.get("managedFields"), b.get("managedFields"))
            }
            (a, b) => a == b,
        }
}

type Map = serde_json::Map<String, Value>;

fn same_but(a: &Map, b: &Map, except: &[&str]) -> bool {
    let count = |m: &Map| m.len() - except.iter().filter(|k| m.contains_key(**k)).count();
    count(a) == count(b)
        && a.iter().filter(|(k, _)| !except.contains(&k.as_str())).all(|(k, v)| b.get(k) == Some(v))
}

fn same_managed_fields(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a.and_then(Value::as_array), b.and_then(Value::as_array)) {
        (Some(a), Some(b)) => {
            a.len() == b.len()
                && a.iter().zip(b).all(|pair| match pair {
                    (Value::Object(a), Value::Object(b)) => same_but(a, b, &["time"]),
                    (a, b) => a == b,
                })
        }
        _ => a == b,
    }
}
