//! Paths of parts of an expression, and sizes of their entries.

use std::sync::Arc;

use crate::size::SizeEstimate;

/// Path to a part of a variable.
pub(super) type Path = Vec<Arc<str>>;

/// Sizes of the keys and values of a list or map.
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
