//! Number and size of the stored objects of a resource, from which the cost of a list is estimated.

/// Number and size of the stored objects of a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoredObjects {
    /// Number of objects.
    pub count: u64,
    /// Approximate average size of an object in bytes; 0 if unknown.
    pub average_bytes: u64,
}
