//! Conditions of a namespace that is being deleted (upstream's five conditions). Pure.

use std::collections::BTreeMap;

use portico_machinery::{GroupResource, Node, Object, Status};
use serde::{Deserialize, Serialize};

/// A condition in `status.conditions`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    last_transition_time: String,
    reason: String,
    message: String,
}

/// Remaining content of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemainingContent {
    /// Number of objects of each resource.
    pub objects: BTreeMap<GroupResource, usize>,
    /// Number of objects with each finalizer.
    pub finalizers: BTreeMap<String, usize>,
    /// Groups that could not be queried, with the reason.
    pub unreachable: Vec<String>,
    /// Resources that could not be deleted, with the reason.
    pub failures: Vec<String>,
}

impl RemainingContent {
    /// Returns true if nothing remains and all servers could be queried.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.unreachable.is_empty() && self.failures.is_empty()
    }

    /// Adds the remaining objects of a resource and their finalizers.
    pub fn add(&mut self, resource: GroupResource, count: usize, finalizers: impl Iterator<Item = String>) {
        self.objects.insert(resource, count);
        for finalizer in finalizers {
            *self.finalizers.entry(finalizer).or_default() += 1;
        }
    }

    /// Adds a resource whose objects could not be listed or deleted.
    pub(super) fn fail(&mut self, resource: &GroupResource, status: &Status) {
        let failure = format!("{resource}: {}", status.message);
        if !self.failures.contains(&failure) {
            self.failures.push(failure);
        }
    }

    fn discovery_failure(&self) -> Option<(&'static str, String)> {
        let (count, all) = (self.unreachable.len(), self.unreachable.join(", "));
        let text = || format!("Discovery failed for some groups, {count} failing: {all}");
        (count > 0).then(|| ("DiscoveryFailed", text()))
    }

    fn deletion_failure(&self) -> Option<(&'static str, String)> {
        let (count, all) = (self.failures.len(), self.failures.join(", "));
        let text = || format!("Failed to delete all resource types, {count} remaining: {all}");
        (count > 0).then(|| ("ContentDeletionFailed", text()))
    }

    fn content_remaining(&self) -> Option<(&'static str, String)> {
        let describe = |(r, count): (&GroupResource, &usize)| {
            format!("{}.{} has {count} resource instances", r.resource, r.group)
        };
        let all: Vec<String> = self.objects.iter().map(describe).collect();
        let text = || format!("Some resources are remaining: {}", all.join(", "));
        (!all.is_empty()).then(|| ("SomeResourcesRemain", text()))
    }

    fn finalizers_remaining(&self) -> Option<(&'static str, String)> {
        let describe =
            |(finalizer, count): (&String, &usize)| format!("{finalizer} in {count} resource instances");
        let all: Vec<String> = self.finalizers.iter().map(describe).collect();
        let text = || format!("Some content in the namespace has finalizers remaining: {}", all.join(", "));
        (!all.is_empty()).then(|| ("SomeFinalizersRemain", text()))
    }
}

/// Returns the namespace with updated conditions; `None` if they are up to date.
#[must_use]
pub fn with_conditions(namespace: &Object, remaining: &RemainingContent, now: &str) -> Option<Object> {
    let desired = [
        (
            "NamespaceDeletionDiscoveryFailure",
            remaining.discovery_failure(),
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            None,
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        (
            "NamespaceDeletionContentFailure",
            remaining.deletion_failure(),
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        (
            "NamespaceContentRemaining",
            remaining.content_remaining(),
            "ContentRemoved",
            "All content successfully removed",
        ),
        (
            "NamespaceFinalizersRemaining",
            remaining.finalizers_remaining(),
            "ContentHasNoFinalizers",
            "All content-preserving finalizers finished",
        ),
    ];
    let mut conditions: Vec<Condition> = namespace.decode(&["status", "conditions"]).unwrap_or_default();
    let before = conditions.clone();
    for (kind, problem, reason, message) in desired {
        let (status, reason, message) = match problem {
            Some((reason, message)) => ("True", reason, message),
            None => ("False", reason, message.to_owned()),
        };
        set(&mut conditions, kind, status, reason, message, now);
    }
    (conditions != before).then(|| {
        let mut reported = namespace.clone();
        reported.set(&["status", "conditions"], conditions);
        reported
    })
}

fn set(all: &mut Vec<Condition>, kind: &str, status: &str, reason: &str, message: String, now: &str) {
    let index = all.iter().position(|c| c.kind == kind).unwrap_or_else(|| {
        all.push(Condition { kind: kind.to_owned(), ..Condition::default() });
        all.len() - 1
    });
    let condition = &mut all[index];
    if condition.status != status {
        now.clone_into(&mut condition.last_transition_time);
        status.clone_into(&mut condition.status);
    }
    reason.clone_into(&mut condition.reason);
    condition.message = message;
}

/// Returns the namespace without this finalizer.
#[must_use]
pub fn without_finalizer(namespace: &Object, finalizer: &str) -> Object {
    let mut finalized = namespace.clone();
    let spec = namespace.at(&["spec", "finalizers"]);
    let remaining: Vec<String> =
        spec.items().map(|f| f.str().to_owned()).filter(|f| f != finalizer).collect();
    match remaining.is_empty() {
        true => finalized.put(&["spec"], Node::default()),
        false => finalized.set(&["spec", "finalizers"], remaining),
    }
    finalized
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(object: &Object) -> Vec<String> {
        let conditions = object.at(&["status", "conditions"]);
        conditions
            .items()
            .map(|c| format!("{} {}", c.field("status").str(), c.field("reason").str()))
            .collect()
    }

    #[test]
    fn five_conditions_report_what_is_left_and_change_only_with_it() {
        let namespace = Object::from_json(br#"{"metadata":{"name":"n"}}"#).unwrap();
        let mut remaining = RemainingContent::default();
        remaining.objects.insert(GroupResource::new("", "pods"), 2);
        remaining.finalizers.insert("example.com/x".to_owned(), 1);
        let reported_once = with_conditions(&namespace, &remaining, "2026-01-02T03:04:05Z").unwrap();
        assert_eq!(
            summary(&reported_once),
            [
                "False ResourcesDiscovered",
                "False ParsedGroupVersions",
                "False ContentDeleted",
                "True SomeResourcesRemain",
                "True SomeFinalizersRemain",
            ]
        );
        let text = String::from_utf8(reported_once.to_json()).unwrap();
        assert!(text.contains("Some resources are remaining: pods. has 2 resource instances"));
        assert!(text.contains("has finalizers remaining: example.com/x in 1 resource instances"));
        assert_eq!(with_conditions(&reported_once, &remaining, "2026-01-02T03:04:06Z"), None);
        let empty =
            with_conditions(&reported_once, &RemainingContent::default(), "2026-01-02T03:04:07Z").unwrap();
        assert_eq!(summary(&empty)[3..], ["False ContentRemoved", "False ContentHasNoFinalizers"]);
        let has_transitioned: Vec<_> = (0..5)
            .map(|at| {
                empty
                    .at(&["status", "conditions"])
                    .items()
                    .nth(at)
                    .unwrap()
                    .field("lastTransitionTime")
                    .str()
                    .ends_with(":07Z")
            })
            .collect();
        assert_eq!(has_transitioned, [false, false, false, true, true]);
    }

    #[test]
    fn other_finalizers_stay() {
        let object = |json: &str| Object::from_json(json.as_bytes()).unwrap();
        let only = object(r#"{"spec":{"finalizers":["kubernetes"]}}"#);
        assert!(!without_finalizer(&only, "kubernetes").at(&["spec", "finalizers"]).is_present());
        let two = object(r#"{"spec":{"finalizers":["a/b","kubernetes"]}}"#);
        assert_eq!(without_finalizer(&two, "kubernetes").to_json(), br#"{"spec":{"finalizers":["a/b"]}}"#);
    }
}
