//! Who a store is.

/// Who this store is. Versions of what is derived from it are {store_id, epoch, revision}.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// A uuid, made with the database; never changes.
    pub store_id: String,
    /// Starts at 1; changes when the database is restored from a copy.
    pub epoch: i64,
}
