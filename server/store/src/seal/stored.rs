//! Values on both sides of a seal.

use std::borrow::Cow;

/// A value as it stands in the database, without the byte that says which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored<'a> {
    Plain(&'a [u8]),
    Sealed(&'a [u8]),
}

/// A value that could be opened.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Opened<'a> {
    pub(crate) json: Cow<'a, [u8]>,
    /// Whether it would be sealed otherwise if it were written now.
    pub(crate) stale: bool,
}
