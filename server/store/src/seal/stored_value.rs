//! Values before and after opening.

use std::borrow::Cow;

/// Value from the database, without the format byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoredValue<'a> {
    Plain(&'a [u8]),
    Sealed(&'a [u8]),
}

impl StoredValue<'_> {
    /// True if the value names this namespace, as the values of all namespaced objects do, or if `namespace` is empty.
    pub(crate) fn names_namespace(&self, namespace: &str) -> bool {
        let (Self::Plain(bytes) | Self::Sealed(bytes)) = self;
        let named = format!("\"namespace\":\"{namespace}\"");
        namespace.is_empty() || memchr::memmem::find(bytes, named.as_bytes()).is_some()
    }
}

/// Opened value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OpenedValue<'a> {
    pub(crate) json: Cow<'a, [u8]>,
    /// True if a write now would seal the value differently.
    pub(crate) stale: bool,
}
