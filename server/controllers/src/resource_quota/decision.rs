//! Computes a quota's status from counts (upstream's `CalculateUsage` and `syncResourceQuota`), and decides which changes of
//! objects require a new count (`DefaultUpdateFilter`). Pure.

use std::collections::BTreeSet;

use jiff::Timestamp;
use portico_machinery::Object;
use portico_quota::{
    Evaluator, ResourceList, add_resources, matches_scopes, resource_list, scope_requirements,
};

/// Usage of a quota by the objects of one kind.
#[derive(Clone, Debug)]
pub struct KindUsage {
    /// Resources of the quota that objects of the kind use.
    pub names: Vec<String>,
    /// Total usage of these resources, or the error of counting it.
    pub usage: Result<ResourceList, String>,
}

/// Returns the usage of a quota: the counted amounts, and the previous ones where nothing was counted or counting failed.
#[must_use]
pub fn merged_usage(quota: &Object, counted: &[KindUsage]) -> ResourceList {
    let hard = spec_limits(quota);
    let failed = |name: &String| counted.iter().any(|kind| kind.usage.is_err() && kind.names.contains(name));
    let mut sums = ResourceList::new();
    for usage in counted.iter().filter_map(|kind| kind.usage.as_ref().ok()) {
        add_resources(&mut sums, usage);
    }
    let mut used = resource_list(&quota.at(&["status", "used"]));
    used.extend(sums.into_iter().filter(|(name, _)| !failed(name)));
    used.retain(|name, _| hard.contains_key(name));
    used
}

/// Returns the quota with a status of this usage; `None` if the status is up to date.
#[must_use]
pub fn with_status(quota: &Object, used: &ResourceList) -> Option<Object> {
    let hard = spec_limits(quota);
    let status = quota.at(&["status"]);
    let matches = |list: &'static str, wanted: &ResourceList| {
        let list = status.field(list);
        resource_list(&list) == *wanted && (list.is_present() || wanted.is_empty())
    };
    if matches("hard", &hard) && matches("used", used) {
        return None;
    }
    let mut written = quota.clone();
    for (list, amounts) in [("hard", &hard), ("used", used)] {
        written.remove(&["status", list]);
        for (name, amount) in amounts {
            written.set(&["status", list, name], amount.to_string());
        }
    }
    Some(written)
}

/// Adds charges made since a count to its result. Returns `None` if the quota has changed in any other way, in which
/// case it must be counted again.
#[must_use]
pub fn with_new_charges(counted: &Object, used: &ResourceList, current: &Object) -> Option<ResourceList> {
    let (before, now) = (limits(counted), limits(current));
    if counted.uid() != current.uid() || before != now || before.0 != before.1 {
        return None;
    }
    let [before, now] = [counted, current].map(|quota| resource_list(&quota.at(&["status", "used"])));
    let add_charge = |(name, amount): (&String, &_)| {
        let charged = now.get(name)?.minus(before.get(name)?);
        let used = charged.plus(amount);
        (!charged.is_negative() && !used.is_negative()).then(|| (name.clone(), used))
    };
    used.iter().map(add_charge).collect()
}

/// Returns true if the status lacks limits of the spec or a usage. Such quotas are counted first.
#[must_use]
pub fn is_incomplete(quota: &Object) -> bool {
    let (status_hard, used) = (resource_list(&quota.at(&["status", "hard"])), quota.at(&["status", "used"]));
    let names = status_hard.keys().map(String::as_str);
    let unknown = || names.filter(|name| !used.key(name).is_present());
    spec_limits(quota) != status_hard || !portico_quota::counted_resources(unknown()).is_empty()
}

/// Returns true if a change of an object changes the usage of a quota.
#[must_use]
pub fn changes_usage(
    quota: &Object,
    evaluator: &dyn Evaluator,
    before: &Object,
    after: &Object,
    now: Timestamp,
) -> bool {
    if evaluator.is_plain_count() {
        return false;
    }
    let scopes = scope_requirements(quota);
    let is_in_scope = |object: &Object| matches_scopes(&scopes, object, evaluator);
    let (was_in_scope, is_in_scope) = (is_in_scope(before), is_in_scope(after));
    if !was_in_scope || !is_in_scope {
        return was_in_scope != is_in_scope;
    }
    let names: BTreeSet<String> = limited_resources(quota);
    let usage = |object: &Object| {
        let mut usage = evaluator.usage(object, now);
        usage.retain(|name, _| names.contains(name));
        usage
    };
    usage(before) != usage(after)
}

/// Returns the limits in the spec, and those in the status.
#[must_use]
pub fn limits(quota: &Object) -> (ResourceList, ResourceList) {
    (spec_limits(quota), resource_list(&quota.at(&["status", "hard"])))
}

/// Returns the names of resources limited by the spec or by the status.
#[must_use]
pub fn limited_resources(quota: &Object) -> BTreeSet<String> {
    let names = quota.at(&["spec", "hard"]).entries().map(|(name, _)| name.to_owned());
    names.chain(enforced_resources(quota)).collect()
}

/// Returns the names of resources limited by the status, which admission enforces.
#[must_use]
pub fn enforced_resources(quota: &Object) -> BTreeSet<String> {
    quota.at(&["status", "hard"]).entries().map(|(name, _)| name.to_owned()).collect()
}

fn spec_limits(quota: &Object) -> ResourceList {
    resource_list(&quota.at(&["spec", "hard"]))
}

#[cfg(test)]
mod tests {
    use portico_machinery::{GroupResource, Quantity};
    use portico_quota::{DeviceContext, evaluator};

    use super::*;

    fn object(json: &str) -> Object {
        Object::from_json(json.as_bytes()).unwrap()
    }

    fn resources(pairs: &[(&str, &str)]) -> ResourceList {
        pairs.iter().map(|(name, amount)| ((*name).to_owned(), Quantity::lenient(amount))).collect()
    }

    fn kind_usage(names: &[&str], usage: Result<ResourceList, String>) -> KindUsage {
        KindUsage { names: names.iter().map(|name| (*name).to_owned()).collect(), usage }
    }

    #[test]
    fn counted_usage_replaces_the_old_and_failed_counts_keep_it() {
        let quota = object(
            r#"{"spec":{"hard":{"pods":"5","services":"3","requests.a.b/c":"1"}},
                "status":{"hard":{"pods":"5"},"used":{"pods":"4","services":"2","gone":"1"}}}"#,
        );
        let counted = [
            kind_usage(&["pods", "requests.a.b/c"], Ok(resources(&[("pods", "1"), ("requests.a.b/c", "1")]))),
            kind_usage(&["services"], Err("the store is unavailable".to_owned())),
            kind_usage(&["requests.a.b/c"], Ok(resources(&[("requests.a.b/c", "2")]))),
        ];
        let used = merged_usage(&quota, &counted);
        assert_eq!(used, resources(&[("pods", "1"), ("services", "2"), ("requests.a.b/c", "3")]));
        let written = with_status(&quota, &used).unwrap();
        let printed = |list| resource_list(&written.at(&["status", list]));
        assert_eq!(printed("used"), used);
        assert_eq!(printed("hard"), resources(&[("pods", "5"), ("services", "3"), ("requests.a.b/c", "1")]));
        assert_eq!(with_status(&written, &used), None, "an up-to-date status is not written");
    }

    #[test]
    fn a_quota_that_limits_nothing_needs_no_status() {
        assert_eq!(with_status(&object(r#"{"spec":{}}"#), &ResourceList::new()), None);
        assert!(!is_incomplete(&object(r#"{"spec":{}}"#)));
    }

    #[test]
    fn charges_since_the_count_are_added_and_other_changes_require_another_count() {
        let quota = |hard: &str, used: &str| {
            object(&format!(
                r#"{{"metadata":{{"uid":"u"}},"spec":{{"hard":{{"pods":"{hard}"}}}},
                    "status":{{"hard":{{"pods":"9"}},"used":{{"pods":"{used}"}}}}}}"#
            ))
        };
        let (counted, found) = (quota("9", "5"), resources(&[("pods", "3")]));
        assert_eq!(with_new_charges(&counted, &found, &quota("9", "7")), Some(resources(&[("pods", "5")])));
        assert_eq!(
            with_new_charges(&counted, &found, &quota("9", "4")),
            None,
            "usage below the counted one is not a charge"
        );
        assert_eq!(with_new_charges(&counted, &found, &quota("8", "7")), None, "the limit has changed");
        assert_eq!(
            with_new_charges(&quota("8", "5"), &found, &quota("8", "7")),
            None,
            "the limits in the status are outdated"
        );
    }

    #[test]
    fn a_status_is_incomplete_without_the_limits_or_without_a_usage_that_can_be_counted() {
        for (quota, incomplete) in [
            (r#"{"spec":{"hard":{"pods":"1"}}}"#, true),
            (r#"{"spec":{"hard":{"pods":"1"}},"status":{"hard":{"pods":"1"}}}"#, true),
            (r#"{"spec":{"hard":{"pods":"1"}},"status":{"hard":{"pods":"1"},"used":{"pods":"0"}}}"#, false),
            (r#"{"spec":{"hard":{"a.b/c":"1"}},"status":{"hard":{"a.b/c":"1"}}}"#, false),
        ] {
            assert_eq!(is_incomplete(&object(quota)), incomplete, "{quota}");
        }
    }

    #[test]
    fn changes_of_limited_usage_or_of_an_objects_scope_require_a_count() {
        let (device_context, pods) = (DeviceContext::default(), GroupResource::new("", "pods"));
        let evaluator = evaluator(&pods, &device_context);
        let changes = |quota: &str, before: &str, after: &str| {
            let [quota, before, after] = [quota, before, after].map(object);
            changes_usage(&quota, &*evaluator, &before, &after, Timestamp::UNIX_EPOCH)
        };
        let (running, ended) = (r#"{"status":{"phase":"Running"}}"#, r#"{"status":{"phase":"Failed"}}"#);
        let terminating = r#"{"spec":{"activeDeadlineSeconds":1},"status":{"phase":"Running"}}"#;
        for (quota, before, after, expected) in [
            (r#"{"spec":{"hard":{"pods":"1"}}}"#, running, ended, true),
            (r#"{"spec":{"hard":{"pods":"1"}}}"#, running, terminating, false),
            (r#"{"spec":{"hard":{"count/pods":"1"}}}"#, running, ended, false),
            (r#"{"spec":{"hard":{"pods":"1"},"scopes":["Terminating"]}}"#, running, terminating, true),
            (r#"{"spec":{"hard":{"pods":"1"},"scopes":["Terminating"]}}"#, running, ended, false),
        ] {
            assert_eq!(changes(quota, before, after), expected, "{quota} {before} {after}");
        }
    }
}
