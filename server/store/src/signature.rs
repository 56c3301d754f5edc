//! A digest of labels and selectable fields: it rules out objects that a selector cannot match without reading them.
//!
//! A Bloom filter of 64 bits: an object that matches is never ruled out, one that does not match seldom passes.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::index::Indexed;

/// The digest of an object, or of what a selector requires of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signature(u64);

/// What a hashed text is, so that a label never stands for a field of the same name.
#[derive(Hash)]
enum Part<'a> {
    Key(&'a str),
    Label(&'a str, &'a str),
    Field(&'a str, &'a str),
}

impl Signature {
    /// The digest of an object.
    pub fn of(indexed: &Indexed) -> Self {
        let labels = indexed.labels.iter();
        let all = labels.fold(Self::default(), |all, (key, value)| all.with_label(key, value));
        indexed.fields.iter().fold(all, |all, (name, value)| all.with_field(name, value))
    }

    /// With a label of this key, whatever its value.
    #[must_use]
    pub fn with_label_key(self, key: &str) -> Self {
        self.with(&Part::Key(key))
    }

    /// With this label.
    #[must_use]
    pub fn with_label(self, key: &str, value: &str) -> Self {
        self.with_label_key(key).with(&Part::Label(key, value))
    }

    /// With this selectable field. An empty value is that of an absent field and adds nothing.
    #[must_use]
    pub fn with_field(self, name: &str, value: &str) -> Self {
        if value.is_empty() { self } else { self.with(&Part::Field(name, value)) }
    }

    /// Whether an object of this digest can have all that is required.
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
    fn an_object_is_never_ruled_out_by_what_it_has() {
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
    fn most_objects_are_ruled_out_by_what_they_lack() {
        let required = Signature::default().with_label("app", "none");
        let passing = (0..1_000)
            .map(|n| object(&[("app", &format!("web-{n}")), ("tier", "front")], &[("a.b", &format!("{n}"))]))
            .filter(|signature| signature.may_match(required))
            .count();
        assert!(passing < 100, "{passing} of 1,000 pass");
    }

    #[test]
    fn a_field_is_no_label_of_the_same_name() {
        let required = Signature::default().with_label("a", "b");
        assert!(!object(&[], &[("a", "b")]).may_match(required));
    }
}
