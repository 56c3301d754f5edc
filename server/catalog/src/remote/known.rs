//! What is known of a service, and what to ask it for.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use portico_machinery::GroupVersion;
use portico_machinery::discovery::VersionDiscovery;
use portico_machinery::route::Backend;

/// What a service reported of its group versions.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// The tag of the aggregated document; empty for legacy answers, which are asked for anew each time.
    pub etag: String,
    pub versions: HashMap<GroupVersion, VersionDiscovery>,
    /// True if one document describes the whole service: a group version that it does not name has no resources.
    pub is_whole: bool,
    /// Group versions whose own lists could not be fetched, with the reasons.
    pub failures: BTreeMap<GroupVersion, String>,
}

impl Found {
    /// The first failure, for the log, if any list could not be fetched.
    pub fn result(&self) -> Result<(), String> {
        self.failures.values().next().map_or(Ok(()), |reason| Err(reason.clone()))
    }
}

/// One version 3 document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Document {
    /// Its address in the backend's index: the same as before means the same document.
    pub address: String,
    /// The backend's tag.
    pub etag: String,
    /// The content's hash in the store.
    pub hash: String,
}

/// What is known of version 2: its tag and the hash of each member's part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct V2 {
    /// The backend's tag, to be sent back; empty when it sends none.
    pub etag: String,
    /// The hash of the whole body: the same as before means the same parts.
    pub body: String,
    /// The members that the parts were cut for.
    pub members: Vec<GroupVersion>,
    pub parts: HashMap<GroupVersion, String>,
    /// Version 3 documents made of the parts, for backends without their own.
    pub converted: HashMap<GroupVersion, String>,
}

/// The last good documents of a service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Described {
    pub v3: HashMap<GroupVersion, Document>,
    pub v2: Arc<V2>,
}

/// What to ask a service for, and what is known already.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub backend: Arc<Backend>,
    /// Its group versions, in order.
    pub members: Vec<GroupVersion>,
    /// The members whose routes are available.
    pub available: Vec<GroupVersion>,
    /// The last good discovery of the whole service.
    pub known: Option<Arc<Found>>,
    /// The last good OpenAPI.
    pub described: Arc<Described>,
    /// Which state of the service the job was made of: a result for an older one is still used, but not relied on.
    pub(super) generation: u64,
}
