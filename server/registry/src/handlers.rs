//! What stands behind the subresources of built-in resources, and behind the collections that keep nothing.

use std::sync::Arc;

use crate::action::Action;
use crate::by_resource::ByResource;
use crate::connection::Connection;
use crate::served::ServedResource;

/// What stands behind a subresource, or behind a POST to a collection that keeps nothing.
#[derive(Clone)]
pub(crate) enum Handler {
    /// A POST that keeps no object of its own kind.
    Action(Arc<dyn Action>),
    /// A connection to what runs elsewhere.
    Connection(Arc<dyn Connection>),
}

/// All of them, by resource and by the name of the subresource, which is empty for the collection.
#[derive(Clone, Default)]
pub(crate) struct HandlerTable {
    handlers: ByResource<Vec<(&'static str, Handler)>>,
}

impl HandlerTable {
    pub(crate) fn add(
        &mut self,
        (group, resource, subresource): (&'static str, &'static str, &'static str),
        handler: Handler,
    ) {
        self.handlers.entry(group, resource).push((subresource, handler));
    }

    fn handler(&self, served: &ServedResource, subresource: &str) -> Option<&Handler> {
        let handlers = self.handlers.get(&served.resource)?;
        handlers.iter().find(|(name, _)| *name == subresource).map(|(_, handler)| handler)
    }

    /// The action behind a subresource, or behind the collection.
    pub(crate) fn action(&self, served: &ServedResource, subresource: &str) -> Option<&Arc<dyn Action>> {
        match self.handler(served, subresource) {
            Some(Handler::Action(action)) => Some(action),
            _ => None,
        }
    }

    /// The connection behind a subresource.
    pub(crate) fn connection(
        &self,
        served: &ServedResource,
        subresource: &str,
    ) -> Option<&Arc<dyn Connection>> {
        match self.handler(served, subresource) {
            Some(Handler::Connection(connection)) => Some(connection),
            _ => None,
        }
    }
}
