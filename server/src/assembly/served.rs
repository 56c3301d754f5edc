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
use portico_routes::{Entry, EntryKey, Routes, Update};
use portico_server_catalog::{Catalog, Documents, Settings};

use super::backends::Backends;
use super::error::StartError;
use super::reached::reached;
use super::to_backends::ToBackends;
use crate::grpc::config::board::Board;

/// Kubernetes version in OpenAPI documents.
const KUBERNETES_VERSION: &str = "1.36";

/// Catalog with its inputs.
pub(super) struct ServedHere {
    catalog: Catalog,
    backends: Arc<ToBackends>,
    /// True if definitions of custom resources are served.
    defines: bool,
}

impl ServedHere {
    pub(super) fn new(kinds: &Arc<Kinds>, backends: &Backends, openapi_cache_bytes: usize) -> Self {
        let backends = Arc::new(ToBackends::new(backends));
        let settings = Settings { version: KUBERNETES_VERSION.to_owned(), openapi_cache_bytes };
        let catalog = Catalog::new(settings, Arc::clone(kinds), Arc::clone(&backends) as _);
        Self { catalog, backends, defines: definition::are_served(kinds) }
    }

    /// Returns the client for backends.
    pub(super) fn backends(&self) -> Arc<ToBackends> {
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
        let (catalog, registry) = (self.catalog.clone(), self.defines.then(|| registry.clone()));
        let (backends, routes, board) = (Arc::clone(&self.backends), routes.clone(), board.clone());
        hooks.add_post_start("apiservice-discovery-controller", move |cx: HookContext| async move {
            catalog.run(&cx.tasks);
            if let Some(registry) = registry {
                let reported = Signal::new("catalog-definitions");
                let following =
                    definitions::follow(registry, catalog.clone(), reported.clone(), cx.stop.clone());
                cx.tasks.spawn_critical("catalog-definitions", following);
                reached(&cx, &reported).await?;
            }
            cx.tasks.spawn_until_cancelled("catalog-entries", post(catalog.clone(), board));
            let initiated = routes.initiated();
            cx.tasks.spawn_until_cancelled("catalog-routes", follow(catalog, backends, routes));
            reached(&cx, &initiated).await
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
        board.post(reader.look().into_iter().map(|(key, served)| {
            let payload = served.map(Payload::Served);
            (PayloadKind::Served, key, payload)
        }));
    }
}

/// Passes changed routes to the catalog.
async fn follow(catalog: Catalog, backends: Arc<ToBackends>, routes: Routes) {
    let mut updates = routes.publisher().subscribe(None);
    let mut names: BTreeSet<Arc<str>> = BTreeSet::new();
    loop {
        let changes = match updates.next().await {
            Update::Delta(delta) => delta.changes,
            Update::Snapshot(snapshot) => {
                let there: BTreeSet<EntryKey> = snapshot.entries.iter().map(|(k, _)| k.clone()).collect();
                let gone =
                    names.iter().map(|n| EntryKey::Route(Arc::clone(n))).filter(|k| !there.contains(k));
                let gone: Vec<_> = gone.map(|k| (k, None)).collect();
                snapshot.entries.into_iter().map(|(k, e)| (k, Some(e))).chain(gone).collect()
            }
        };
        let mut reported: Vec<(String, Option<Arc<Route>>)> = Vec::new();
        for (key, entry) in changes {
            match (key, entry) {
                (EntryKey::Bundle(hash), Some(Entry::Bundle(bundle))) => backends.trust(&hash, &bundle.pem),
                (EntryKey::Bundle(hash), _) => backends.distrust(&hash),
                (EntryKey::Route(name), Some(Entry::Route(route))) => {
                    names.insert(Arc::clone(&name));
                    reported.push((name.to_string(), Some(route)));
                }
                (EntryKey::Route(name), _) => {
                    names.remove(&name);
                    reported.push((name.to_string(), None));
                }
            }
        }
        catalog.routes(reported);
    }
}
