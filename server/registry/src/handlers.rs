//! Handlers of subresources of built-in resources, and of collections that do not store objects.

use std::sync::Arc;

use crate::action::Action;
use crate::connection::Connection;
use crate::resource_map::ResourceMap;
use crate::served_resource::ServedResource;

/// Handler of a subresource, or of a POST to a collection that does not store objects.
#[derive(Clone)]
pub(crate) enum Handler {
    /// POST that does not store an object of the posted kind.
    Action(Arc<dyn Action>),
    /// Connection to a node or backend.
    Connection(Arc<dyn Connection>),
}

/// Handlers by resource and name of the subresource, which is empty for the collection.
#[derive(Clone, Default)]
pub(crate) struct HandlerTable {
    handlers: ResourceMap<Vec<(&'static str, Handler)>>,
}

impl HandlerTable {
    pub(crate) fn add(
        &mut self,
        (group, resource, subresource): (&'static str, &'static str, &'static str),
        handler: Handler,
    ) {
        self.handlers.entry(group, resource).push((subresource, handler));
    }

    fn handler(&self, served_resource: &ServedResource, subresource: &str) -> Option<&Handler> {
        let handlers = self.handlers.get(&served_resource.resource)?;
        handlers.iter().find(|(name, _)| *name == subresource).map(|(_, handler)| handler)
    }

    /// Action of a subresource or collection, if it has one.
    pub(crate) fn action(
        &self,
        served_resource: &ServedResource,
        subresource: &str,
    ) -> Option<&Arc<dyn Action>> {
        match self.handler(served_resource, subresource) {
            Some(Handler::Action(action)) => Some(action),
            _ => None,
        }
    }

    /// Connection of a subresource, if it has one.
    pub(crate) fn connection(
        &self,
        served_resource: &ServedResource,
        subresource: &str,
    ) -> Option<&Arc<dyn Connection>> {
        match self.handler(served_resource, subresource) {
            Some(Handler::Connection(connection)) => Some(connection),
            _ => None,
        }
    }
}
