//! Limits and errors of paths.

/// Length of the JSONPath of a printer column.
///
/// kube-apiserver has no limit.
///
/// Limit (Requests, bytes): the column and the columns after it are omitted.
pub const MAX_PATH_LENGTH: usize = 16 * 1024;

/// Values that a printer column visits in one object.
///
/// kube-apiserver has no limit; several `..` in a row visit each value many times.
///
/// Limit (Requests): the cell is null.
pub const MAX_VISITED: usize = 100_000;

/// Reason why a text is not a valid path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidJsonPath {
    /// The text is longer than [`MAX_PATH_LENGTH`].
    #[error("the path is longer than {MAX_PATH_LENGTH} bytes")]
    TooLong,
    /// An opening delimiter has no closing delimiter.
    #[error("{0} is not closed")]
    Unclosed(&'static str),
    /// A character that starts no step.
    #[error("unexpected character '{}'", .0.escape_debug())]
    Unexpected(char),
    /// Two `..` in a row.
    #[error("`..` must not follow `..`")]
    DoubleRecursive,
    /// Invalid number.
    #[error("{} is not a number", portico_gostd::strconv::quote(.0))]
    InvalidNumber(String),
    /// Invalid content of brackets.
    #[error("{} is not an index", portico_gostd::strconv::quote(.0))]
    InvalidIndex(String),
    /// Quoted text with an unknown escape.
    #[error("{0} cannot be unquoted")]
    InvalidQuotes(String),
    /// Too many nested filters and unions.
    #[error("the path is nested too deeply")]
    TooDeep,
}
