//! Kinds that are only counted: `count/<resource>.<group>`, and the older names of a few.

use jiff::Timestamp;
use portico_machinery::{GroupResource, Object, Quantity};

use super::evaluator::Evaluator;
use portico_registry::Part;
use portico_registry::Write;
use portico_validation::pod_spec::totals::Amounts;

/// Core kinds that are counted under their own names, too.
const ALIASES: [&str; 4] = ["configmaps", "resourcequotas", "replicationcontrollers", "secrets"];

/// The name under which objects of a kind are counted.
pub(super) fn object_count(group: &str, resource: &str) -> String {
    if group.is_empty() { format!("count/{resource}") } else { format!("count/{resource}.{group}") }
}

/// One of each of these.
pub(super) fn one_of<'n>(names: impl IntoIterator<Item = &'n str>) -> Amounts {
    names.into_iter().map(|name| (name.to_owned(), Quantity::whole(1))).collect()
}

/// Whether a write is of an object itself.
pub(super) fn is_main(write: &Write<'_>) -> bool {
    write.part == Part::Main
}

/// See the module.
pub(super) struct Count {
    names: Vec<String>,
}

impl Count {
    /// Of this kind.
    pub(super) fn of(resource: &GroupResource) -> Self {
        let mut names = vec![object_count(&resource.group, &resource.resource)];
        if resource.group.is_empty() && ALIASES.contains(&resource.resource.as_str()) {
            names.push(resource.resource.clone());
        }
        Self { names }
    }
}

impl Evaluator for Count {
    fn handles(&self, write: &Write<'_>) -> bool {
        is_main(write) && write.old.is_none()
    }

    fn counts(&self, resource: &str) -> bool {
        self.names.iter().any(|name| name == resource)
    }

    fn usage(&self, _object: &Object, _now: Timestamp) -> Amounts {
        one_of(self.names.iter().map(String::as_str))
    }
}

/// A kind that quotas do not look at.
pub(super) struct Uncounted;

impl Evaluator for Uncounted {
    fn handles(&self, _write: &Write<'_>) -> bool {
        false
    }

    fn counts(&self, _resource: &str) -> bool {
        false
    }

    fn usage(&self, _object: &Object, _now: Timestamp) -> Amounts {
        Amounts::new()
    }
}
