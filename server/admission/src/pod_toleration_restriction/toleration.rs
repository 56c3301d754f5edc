//! Tolerations as values, with comparison and merging (upstream's pkg/util/tolerations).

use portico_machinery::{Cursor, Object};

/// Toleration of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Toleration {
    pub(super) key: String,
    pub(super) operator: String,
    pub(super) value: String,
    pub(super) effect: String,
    pub(super) seconds: Option<i64>,
}

impl Toleration {
    pub(super) fn read(at: &Cursor<'_>) -> Self {
        let [key, operator, value, effect] =
            ["key", "operator", "value", "effect"].map(|field| at.field(field).str().to_owned());
        Self { key, operator, value, effect, seconds: at.field("tolerationSeconds").i64() }
    }

    /// Converts the toleration to its form in a pod.
    pub(super) fn to_object(&self) -> Object {
        let mut object = Object::default();
        let Self { key, operator, value, effect, seconds } = self;
        for (field, text) in [("key", key), ("operator", operator), ("value", value), ("effect", effect)] {
            if !text.is_empty() {
                object.set(&[field], text);
            }
        }
        if let Some(seconds) = seconds {
            object.set(&["tolerationSeconds"], seconds);
        }
        object
    }

    /// True if this toleration tolerates everything that the other one tolerates (upstream's `isSuperset`).
    fn covers(&self, other: &Self) -> bool {
        if self == other {
            return true;
        }
        let every_key = self.key.is_empty() && self.operator == "Exists";
        let (same_key, same_effect) = (self.key == other.key, self.effect == other.effect);
        if !(same_key || every_key) || !(same_effect || self.effect.is_empty()) {
            return false;
        }
        let limit = self.seconds.filter(|_| self.effect == "NoExecute");
        if limit.is_some_and(|limit| other.seconds.is_none_or(|seconds| seconds > limit)) {
            return false;
        }
        match self.operator.as_str() {
            "Equal" | "" => other.operator == "Equal" && other.value == self.value,
            "Exists" => true,
            _ => false,
        }
    }
}

/// Merges two lists, without tolerations that another one covers (upstream's `MergeTolerations`).
pub(super) fn merge(first: Vec<Toleration>, second: &[Toleration]) -> Vec<Toleration> {
    let mut all = first;
    all.extend_from_slice(second);
    let mut merged: Vec<Toleration> = Vec::with_capacity(all.len());
    for (index, toleration) in all.iter().enumerate() {
        let is_covered_by = |other: &Toleration| other.covers(toleration);
        // The first of equal tolerations remains.
        let later = |other: &Toleration| other != toleration && is_covered_by(other);
        if !merged.iter().any(is_covered_by) && !all[index + 1..].iter().any(later) {
            merged.push(toleration.clone());
        }
    }
    merged
}

/// True if an item of the whitelist covers each toleration. An empty whitelist allows everything (upstream's
/// `VerifyAgainstWhitelist`).
pub(super) fn are_allowed(tolerations: &[Toleration], whitelist: &[Toleration]) -> bool {
    let allowed = |toleration: &Toleration| whitelist.iter().any(|entry| entry.covers(toleration));
    whitelist.is_empty() || tolerations.iter().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses `key operator value effect seconds`, with `-` for an empty field.
    fn toleration(text: &str) -> Toleration {
        let field = |text: &str| if text == "-" { String::new() } else { text.to_owned() };
        let parts: Vec<&str> = text.split(' ').collect();
        let [key, operator, value, effect, seconds] = parts[..] else { panic!("{text}") };
        let [key, operator, value, effect] = [key, operator, value, effect].map(field);
        Toleration { key, operator, value, effect, seconds: seconds.parse().ok() }
    }

    /// Cases of upstream's `TestIsSuperset`.
    #[test]
    fn one_toleration_covers_another() {
        for (covering, covered, is) in [
            ("foo Equal bar NoExecute -", "foo Equal bar NoExecute -", true),
            ("- Exists - NoExecute 60", "foo Equal bar NoExecute -", false),
            ("- Exists - NoExecute 60", "foo Equal bar NoExecute 60", true),
            ("- Exists - NoExecute 60", "foo Equal bar NoExecute 61", false),
            ("- Exists - - -", "foo Equal bar NoSchedule -", true),
            ("- Exists - - -", "foo Exists - - -", true),
            ("foo Exists - - -", "foo Equal bar NoSchedule -", true),
            ("foo Equal bar - -", "foo Exists - NoSchedule -", false),
            ("foo Equal bar - -", "foo Equal baz NoSchedule -", false),
            ("foo - bar - -", "foo Equal bar NoSchedule -", true),
            ("foo - bar - -", "foo - bar NoSchedule -", false),
            ("foo Gt 1 - -", "foo Equal 1 - -", false),
            ("foo Exists - NoSchedule -", "foo Exists - NoExecute -", false),
        ] {
            assert_eq!(toleration(covering).covers(&toleration(covered)), is, "{covering} / {covered}");
        }
    }

    #[test]
    fn covered_tolerations_are_omitted_from_a_merge() {
        let list = |texts: &[&str]| texts.iter().map(|text| toleration(text)).collect::<Vec<_>>();
        for (first, second, merged) in [
            (&["a Exists - - -"][..], &["a Exists - - -"][..], &["a Exists - - -"][..]),
            (&["a Equal b NoSchedule -"], &["a Exists - - -"], &["a Exists - - -"]),
            (
                &["a Exists - - -"],
                &["a Equal b NoSchedule -", "c Exists - - -"],
                &["a Exists - - -", "c Exists - - -"],
            ),
            (&[], &["a Exists - - -"], &["a Exists - - -"]),
        ] {
            assert_eq!(merge(list(first), &list(second)), list(merged), "{first:?} {second:?}");
        }
        assert!(are_allowed(&list(&["a Equal b - -"]), &[]));
        assert!(are_allowed(&list(&["a Equal b - -"]), &list(&["c Exists - - -", "a Exists - - -"])));
        assert!(!are_allowed(&list(&["a Equal b - -", "d Exists - - -"]), &list(&["a Exists - - -"])));
    }
}
