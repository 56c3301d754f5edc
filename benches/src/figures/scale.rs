//! Growth: the same figures at sizes that double, for docs/operate/sizing.md.

pub(crate) mod apis;
pub(crate) mod stored;
pub(crate) mod watchers;
