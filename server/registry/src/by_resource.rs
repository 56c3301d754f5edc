//! What is known of some built-in resources, found by group and resource.

use std::collections::HashMap;

use portico_machinery::GroupResource;

/// A value for some of the built-in resources.
#[derive(Clone)]
pub(crate) struct ByResource<T> {
    groups: HashMap<&'static str, HashMap<&'static str, T>>,
}

impl<T> Default for ByResource<T> {
    fn default() -> Self {
        Self { groups: HashMap::new() }
    }
}

impl<T: Default> ByResource<T> {
    /// The value of a resource, which is made if there is none.
    pub(crate) fn entry(&mut self, group: &'static str, resource: &'static str) -> &mut T {
        self.groups.entry(group).or_default().entry(resource).or_default()
    }

    /// The value of a resource, if it has one.
    pub(crate) fn get(&self, resource: &GroupResource) -> Option<&T> {
        self.groups.get(&*resource.group)?.get(&*resource.resource)
    }
}
