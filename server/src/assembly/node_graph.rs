//! Listener that updates the relations of objects to nodes for the Node authorizer, from the log that all controllers read.
//!
//! Only relations are stored. The listener does not depend on the authorizers.

use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::RwLock;
use portico_auth::authz::node::{EdgeSource, Graph};
use portico_controllers::log::Listener;
use portico_machinery::{Reason, Status};
use portico_registry::{LogEntry, Registry, StoredObject};

/// Listener that updates the graph of the Node authorizer.
#[derive(Clone, Debug)]
pub(super) struct NodeGraph {
    graph: Arc<RwLock<Graph>>,
}

impl NodeGraph {
    /// Creates a listener that updates this graph.
    pub(super) fn new(graph: Arc<RwLock<Graph>>) -> Self {
        Self { graph }
    }
}

impl Listener for NodeGraph {
    fn resync<'a>(&'a self, registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        Box::pin(async move {
            for source in EdgeSource::ALL {
                let all = match registry.follow(&source.resource()).await {
                    Ok(followed) => followed.initial,
                    // This configuration does not serve the resource.
                    Err(status) if status.reason() == Reason::NotFound => Vec::new(),
                    Err(status) => return Err(status),
                };
                // Objects are decoded one after another to limit memory.
                let facts = all.into_iter().map(|stored| {
                    (source.vertex(stored.namespace(), stored.name()), source.fact(stored.object()))
                });
                self.graph.write().replace(source, facts);
            }
            Ok(())
        })
    }

    fn on_event(&self, change: &LogEntry) {
        let Some(source) = EdgeSource::from_resource(change.resource()) else { return };
        let fact = |stored: &StoredObject| source.fact(stored.object());
        let fact = if change.is_deleted() { None } else { fact(&change.stored()) };
        self.graph.write().set(source.vertex(change.namespace(), change.name()), fact);
    }
}
