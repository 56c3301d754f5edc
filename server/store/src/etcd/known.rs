//! What is known of objects besides what is stored.

use std::sync::Arc;

use super::layout::Layout;
use crate::index::Indexer;
use crate::seal::Seal;

/// See the module.
#[derive(Clone)]
pub struct Known {
    /// What is read out of them.
    pub indexer: Arc<dyn Indexer>,
    /// Where they stand, and in which bytes.
    pub layout: Arc<dyn Layout>,
    /// How they are encrypted.
    pub seal: Arc<Seal>,
}
