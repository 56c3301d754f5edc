//! Kinds that are only counted: `count/<resource>.<group>`, and older names of some kinds.

use jiff::Timestamp;
use portico_machinery::{GroupResource, Object, Quantity};
use portico_validation::pod_spec::totals::ResourceList;

use crate::evaluator::Evaluator;

/// Core kinds that are also counted under their plain names.
const ALIASES: [&str; 4] = ["configmaps", "resourcequotas", "replicationcontrollers", "secrets"];

/// Prefix of the kind in the name of a count.
const COUNT_PREFIX: &str = "count/";

/// Returns the quota resource that counts objects of a kind.
fn count_name(resource: &GroupResource) -> String {
    match resource.group.as_str() {
        "" => format!("{COUNT_PREFIX}{}", resource.resource),
        group => format!("{COUNT_PREFIX}{}.{group}", resource.resource),
    }
}

/// Returns the kind that a quota resource counts; `None` if the quota resource is no count or its kind is not counted.
pub(crate) fn counted_resource(name: &str) -> Option<GroupResource> {
    let resource = match name.strip_prefix(COUNT_PREFIX) {
        Some(counted) => {
            let (resource, group) = counted.split_once('.').unwrap_or((counted, ""));
            GroupResource::new(group, resource)
        }
        None => GroupResource::new("", *ALIASES.iter().find(|alias| **alias == name)?),
    };
    let is_event = resource.resource == "events" && matches!(resource.group.as_str(), "" | "events.k8s.io");
    (!is_event).then_some(resource)
}

/// Returns an amount of one for each name.
pub(crate) fn one_each<'n>(names: impl IntoIterator<Item = &'n str>) -> ResourceList {
    names.into_iter().map(|name| (name.to_owned(), Quantity::whole(1))).collect()
}

/// Evaluator of a kind that is only counted.
pub(crate) struct CountEvaluator {
    names: Vec<String>,
}

impl CountEvaluator {
    /// Creates the evaluator of a kind.
    pub(crate) fn new(resource: &GroupResource) -> Self {
        let mut names = vec![count_name(resource)];
        if resource.group.is_empty() && ALIASES.contains(&resource.resource.as_str()) {
            names.push(resource.resource.clone());
        }
        Self { names }
    }
}

impl Evaluator for CountEvaluator {
    fn matches_resource(&self, resource: &str) -> bool {
        self.names.iter().any(|name| name == resource)
    }

    fn usage(&self, _object: &Object, _now: Timestamp) -> ResourceList {
        one_each(self.names.iter().map(String::as_str))
    }

    fn is_plain_count(&self) -> bool {
        true
    }
}

/// Evaluator of a kind that quotas ignore.
pub(crate) struct UncountedEvaluator;

impl Evaluator for UncountedEvaluator {
    fn matches_resource(&self, _resource: &str) -> bool {
        false
    }

    fn usage(&self, _object: &Object, _now: Timestamp) -> ResourceList {
        ResourceList::new()
    }
}
