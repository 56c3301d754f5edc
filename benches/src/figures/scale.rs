//! What grows with what: the same figures at sizes that double, for docs/SCALE.md.

pub(crate) mod apis;
pub(crate) mod stored;
pub(crate) mod watchers;
