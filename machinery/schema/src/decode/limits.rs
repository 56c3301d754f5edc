//! Limits of depth and size for decoded bodies.

/// Levels of nesting in a YAML body.
///
/// The YAML parser needs more stack than the JSON parser.
///
/// Limit (Requests): 400.
pub(crate) const MAX_YAML_DEPTH: usize = 100;

/// Values (members and elements) in a body, in a patch, or in the result of a patch, managed fields included.
///
/// Each value costs dozens of times its bytes in memory. An object of 1.5 MiB with descriptions, such as the largest
/// definitions, has less than half as many.
///
/// Limit (Requests): 400.
pub(crate) const MAX_VALUES: usize = 100_000;

/// Error for a body with more than [`MAX_VALUES`] values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many values: at most {MAX_VALUES} are accepted")]
pub(crate) struct TooManyValues;
