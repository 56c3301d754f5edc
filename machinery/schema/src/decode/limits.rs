//! How deep and how wide what is read may be.

/// The deepest nesting that a body may have. Upstream stops at 10,000; 100 keeps what is stored (and its managed
/// fields, which nest a few levels deeper) within what any JSON reader of ours takes without a risk to the stack.
pub const MAX_DEPTH: usize = 100;

/// The most values that a body, a patch or what a patch makes may hold: members of objects and elements of arrays, managed
/// fields included. Each costs dozens of times its bytes, wherever it stands. An object of etcd's size (1.5 MiB) with
/// descriptions, as the largest definitions are, has less than half of it.
pub(crate) const MAX_VALUES: usize = 100_000;

/// There are more than [`MAX_VALUES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many values: at most {MAX_VALUES} are accepted")]
pub(crate) struct TooManyValues;
