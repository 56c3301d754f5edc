//! Conditions in `status.conditions`: upstream's rule for setting one (`apihelpers.SetAPIServiceCondition`).

use jiff::Timestamp;
use portico_machinery::{Object, time};
use serde::{Deserialize, Serialize};

/// One condition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Condition {
    /// The type, such as `Available`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// RFC 3339; set by [`set`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<String>,
    /// One word.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The generation that it was validated at, where its writer sets it; kept when a later validation does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

impl Condition {
    /// A condition without the time of its last transition, which [`set`] adds.
    #[must_use]
    pub fn new(kind: &str, status: &str, reason: &str, message: impl Into<String>) -> Self {
        Self {
            kind: kind.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: message.into(),
            ..Self::default()
        }
    }
}

/// The condition of this type.
#[must_use]
pub fn get(object: &Object, kind: &str) -> Option<Condition> {
    all(object).into_iter().find(|c| c.kind == kind)
}

/// Whether the condition is there with status exactly `True`.
#[must_use]
pub fn is_true(object: &Object, kind: &str) -> bool {
    get(object, kind).is_some_and(|c| c.status == "True")
}

/// Sets a condition: appended when its type is new; else reason and message are always taken over, status and
/// transition time only when the status differs. Whether anything changed.
pub fn set(object: &mut Object, condition: Condition, now: Timestamp) -> bool {
    let before = all(object);
    let mut after = before.clone();
    match after.iter_mut().find(|c| c.kind == condition.kind) {
        Some(current) => {
            if current.status != condition.status {
                current.status = condition.status;
                current.last_transition_time = Some(time::rfc3339(now));
            }
            current.reason = condition.reason;
            current.message = condition.message;
            current.observed_generation = condition.observed_generation.or(current.observed_generation);
        }
        None => {
            after.push(Condition { last_transition_time: Some(time::rfc3339(now)), ..condition });
        }
    }
    if after == before {
        return false;
    }
    object.set(&["status", "conditions"], after);
    true
}

/// Takes a condition away. Whether it was there.
pub fn remove(object: &mut Object, kind: &str) -> bool {
    let before = all(object);
    let after: Vec<&Condition> = before.iter().filter(|c| c.kind != kind).collect();
    let was_there = after.len() < before.len();
    if was_there {
        object.set(&["status", "conditions"], after);
    }
    was_there
}

fn all(object: &Object) -> Vec<Condition> {
    object.decode::<Option<Vec<Condition>>>(&["status", "conditions"]).ok().flatten().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(status: &str, reason: &str) -> Condition {
        Condition::new("Available", status, reason, "")
    }

    #[test]
    fn the_transition_time_moves_with_the_status_alone() {
        let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
        let at = |text| time::parse(text).unwrap();
        let mut object = Object::default();
        assert!(set(&mut object, condition("False", "A"), at(early)));
        assert!(!set(&mut object, condition("False", "A"), at(late)));
        assert!(set(&mut object, condition("False", "B"), at(late)));
        let now = get(&object, "Available").unwrap();
        assert_eq!((now.reason.as_str(), now.last_transition_time.as_deref()), ("B", Some(early)));
        assert!(set(&mut object, condition("True", "B"), at(late)));
        assert_eq!(get(&object, "Available").unwrap().last_transition_time.as_deref(), Some(late));
        assert!(is_true(&object, "Available") && !is_true(&object, "Other"));
        assert!(!remove(&mut object, "Other") && remove(&mut object, "Available"));
        assert_eq!(get(&object, "Available"), None);
    }
}
