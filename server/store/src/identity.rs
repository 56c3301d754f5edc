//! Identity of a store.

/// Identity of a store. Versions of derived data are {store_id, epoch, revision}.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// UUID, generated with the database. Never changes.
    pub store_id: String,
    /// Starts at 1; changes when the database is restored from a copy.
    pub epoch: i64,
}
