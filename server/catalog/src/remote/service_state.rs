//! Last good documents of a service, and the input of a fetch.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use portico_machinery::GroupVersion;
use portico_machinery::discovery::VersionDiscovery;
use portico_machinery::route::Backend;

/// Discovery of the group versions of a service.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ServiceDiscovery {
    /// `ETag` of the aggregated document; empty for legacy lists, which are always fetched again.
    pub etag: String,
    pub versions: HashMap<GroupVersion, VersionDiscovery>,
    /// True if one document describes the whole service: group versions that it does not contain have no resources.
    pub is_complete: bool,
    /// Group versions whose own lists could not be fetched, with the reasons.
    pub failures: BTreeMap<GroupVersion, String>,
}

impl ServiceDiscovery {
    /// Returns the first failure, if any list could not be fetched.
    pub fn result(&self) -> Result<(), String> {
        self.failures.values().next().map_or(Ok(()), |reason| Err(reason.clone()))
    }
}

/// A version 3 document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct V3Document {
    /// Address in the backend's index; an unchanged address means an unchanged document.
    pub address: String,
    /// `ETag` from the backend.
    pub etag: String,
    /// Content hash in the store.
    pub hash: String,
}

/// Version 2 document: its `ETag`, and the hash of each member's part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct V2Document {
    /// `ETag` from the backend, for `If-None-Match`; empty if there is none.
    pub etag: String,
    /// Hash of the whole body; an unchanged hash means unchanged parts.
    pub body_hash: String,
    /// Members for which the parts were extracted.
    pub members: Vec<GroupVersion>,
    pub parts: HashMap<GroupVersion, String>,
    /// Version 3 documents converted from the parts, for backends without version 3.
    pub converted: HashMap<GroupVersion, String>,
}

/// Last good OpenAPI documents of a service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OpenApiDocuments {
    pub v3: HashMap<GroupVersion, V3Document>,
    pub v2: Arc<V2Document>,
}

/// Input of a fetch: the members of a service, and the last good documents.
#[derive(Clone, Debug)]
pub(super) struct FetchJob {
    pub backend: Arc<Backend>,
    /// Group versions of the service, in order.
    pub members: Vec<GroupVersion>,
    /// Members whose routes are available.
    pub available: Vec<GroupVersion>,
    /// Last good discovery of the whole service.
    pub discovery: Option<Arc<ServiceDiscovery>>,
    /// Last good OpenAPI documents.
    pub openapi: Arc<OpenApiDocuments>,
    /// Generation of the service for which the job was created. Results of older generations are used, but failures of older
    /// generations are ignored.
    pub(super) generation: u64,
}
