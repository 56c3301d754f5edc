//! Fields of disabled features: a write cannot set them, and an object that already has them keeps them.
//!
//! The table of resources lists the fields; this module does not depend on kinds or features.

use std::sync::Arc;

use portico_machinery::Object;
use portico_machinery::object::Cursor;

/// Path of a field through names and lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DisabledField(Vec<PathPart>);

/// Element of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PathPart {
    Name(String),
    /// All elements of the list at the preceding names.
    EveryElement,
}

/// Fields of one feature: an object that has one of them may have all.
pub(crate) type DisabledFeature = Vec<DisabledField>;

/// All disabled features of a resource.
pub(crate) type DisabledFields = Arc<[DisabledFeature]>;

impl DisabledField {
    /// Parses a path such as `spec.containers[].env`.
    pub(crate) fn parse(text: &str) -> Self {
        let mut parts = Vec::new();
        for part in text.split('.') {
            match part.strip_suffix("[]") {
                Some(list) => parts.extend([PathPart::Name(list.to_owned()), PathPart::EveryElement]),
                None => parts.push(PathPart::Name(part.to_owned())),
            }
        }
        Self(parts)
    }

    /// True if an object has a value at this path.
    fn is_used(&self, object: &Object) -> bool {
        is_used(&object.cursor(), &self.0)
    }

    fn remove(&self, object: &mut Object) {
        remove(object, &self.0);
    }
}

fn is_used(cursor: &Cursor<'_>, path: &[PathPart]) -> bool {
    match path.split_first() {
        None => cursor.is_present(),
        Some((PathPart::Name(name), rest)) => is_used(&cursor.field(name), rest),
        Some((PathPart::EveryElement, rest)) => cursor.items().any(|item| is_used(&item, rest)),
    }
}

fn remove(object: &mut Object, path: &[PathPart]) {
    let index = path.iter().position(|part| *part == PathPart::EveryElement).unwrap_or(path.len());
    let names: Vec<&str> = path[..index]
        .iter()
        .filter_map(|part| if let PathPart::Name(name) = part { Some(&**name) } else { None })
        .collect();
    match path.get(index + 1..) {
        Some(rest) if !rest.is_empty() => object.edit_each(&names, |item| remove(item, rest)),
        _ => {
            object.remove(&names);
        }
    }
}

/// Removes the fields of disabled features, unless the old object has one of the feature.
pub(crate) fn drop_disabled(off: &[DisabledFeature], new: &mut Object, old: Option<&Object>) {
    for feature in off {
        if !old.is_some_and(|old| feature.iter().any(|field| field.is_used(old))) {
            feature.iter().for_each(|field| field.remove(new));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disabled_fields_are_removed_at_every_path_unless_the_old_object_has_them() {
        let object = |json: &str| Object::from_json(json.as_bytes()).unwrap();
        let off = ["spec.gone", "spec.items[].inner[].gone"].map(|field| vec![DisabledField::parse(field)]);
        let full = r#"{"spec":{"gone":1,"items":[{"inner":[{"gone":2,"kept":3}]},{"x":4}]}}"#;
        let bare = r#"{"spec":{"items":[{"inner":[{"kept":3}]},{"x":4}]}}"#;
        let after = |old: Option<&str>| {
            let mut new = object(full);
            drop_disabled(&off, &mut new, old.map(object).as_ref());
            new
        };
        assert_eq!(after(None), object(bare));
        assert_eq!(after(Some(bare)), object(bare));
        assert_eq!(after(Some(full)), object(full));
        let one = r#"{"spec":{"gone":0}}"#;
        assert_eq!(after(Some(one)).at(&["spec", "gone"]).i64(), Some(1));
        assert!(after(Some(one)).at(&["spec", "items"]).same_as(&object(bare).at(&["spec", "items"])));
    }
}
