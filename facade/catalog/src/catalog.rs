//! Which document answers which path, and what all documents are made with.

use std::sync::Arc;

use portico_kit::offload::Offload;
use portico_machinery::GroupVersion;
use portico_machinery::api_path::ApiPath;
use portico_machinery::discovery::{Source, VersionDiscovery};

use crate::discovery::{self, PeerGroups};
use crate::document::{DocumentError, DocumentSource, load_one};
use crate::openapi;
use crate::request::{Reply, Request};
use crate::served_apis::ServedApis;
use crate::shared::{Settings, Shared};

/// Who serves a group version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServedBy {
    /// Nobody.
    Nobody,
    /// A definition, or the backend of an APIService: objects, which all servers behind one address share.
    Objects,
    /// This server, which has these resources (plural names) built in.
    Server(Vec<String>),
}

/// Answers requests for discovery and OpenAPI of what is served. One per facade.
pub struct Catalog {
    shared: Shared,
}

impl Catalog {
    /// A catalogue that knows no API; it makes large documents on the threads of `offload`.
    #[must_use]
    pub fn new(settings: Settings, documents: Arc<dyn DocumentSource>, offload: Arc<Offload>) -> Self {
        Self { shared: Shared::new(settings, documents, offload) }
    }

    /// Sets the address that `/api` names, once it is bound.
    pub fn set_server_address(&self, address: impl Into<String>) {
        self.shared.server_address.store(Arc::new(address.into()));
    }

    /// Shows what other servers behind the same address serve besides.
    pub fn set_peers(&self, groups: PeerGroups) {
        self.shared.peers.set(groups);
    }

    /// Who serves a group version here.
    ///
    /// # Errors
    /// [`DocumentError`] when the discovery of what is built in cannot be had now.
    pub async fn served_by(&self, apis: &ServedApis, gv: &GroupVersion) -> Result<ServedBy, DocumentError> {
        let Some(served) = apis.snapshot().served(gv) else { return Ok(ServedBy::Nobody) };
        if served.source != Source::Builtin {
            return Ok(ServedBy::Objects);
        }
        let Some(document) = load_one(&*self.shared.documents, &served.discovery).await.transpose()? else {
            return Ok(ServedBy::Server(Vec::new()));
        };
        let unreadable = |error: serde_json::Error| DocumentError {
            hash: served.discovery.clone(),
            reason: error.to_string(),
        };
        let version: VersionDiscovery = serde_json::from_slice(&document).map_err(unreadable)?;
        Ok(ServedBy::Server(version.resources.into_iter().map(|resource| resource.resource).collect()))
    }

    /// Answers a request for discovery or OpenAPI; nothing when the path is none of the catalogue's, or belongs to a
    /// backend, or names what is not served: the next in the chain answers then.
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
