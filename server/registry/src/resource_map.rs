//! Map keyed by built-in group and resource.

use std::collections::HashMap;

use portico_machinery::GroupResource;

/// Map with values for some of the built-in resources.
#[derive(Clone)]
pub(crate) struct ResourceMap<T> {
    groups: HashMap<&'static str, HashMap<&'static str, T>>,
}

impl<T> Default for ResourceMap<T> {
    fn default() -> Self {
        Self { groups: HashMap::new() }
    }
}

impl<T: Default> ResourceMap<T> {
    /// Value of a resource; inserts the default if there is none.
    pub(crate) fn entry(&mut self, group: &'static str, resource: &'static str) -> &mut T {
        self.groups.entry(group).or_default().entry(resource).or_default()
    }

    /// Value of a resource, if present.
    pub(crate) fn get(&self, resource: &GroupResource) -> Option<&T> {
        self.groups.get(&*resource.group)?.get(&*resource.resource)
    }
}
