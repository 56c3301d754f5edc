//! State that all responses share.

use std::sync::Arc;

use arc_swap::ArcSwap;
use portico_kit::offload::Offload;

use crate::compressed_cache::CompressedCache;
use crate::discovery::PeerDocuments;
use crate::document::DocumentSource;
use crate::workers::Workers;

/// Properties of the facade and of the API version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// `host:port` in `/api` as this server's address.
    pub server_address: String,
    /// Kubernetes version in the `info` of OpenAPI, such as `1.36`.
    pub version: String,
}

/// State that all responses share.
pub(crate) struct CatalogState {
    pub settings: Settings,
    pub documents: Arc<dyn DocumentSource>,
    pub compressed: CompressedCache,
    pub server_address: ArcSwap<String>,
    pub peers: PeerDocuments,
    pub workers: Workers,
}

impl CatalogState {
    pub fn new(settings: Settings, documents: Arc<dyn DocumentSource>, offload: Arc<Offload>) -> Self {
        Self {
            server_address: ArcSwap::from_pointee(settings.server_address.clone()),
            settings,
            documents,
            compressed: CompressedCache::default(),
            peers: PeerDocuments::default(),
            workers: Workers::new(offload),
        }
    }

    pub fn server_address(&self) -> Arc<String> {
        self.server_address.load_full()
    }
}
