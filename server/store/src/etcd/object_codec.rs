//! Codec of objects in etcd.

use std::sync::Arc;

use super::layout::Layout;
use crate::index::Indexer;
use crate::seal::Seal;

/// Codec of objects in etcd: index, layout and seal.
#[derive(Clone)]
pub struct ObjectCodec {
    /// Indexer of the objects.
    pub indexer: Arc<dyn Indexer>,
    /// Keys and encoding of the objects.
    pub layout: Arc<dyn Layout>,
    /// Encryption of the objects.
    pub seal: Arc<Seal>,
}
