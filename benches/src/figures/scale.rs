//! Growth: the same figures at sizes that double, for docs/internals/benchmarks.md.

pub(crate) mod apis;
pub(crate) mod stored;
pub(crate) mod watchers;
