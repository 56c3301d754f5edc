//! Dispatches requests to the documents, and owns their shared state.

use std::sync::Arc;

use portico_kit::offload::Offload;
use portico_machinery::GroupVersion;
use portico_machinery::api_path::ApiPath;
use portico_machinery::discovery::{Source, VersionDiscovery};

use crate::catalog_state::{CatalogState, Settings};
use crate::discovery::{self, PeerGroups};
use crate::document::{DocumentError, DocumentSource, load_one};
use crate::openapi;
use crate::request::{Reply, Request};
use crate::served_apis::ServedApis;

/// Server of a group version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServedBy {
    /// The group version is not served.
    NotServed,
    /// A definition, or the backend of an APIService: stored objects, which all servers behind one address share.
    Objects,
    /// Built into this server, with these resources (plural names).
    Builtin(Vec<String>),
}

/// Serves discovery and OpenAPI of the served APIs. There is one per facade.
pub struct Catalog {
    shared: CatalogState,
}

impl Catalog {
    /// Creates a catalog without APIs, which builds large documents on the threads of `offload`.
    #[must_use]
    pub fn new(settings: Settings, documents: Arc<dyn DocumentSource>, offload: Arc<Offload>) -> Self {
        Self { shared: CatalogState::new(settings, documents, offload) }
    }

    /// Sets the address in `/api`, once the listener is bound.
    pub fn set_server_address(&self, address: impl Into<String>) {
        self.shared.server_address.store(Arc::new(address.into()));
    }

    /// Sets the APIs of other servers behind the same address.
    pub fn set_peers(&self, groups: PeerGroups) {
        self.shared.peers.set(groups);
    }

    /// Returns the server of a group version.
    ///
    /// # Errors
    /// [`DocumentError`] if the discovery document of a built-in API is not available.
    pub async fn served_by(&self, apis: &ServedApis, gv: &GroupVersion) -> Result<ServedBy, DocumentError> {
        let Some(served) = apis.snapshot().served_version(gv) else { return Ok(ServedBy::NotServed) };
        if served.source != Source::Builtin {
            return Ok(ServedBy::Objects);
        }
        let Some(document) = load_one(&*self.shared.documents, &served.discovery).await.transpose()? else {
            return Ok(ServedBy::Builtin(Vec::new()));
        };
        let unreadable = |error: serde_json::Error| DocumentError {
            hash: served.discovery.clone(),
            reason: error.to_string(),
        };
        let version: VersionDiscovery = serde_json::from_slice(&document).map_err(unreadable)?;
        Ok(ServedBy::Builtin(version.resources.into_iter().map(|resource| resource.resource).collect()))
    }

    /// Serves a request for discovery or OpenAPI. `None` if the path is not part of the catalog, belongs to a backend, or names
    /// an API that is not served: the request is then passed to the next handler in the chain.
    pub async fn respond(&self, apis: &ServedApis, request: &Request<'_>) -> Option<Reply> {
        let (shared, snapshot) = (&self.shared, apis.snapshot());
        match request.path {
            ApiPath::Core => Some(discovery::core(shared, apis, request).await),
            ApiPath::Groups { slash: false } => Some(discovery::groups(shared, snapshot, request).await),
            ApiPath::Groups { slash: true } => {
                Some(discovery::legacy_groups(shared, snapshot, request).await)
            }
            ApiPath::Group(group) => discovery::group(shared, snapshot, group, request).await,
            ApiPath::Version { group, version } => {
                discovery::resources(shared, snapshot, &GroupVersion::new(group, version), request).await
            }
            ApiPath::OpenApiV2 => Some(openapi::v2(shared, snapshot, request).await),
            ApiPath::OpenApiV3 => Some(openapi::v3_index(shared, snapshot, request)),
            ApiPath::OpenApiV3Document(key) => Some(openapi::v3(shared, snapshot, key, request).await),
            ApiPath::Below { .. } | ApiPath::Other => None,
        }
    }
}
