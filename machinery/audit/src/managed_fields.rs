//! Removal of managed fields (`omitManagedFields`) from an object, the items of a list, or the rows of a Table.
//!
//! Upstream: `copyWithoutManagedFields`. All other bytes stay unchanged.

use indexmap::IndexMap;
use serde_json::value::{RawValue, to_raw_value};

type Members = IndexMap<String, Box<RawValue>>;

/// Returns the document without managed fields; `None` if it has none or is not an object.
#[must_use]
pub fn without_managed_fields(json: &[u8]) -> Option<Vec<u8>> {
    memchr::memmem::find(json, b"\"managedFields\"")?;
    let mut members: Members = serde_json::from_slice(json).ok()?;
    let mut changed = strip_metadata(&mut members);
    let is_table = members.get("kind").is_some_and(|kind| kind.get() == "\"Table\"");
    if is_table {
        changed |= strip_elements(&mut members, "rows", |row| strip_member(row, "object"));
    } else {
        changed |= strip_elements(&mut members, "items", strip_metadata);
    }
    if changed { serde_json::to_vec(&members).ok() } else { None }
}

fn strip_metadata(members: &mut Members) -> bool {
    strip(members, "metadata", |metadata| metadata.shift_remove("managedFields").is_some())
}

fn strip_member(members: &mut Members, name: &str) -> bool {
    strip(members, name, strip_metadata)
}

/// Changes a member that is an object. Returns true if `change` changed the object.
fn strip(members: &mut Members, name: &str, change: impl Fn(&mut Members) -> bool) -> bool {
    let Some(member) = members.get_mut(name) else { return false };
    let Ok(mut inner) = serde_json::from_str::<Members>(member.get()) else { return false };
    if !change(&mut inner) {
        return false;
    }
    replace(member, &inner)
}

fn strip_elements(members: &mut Members, name: &str, change: impl Fn(&mut Members) -> bool) -> bool {
    let Some(member) = members.get_mut(name) else { return false };
    let Ok(mut elements) = serde_json::from_str::<Vec<Members>>(member.get()) else { return false };
    let changed = elements.iter_mut().fold(false, |changed, element| change(element) | changed);
    changed && replace(member, &elements)
}

fn replace(member: &mut Box<RawValue>, value: &impl serde::Serialize) -> bool {
    to_raw_value(value).map(|raw| *member = raw).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_managed_fields_are_removed() {
        for (json, expected) in [
            (
                r#"{"kind":"Pod","metadata":{"name":"a","managedFields":[{"manager":"m"}],"uid":"1"},"spec":{"x":1.0}}"#,
                Some(r#"{"kind":"Pod","metadata":{"name":"a","uid":"1"},"spec":{"x":1.0}}"#),
            ),
            (
                r#"{"kind":"PodList","metadata":{},"items":[{"metadata":{"managedFields":[]}},{"spec":{"b":1,"a":2}}]}"#,
                Some(r#"{"kind":"PodList","metadata":{},"items":[{"metadata":{}},{"spec":{"b":1,"a":2}}]}"#),
            ),
            (
                r#"{"kind":"Table","rows":[{"cells":["managedFields"],"object":{"metadata":{"managedFields":[1]}}}]}"#,
                Some(r#"{"kind":"Table","rows":[{"cells":["managedFields"],"object":{"metadata":{}}}]}"#),
            ),
            (r#"{"kind":"Pod","spec":{"managedFields":[]}}"#, None),
            (r#"{"metadata":{"name":"a"}}"#, None),
            (r#"["managedFields"]"#, None),
            (r#"{"metadata":{"managedFields""#, None),
        ] {
            let stripped =
                without_managed_fields(json.as_bytes()).map(|json| String::from_utf8(json).unwrap());
            assert_eq!(stripped.as_deref(), expected, "{json}");
        }
    }
}
