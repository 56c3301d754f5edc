//! Setting the Available condition on an APIService (aggregator 1.6).

use jiff::Timestamp;
use portico_machinery::{Object, time};

use super::decide::Verdict;

const CONDITIONS: [&str; 2] = ["status", "conditions"];
const TYPE: &str = "Available";

/// How the condition changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// It said so already.
    No,
    /// Reason or message only.
    Words,
    /// The status: from this to the verdict's. Absent before the first.
    Status {
        /// What it was.
        from: Option<String>,
    },
}

#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_transition_time: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
}

/// Appends the condition, or replaces reason and message; the transition time moves only when the status does. Other
/// conditions stay as they are.
pub fn set_available(object: &mut Object, verdict: &Verdict, now: Timestamp) -> Changed {
    let mut conditions: Vec<Condition> = object.decode(&CONDITIONS).unwrap_or_default();
    let before = conditions.iter().position(|c| c.kind == TYPE);
    let old = before.map(|i| conditions[i].clone());
    let moved = old.as_ref().is_none_or(|c| c.status != verdict.status.as_str());
    let since = old.as_ref().filter(|_| !moved).and_then(|c| c.last_transition_time.clone());
    let new = Condition {
        kind: TYPE.to_owned(),
        status: verdict.status.as_str().to_owned(),
        last_transition_time: Some(since.unwrap_or_else(|| time::rfc3339(now))),
        reason: verdict.reason.to_string(),
        message: verdict.message.clone(),
    };
    if old.as_ref() == Some(&new) {
        return Changed::No;
    }
    match before {
        Some(i) => conditions[i] = new,
        None => conditions.push(new),
    }
    object.set(&CONDITIONS, conditions);
    if moved { Changed::Status { from: old.map(|c| c.status) } } else { Changed::Words }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::availability::decide::ConditionStatus;

    fn verdict(status: ConditionStatus, message: &str) -> Verdict {
        Verdict { status, reason: "R".into(), message: message.to_owned() }
    }

    #[test]
    fn the_transition_time_moves_only_with_the_status() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let since = |o: &Object| {
            let conditions: Vec<Condition> = o.decode(&CONDITIONS).unwrap();
            conditions.iter().find(|c| c.kind == TYPE).unwrap().last_transition_time.clone().unwrap()
        };
        let mut object =
            Object::from_json(br#"{"status":{"conditions":[{"type":"Other","status":"True"}]}}"#).unwrap();
        let no = verdict(ConditionStatus::False, "a");
        assert_eq!(set_available(&mut object, &no, at(1)), Changed::Status { from: None });
        assert_eq!(set_available(&mut object, &no, at(2)), Changed::No);
        assert_eq!(set_available(&mut object, &verdict(ConditionStatus::False, "b"), at(3)), Changed::Words);
        assert_eq!(since(&object), "1970-01-01T00:00:01Z");
        let changed = set_available(&mut object, &verdict(ConditionStatus::True, "c"), at(4));
        assert_eq!(changed, Changed::Status { from: Some("False".into()) });
        assert_eq!(since(&object), "1970-01-01T00:00:04Z");
        assert_eq!(object.at(&CONDITIONS).len(), 2, "others stay");
    }
}
