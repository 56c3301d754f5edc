//! Kinds that are only counted: `count/<resource>.<group>`, and the older names of a few.

use jiff::Timestamp;
use portico_machinery::{GroupResource, Object, Quantity};
use portico_validation::pod_spec::totals::Amounts;

use crate::evaluator::Evaluator;

/// Core kinds that are counted under their own names, too.
const ALIASES: [&str; 4] = ["configmaps", "resourcequotas", "replicationcontrollers", "secrets"];

/// Before the kind in the name of a count.
const COUNT: &str = "count/";

/// The name under which objects of a kind are counted.
fn object_count(resource: &GroupResource) -> String {
    match resource.group.as_str() {
        "" => format!("{COUNT}{}", resource.resource),
        group => format!("{COUNT}{}.{group}", resource.resource),
    }
}

/// The kind whose objects a resource of quotas counts; nothing when it is no count, or one of what is not counted.
pub(crate) fn counted_resource(name: &str) -> Option<GroupResource> {
    let resource = match name.strip_prefix(COUNT) {
        Some(counted) => {
            let (resource, group) = counted.split_once('.').unwrap_or((counted, ""));
            GroupResource::new(group, resource)
        }
        None => GroupResource::new("", *ALIASES.iter().find(|alias| **alias == name)?),
    };
    let is_event = resource.resource == "events" && matches!(resource.group.as_str(), "" | "events.k8s.io");
    (!is_event).then_some(resource)
}

/// One of each of these.
pub(crate) fn one_of<'n>(names: impl IntoIterator<Item = &'n str>) -> Amounts {
    names.into_iter().map(|name| (name.to_owned(), Quantity::whole(1))).collect()
}

/// A kind that is counted.
pub(crate) struct Count {
    names: Vec<String>,
}

impl Count {
    /// The count of this kind.
    pub(crate) fn of(resource: &GroupResource) -> Self {
        let mut names = vec![object_count(resource)];
        if resource.group.is_empty() && ALIASES.contains(&resource.resource.as_str()) {
            names.push(resource.resource.clone());
        }
        Self { names }
    }
}

impl Evaluator for Count {
    fn counts(&self, resource: &str) -> bool {
        self.names.iter().any(|name| name == resource)
    }

    fn usage(&self, _object: &Object, _now: Timestamp) -> Amounts {
        one_of(self.names.iter().map(String::as_str))
    }

    fn is_plain_count(&self) -> bool {
        true
    }
}

/// A kind that quotas do not look at.
pub(crate) struct Uncounted;

impl Evaluator for Uncounted {
    fn counts(&self, _resource: &str) -> bool {
        false
    }

    fn usage(&self, _object: &Object, _now: Timestamp) -> Amounts {
        Amounts::new()
    }
}
