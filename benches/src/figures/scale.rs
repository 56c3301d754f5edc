//! Growth: the same figures at sizes that double, for docs/operate/sizing.md.

pub(crate) mod apis;
pub(crate) mod objects;
pub(crate) mod watchers;
