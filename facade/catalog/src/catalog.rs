//! Which document answers which path, and what all documents are made with.

use std::sync::Arc;

use portico_machinery::GroupVersion;
use portico_machinery::api_path::ApiPath;

use crate::discovery;
use crate::document::DocumentSource;
use crate::openapi;
use crate::request::{Reply, Request};
use crate::served_apis::ServedApis;
use crate::shared::{Settings, Shared};

/// Answers requests for discovery and OpenAPI of what is served. One per facade.
pub struct Catalog {
    shared: Shared,
}

impl Catalog {
    /// A catalogue that knows no API.
    #[must_use]
    pub fn new(settings: Settings, documents: Arc<dyn DocumentSource>) -> Self {
        Self { shared: Shared::new(settings, documents) }
    }

    /// Tells the address that `/api` names, once it is bound.
    pub fn set_server_address(&self, address: impl Into<String>) {
        self.shared.server_address.store(Arc::new(address.into()));
    }

    /// Answers a request for discovery or OpenAPI; nothing when the path is none of the catalogue's, or belongs to a
    /// backend, or names what is not served: the next in the chain answers then.
    pub async fn respond(&self, apis: &ServedApis, request: &Request<'_>) -> Option<Reply> {
        let (shared, snapshot) = (&self.shared, apis.snapshot());
        match request.path {
            ApiPath::Core => Some(discovery::core(shared, apis, request).await),
            ApiPath::Groups { slash: false } => Some(discovery::groups(shared, snapshot, request).await),
            ApiPath::Groups { slash: true } => Some(discovery::legacy_groups(snapshot, request)),
            ApiPath::Group(group) => discovery::group(snapshot, group, request),
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
