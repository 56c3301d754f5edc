//! Digests of labels and selectable fields, which exclude objects that a selector cannot match without reading them.
//!
//! A digest is a Bloom filter of 64 bits: a matching object is never excluded, and most other objects are.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::index::Indexed;

/// Digest of an object, or of the labels and fields that a selector requires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signature(u64);

/// Kind of a hashed text, so that a label and a field of the same name differ.
#[derive(Hash)]
enum Part<'a> {
    Key(&'a str),
    Label(&'a str, &'a str),
    Field(&'a str, &'a str),
}

impl Signature {
    /// Returns the digest of an object.
    pub fn of(indexed: &Indexed) -> Self {
        let labels = indexed.labels.iter();
        let all = labels.fold(Self::default(), |all, (key, value)| all.with_label(key, value));
        indexed.fields.iter().fold(all, |all, (name, value)| all.with_field(name, value))
    }

    /// Adds a label key with any value.
    #[must_use]
    pub fn with_label_key(self, key: &str) -> Self {
        self.with(&Part::Key(key))
    }

    /// Adds a label.
    #[must_use]
    pub fn with_label(self, key: &str, value: &str) -> Self {
        self.with_label_key(key).with(&Part::Label(key, value))
    }

    /// Adds a selectable field. An empty value equals an absent field and adds nothing.
    #[must_use]
    pub fn with_field(self, name: &str, value: &str) -> Self {
        if value.is_empty() { self } else { self.with(&Part::Field(name, value)) }
    }

    /// True if an object with this digest can have everything that is required.
    #[must_use]
    pub fn may_match(self, required: Self) -> bool {
        self.0 & required.0 == required.0
    }

    fn with(self, part: &Part<'_>) -> Self {
        let mut hasher = DefaultHasher::new();
        part.hash(&mut hasher);
        let hash = hasher.finish();
        Self(self.0 | 1 << (hash & 63) | 1 << (hash >> 6 & 63))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(labels: &[(&str, &str)], fields: &[(&str, &str)]) -> Signature {
        Signature::of(&Indexed {
            labels: labels.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect(),
            fields: fields.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            ..Indexed::default()
        })
    }

    #[test]
    fn an_object_is_never_excluded_by_its_own_labels_and_fields() {
        let it = object(&[("app", "web"), ("empty", "")], &[("spec.nodeName", "n1"), ("status.phase", "")]);
        let none = Signature::default();
        for required in [
            none,
            none.with_label_key("app"),
            none.with_label("app", "web").with_label("empty", ""),
            none.with_field("spec.nodeName", "n1").with_label_key("empty"),
            none.with_field("status.phase", "").with_field("absent", ""),
        ] {
            assert!(it.may_match(required), "{required:?}");
        }
    }

    #[test]
    fn most_objects_without_the_required_labels_are_excluded() {
        let required = Signature::default().with_label("app", "none");
        let passing = (0..1_000)
            .map(|n| object(&[("app", &format!("web-{n}")), ("tier", "front")], &[("a.b", &format!("{n}"))]))
            .filter(|signature| signature.may_match(required))
            .count();
        assert!(passing < 100, "{passing} of 1,000 pass");
    }

    #[test]
    fn a_field_and_a_label_of_the_same_name_differ() {
        let required = Signature::default().with_label("a", "b");
        assert!(!object(&[], &[("a", "b")]).may_match(required));
    }
}
