//! Which plugins look at a request, found by its resource: a request that no plugin looks at costs one lookup.
//!
//! It must not know which plugins there are.

use std::collections::HashMap;
use std::sync::Arc;

use portico_registry::{Attributes, Operation};

use crate::plugin::{ANY, Plugin};

/// Plugins by what they look at, in order.
#[derive(Default)]
pub(crate) struct Index {
    by_resource: HashMap<&'static str, Vec<Interest>>,
    /// Of those that look at every resource, for the resources that no other looks at.
    others: Vec<Interest>,
}

/// What a plugin looks at.
#[derive(Clone)]
struct Interest {
    group: &'static str,
    subresource: &'static str,
    operations: &'static [Operation],
    /// Upstream's name.
    name: &'static str,
    plugin: Arc<dyn Plugin>,
}

/// A plugin and upstream's name of it.
pub(crate) type Named = (&'static str, Arc<dyn Plugin>);

impl Interest {
    fn is_in(&self, attributes: &Attributes<'_>) -> bool {
        self.operations.contains(&attributes.operation)
            && (self.group == attributes.served.resource.group || self.group == ANY)
            && (self.subresource == attributes.subresource() || self.subresource == ANY)
    }
}

impl Index {
    /// An index of these plugins, which are asked in this order.
    pub(crate) fn new(plugins: &[Named]) -> Self {
        let targets = || plugins.iter().flat_map(|(_, plugin)| plugin.targets());
        let named = targets().map(|(_, resource, _)| *resource).filter(|resource| *resource != ANY);
        let by_resource = named.map(|resource| (resource, of(plugins, resource))).collect();
        Self { by_resource, others: of(plugins, ANY) }
    }

    /// The plugins that look at a request, with their names.
    pub(crate) fn concerned<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
    ) -> impl Iterator<Item = (&'static str, &'a dyn Plugin)> {
        let resource = attributes.served.resource.resource.as_str();
        let interests = self.by_resource.get(resource).unwrap_or(&self.others);
        let concerned = interests.iter().filter(|interest| interest.is_in(attributes));
        concerned.map(|interest| (interest.name, &*interest.plugin))
    }

    /// Whether a plugin looks at a request.
    pub(crate) fn concerns(&self, attributes: &Attributes<'_>) -> bool {
        self.concerned(attributes).next().is_some()
    }
}

/// What these plugins look at of a resource.
fn of(plugins: &[Named], resource: &str) -> Vec<Interest> {
    let interests = |(name, plugin): &Named| {
        let (name, operations, plugin) = (*name, plugin.operations(), Arc::clone(plugin));
        let targets = plugin.targets().iter().filter(move |(_, of, _)| *of == resource || *of == ANY);
        targets.map(move |(group, _, subresource)| Interest {
            group,
            subresource,
            operations,
            name,
            plugin: Arc::clone(&plugin),
        })
    };
    plugins.iter().flat_map(interests).collect()
}
