//! Conditions in `status.conditions`, set by upstream's rule (`apihelpers.SetAPIServiceCondition`).

use jiff::Timestamp;
use portico_machinery::{Object, time};
use serde::{Deserialize, Serialize};

/// Condition of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Condition {
    /// Type, such as `Available`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Time of the last change of the status in RFC 3339, set by [`set`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<String>,
    /// Reason in one word.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Human-readable message.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Generation that was observed, if the writer sets it; kept if a later condition does not set it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

impl Condition {
    /// Condition without a transition time, which [`set`] adds.
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

/// Condition of this type, if present.
#[must_use]
pub fn get(object: &Object, kind: &str) -> Option<Condition> {
    all_conditions(object).into_iter().find(|c| c.kind == kind)
}

/// True if the condition exists and its status is exactly `True`.
#[must_use]
pub fn is_true(object: &Object, kind: &str) -> bool {
    get(object, kind).is_some_and(|c| c.status == "True")
}

/// Sets a condition. A new type is appended. For an existing type, reason and message are always replaced; status and
/// transition time only if the status differs. Returns true if the object changed.
pub fn set(object: &mut Object, condition: Condition, now: Timestamp) -> bool {
    let before = all_conditions(object);
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

/// Removes a condition; returns true if it was present.
pub fn remove(object: &mut Object, kind: &str) -> bool {
    let before = all_conditions(object);
    let after: Vec<&Condition> = before.iter().filter(|c| c.kind != kind).collect();
    let was_present = after.len() < before.len();
    if was_present {
        object.set(&["status", "conditions"], after);
    }
    was_present
}

fn all_conditions(object: &Object) -> Vec<Condition> {
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
