//! Passes to the Node authorizer which objects relate to which nodes, from the one log that all controllers read.
//!
//! It keeps nothing of objects but edges, and must not know who decides by them.

use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::RwLock;
use portico_auth::authz::node::{Graph, Source};
use portico_controllers::log::Listener;
use portico_machinery::{Reason, Status};
use portico_registry::{Logged, Registry, Stored};

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct NodeGraph {
    graph: Arc<RwLock<Graph>>,
}

impl NodeGraph {
    /// Fills this graph.
    pub(super) fn new(graph: Arc<RwLock<Graph>>) -> Self {
        Self { graph }
    }
}

impl Listener for NodeGraph {
    fn begin<'a>(&'a self, registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        Box::pin(async move {
            for source in Source::ALL {
                let all = match registry.follow(&source.resource()).await {
                    Ok(followed) => followed.initial,
                    // Not served by this configuration.
                    Err(status) if status.reason() == Reason::NotFound => Vec::new(),
                    Err(status) => return Err(status),
                };
                // One after another: all of them decoded at once would be large.
                let facts = all.into_iter().map(|stored| {
                    (source.vertex(stored.namespace(), stored.name()), source.fact(stored.object()))
                });
                self.graph.write().replace(source, facts);
            }
            Ok(())
        })
    }

    fn on_event(&self, change: &Logged) {
        let Some(source) = Source::of(change.resource()) else { return };
        let fact = |stored: &Stored| source.fact(stored.object());
        let fact = if change.is_gone() { None } else { fact(&change.stored()) };
        self.graph.write().set(source.vertex(change.namespace(), change.name()), fact);
    }
}
