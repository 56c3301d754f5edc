//! Index of the compiler's inputs: facts of objects, and the group versions of the local chain.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use portico_machinery::resolve::{AffectedApiServices, RoutingFacts};

use crate::LocalGroupVersion;

/// All inputs of the compiler. Dereferences to [`RoutingFacts`], through which objects are changed.
#[derive(Debug, Default)]
pub struct RouteIndex {
    facts: RoutingFacts,
    local_group_versions: BTreeMap<Arc<str>, LocalGroupVersion>,
}

impl RouteIndex {
    /// Sets or removes a group version of the local chain, under the name of its APIService.
    pub fn set_local_group_version(
        &mut self,
        name: Arc<str>,
        group_version: Option<LocalGroupVersion>,
        affected: &mut AffectedApiServices,
    ) {
        match group_version {
            Some(group_version) => self.local_group_versions.insert(name.clone(), group_version),
            None => self.local_group_versions.remove(&name),
        };
        affected.insert(name);
    }

    /// Group version of the local chain with this APIService name, if served.
    #[must_use]
    pub fn local_group_version(&self, name: &str) -> Option<&LocalGroupVersion> {
        self.local_group_versions.get(name)
    }

    /// Names of all possible routes, sorted.
    #[must_use]
    pub fn names(&self) -> AffectedApiServices {
        self.facts.api_services().map(|f| &f.name).chain(self.local_group_versions.keys()).cloned().collect()
    }
}

impl Deref for RouteIndex {
    type Target = RoutingFacts;

    fn deref(&self) -> &RoutingFacts {
        &self.facts
    }
}

impl DerefMut for RouteIndex {
    fn deref_mut(&mut self) -> &mut RoutingFacts {
        &mut self.facts
    }
}
