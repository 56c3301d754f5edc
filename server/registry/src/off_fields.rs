//! Fields of disabled features: a write cannot set them, and an object that already has them keeps them.
//!
//! The table of resources lists the fields; this module does not depend on kinds or features.

use std::sync::Arc;

use portico_machinery::Object;
use portico_machinery::object::Cursor;

/// Path of a field through names and lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OffField(Vec<Part>);

/// Element of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Name(String),
    /// All elements of the list at the preceding names.
    Each,
}

/// Fields of one feature: an object that has one of them may have all.
pub(crate) type OffFeature = Vec<OffField>;

/// All disabled features of a resource.
pub(crate) type OffFields = Arc<[OffFeature]>;

impl OffField {
    /// Parses a path such as `spec.containers[].env`.
    pub(crate) fn parse(text: &str) -> Self {
        let mut parts = Vec::new();
        for part in text.split('.') {
            match part.strip_suffix("[]") {
                Some(list) => parts.extend([Part::Name(list.to_owned()), Part::Each]),
                None => parts.push(Part::Name(part.to_owned())),
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

fn is_used(at: &Cursor<'_>, path: &[Part]) -> bool {
    match path.split_first() {
        None => at.is_present(),
        Some((Part::Name(name), rest)) => is_used(&at.field(name), rest),
        Some((Part::Each, rest)) => at.items().any(|item| is_used(&item, rest)),
    }
}

fn remove(object: &mut Object, path: &[Part]) {
    let at = path.iter().position(|part| *part == Part::Each).unwrap_or(path.len());
    let names: Vec<&str> = path[..at]
        .iter()
        .filter_map(|part| if let Part::Name(name) = part { Some(&**name) } else { None })
        .collect();
    match path.get(at + 1..) {
        Some(rest) if !rest.is_empty() => object.edit_each(&names, |item| remove(item, rest)),
        _ => {
            object.remove(&names);
        }
    }
}

/// Removes the fields of disabled features, unless the old object has one of the feature.
pub(crate) fn drop(off: &[OffFeature], new: &mut Object, old: Option<&Object>) {
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
    fn what_is_off_goes_wherever_it_stands_unless_it_was_there_before() {
        let object = |json: &str| Object::from_json(json.as_bytes()).unwrap();
        let off = ["spec.gone", "spec.items[].inner[].gone"].map(|field| vec![OffField::parse(field)]);
        let full = r#"{"spec":{"gone":1,"items":[{"inner":[{"gone":2,"kept":3}]},{"x":4}]}}"#;
        let bare = r#"{"spec":{"items":[{"inner":[{"kept":3}]},{"x":4}]}}"#;
        let after = |old: Option<&str>| {
            let mut new = object(full);
            drop(&off, &mut new, old.map(object).as_ref());
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
