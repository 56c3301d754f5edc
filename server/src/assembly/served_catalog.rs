//! Connection of the catalog to its inputs (definitions and routes) and to the board, which receives its entries.

mod definitions;

use std::collections::BTreeSet;
use std::sync::Arc;

use portico_kinds::Kinds;
use portico_kit::hooks::{HookContext, Hooks};
use portico_kit::lifecycle::Signal;
use portico_machinery::route::Route;
use portico_proto::convert::{Payload, PayloadKind};
use portico_registry::{Registry, definition};
use portico_routes::{Routes, TableEntry, TableEntryKey, TableUpdate};
use portico_server_catalog::{Catalog, Documents, Settings};

use super::backend_client::BackendClient;
use super::backend_connections::BackendConnections;
use super::error::StartError;
use super::signal_wait::wait_for_signal;
use crate::grpc::config::board::Board;

/// Kubernetes version in OpenAPI documents.
const KUBERNETES_VERSION: &str = "1.36";

/// Catalog with its inputs.
pub(super) struct ServedCatalog {
    catalog: Catalog,
    backends: Arc<BackendClient>,
    /// True if definitions of custom resources are served.
    serves_definitions: bool,
}

impl ServedCatalog {
    pub(super) fn new(kinds: &Arc<Kinds>, backends: &BackendConnections, openapi_cache_bytes: usize) -> Self {
        let backends = Arc::new(BackendClient::new(backends));
        let settings = Settings { version: KUBERNETES_VERSION.to_owned(), openapi_cache_bytes };
        let catalog = Catalog::new(settings, Arc::clone(kinds), Arc::clone(&backends) as _);
        Self { catalog, backends, serves_definitions: definition::are_served(kinds) }
    }

    /// Returns the client for backends.
    pub(super) fn backends(&self) -> Arc<BackendClient> {
        Arc::clone(&self.backends)
    }

    pub(super) fn documents(&self) -> Documents {
        self.catalog.documents()
    }

    /// Registers the hooks that start the catalog.
    pub(super) fn add_hooks(
        &self,
        registry: &Registry,
        routes: &Routes,
        board: &Board,
        hooks: &Hooks,
    ) -> Result<(), StartError> {
        let (catalog, registry) = (self.catalog.clone(), self.serves_definitions.then(|| registry.clone()));
        let (backends, routes, board) = (Arc::clone(&self.backends), routes.clone(), board.clone());
        hooks.add_post_start("apiservice-discovery-controller", move |cx: HookContext| async move {
            catalog.run(&cx.tasks);
            if let Some(registry) = registry {
                let reported = Signal::new("catalog-definitions");
                let following =
                    definitions::follow(registry, catalog.clone(), reported.clone(), cx.stop.clone());
                cx.tasks.spawn_critical("catalog-definitions", following);
                wait_for_signal(&cx, &reported).await?;
            }
            cx.tasks.spawn_until_cancelled("catalog-entries", post(catalog.clone(), board));
            let initiated = routes.initiated();
            cx.tasks.spawn_until_cancelled("catalog-routes", follow(catalog, backends, routes));
            wait_for_signal(&cx, &initiated).await
        })?;
        for name in ["apiservice-openapi-controller", "apiservice-openapiv3-controller"] {
            // Both are part of the catalog's task. Upstream's checks with these names do not wait for documents either.
            hooks.add_post_start(name, |_| async { Ok(()) })?;
        }
        Ok(())
    }
}

/// Posts changed entries to the board.
async fn post(catalog: Catalog, board: Board) {
    let mut reader = catalog.subscribe();
    loop {
        reader.changed().await;
        board.post(reader.take_changes().into_iter().map(|(key, served)| {
            let payload = served.map(Payload::Served);
            (PayloadKind::Served, key, payload)
        }));
    }
}

/// Passes changed routes to the catalog.
async fn follow(catalog: Catalog, backends: Arc<BackendClient>, routes: Routes) {
    let mut updates = routes.publisher().subscribe(None);
    let mut names: BTreeSet<Arc<str>> = BTreeSet::new();
    loop {
        let changes = match updates.next().await {
            TableUpdate::Delta(delta) => delta.changes,
            TableUpdate::Snapshot(snapshot) => {
                let current: BTreeSet<TableEntryKey> =
                    snapshot.entries.iter().map(|(k, _)| k.clone()).collect();
                let removed = names
                    .iter()
                    .map(|n| TableEntryKey::Route(Arc::clone(n)))
                    .filter(|k| !current.contains(k));
                let removed: Vec<_> = removed.map(|k| (k, None)).collect();
                snapshot.entries.into_iter().map(|(k, e)| (k, Some(e))).chain(removed).collect()
            }
        };
        let mut reported: Vec<(String, Option<Arc<Route>>)> = Vec::new();
        for (key, entry) in changes {
            match (key, entry) {
                (TableEntryKey::Bundle(hash), Some(TableEntry::Bundle(bundle))) => {
                    backends.add_bundle(&hash, &bundle.pem)
                }
                (TableEntryKey::Bundle(hash), _) => backends.remove_bundle(&hash),
                (TableEntryKey::Route(name), Some(TableEntry::Route(route))) => {
                    names.insert(Arc::clone(&name));
                    reported.push((name.to_string(), Some(route)));
                }
                (TableEntryKey::Route(name), _) => {
                    names.remove(&name);
                    reported.push((name.to_string(), None));
                }
            }
        }
        catalog.set_routes(reported);
    }
}
