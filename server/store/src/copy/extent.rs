//! What a copy has to know of a store before it reads anything of it.

use crate::identity::Identity;

/// Who a store is and how far its log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Who it is.
    pub identity: Identity,
    /// The current revision.
    pub revision: i64,
    /// The oldest revision that can be read exactly.
    pub oldest: i64,
}
