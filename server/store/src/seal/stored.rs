//! Values on both sides of a seal.

use std::borrow::Cow;

/// A value as it stands in the database, without the byte that says which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored<'a> {
    Plain(&'a [u8]),
    Sealed(&'a [u8]),
}

impl Stored<'_> {
    /// True if the value names this namespace, as all objects in namespaces do, or there is none to name.
    pub(crate) fn names_namespace(&self, namespace: &str) -> bool {
        let (Self::Plain(bytes) | Self::Sealed(bytes)) = self;
        let named = format!("\"namespace\":\"{namespace}\"");
        namespace.is_empty() || memchr::memmem::find(bytes, named.as_bytes()).is_some()
    }
}

/// A value that could be opened.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Opened<'a> {
    pub(crate) json: Cow<'a, [u8]>,
    /// Whether it would be sealed otherwise if it were written now.
    pub(crate) stale: bool,
}
