//! Identity and revisions of a store, which a copy reads first.

use crate::identity::Identity;

/// Identity of a store and the range of its log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreExtent {
    /// Identity of the store.
    pub identity: Identity,
    /// Current revision.
    pub revision: i64,
    /// Oldest revision that can be read exactly.
    pub oldest: i64,
}
