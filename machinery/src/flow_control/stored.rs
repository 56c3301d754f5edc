//! How many objects of a resource are stored, and how large they are: what a list is estimated by.

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoredObjects {
    /// How many there are.
    pub count: u64,
    /// How many bytes one takes, about; 0 where nobody knows.
    pub average_bytes: u64,
}
