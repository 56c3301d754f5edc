//! Paths of parts of an expression, and sizes of their entries.

use std::sync::Arc;

use crate::size::SizeEstimate;

/// The way to a part.
pub(super) type Path = Vec<Arc<str>>;

/// Sizes of what a list or a map holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntrySize {
    pub(super) list: bool,
    pub(super) key: SizeEstimate,
    pub(super) value: SizeEstimate,
}

impl EntrySize {
    pub(super) fn union(one: Option<Self>, two: Option<Self>) -> Option<Self> {
        let (one, two) = (one?, two?);
        Some(Self { list: one.list, key: one.key.union(two.key), value: one.value.union(two.value) })
    }
}
