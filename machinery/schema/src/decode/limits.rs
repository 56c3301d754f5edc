//! How deep and how wide what is read may be.

/// The deepest nesting that a body in YAML may have: its parser needs more of the stack than that of JSON.
pub(crate) const MAX_YAML_DEPTH: usize = 100;

/// The most values that a body, a patch or what a patch makes may hold: members of objects and elements of arrays, managed
/// fields included. Each costs dozens of times its bytes, wherever it stands. An object of etcd's size (1.5 MiB) with
/// descriptions, as the largest definitions are, has less than half of it.
pub(crate) const MAX_VALUES: usize = 100_000;

/// There are more than [`MAX_VALUES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many values: at most {MAX_VALUES} are accepted")]
pub(crate) struct TooManyValues;
