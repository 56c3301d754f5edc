//! What no path may be, and why a text is none.

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

/// Why a text is no path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidJsonPath {
    /// It goes on for more than [`MAX_PATH_LENGTH`].
    #[error("the path is longer than {MAX_PATH_LENGTH} bytes")]
    TooLong,
    /// Something is opened and not closed.
    #[error("{0} is not closed")]
    Unclosed(&'static str),
    /// A character that begins nothing.
    #[error("unexpected character '{}'", .0.escape_debug())]
    Unexpected(char),
    /// Two `..` in a row.
    #[error("one .. follows another")]
    TwiceRecursive,
    /// What looks like a number and is none.
    #[error("{} is not a number", portico_gostd::strconv::quote(.0))]
    Number(String),
    /// What stands between brackets.
    #[error("{} is not an index", portico_gostd::strconv::quote(.0))]
    Index(String),
    /// A quoted text with an escape that means nothing.
    #[error("{0} cannot be unquoted")]
    Quoted(String),
    /// Filters and unions inside each other without end.
    #[error("the path is nested too deeply")]
    Nested,
}
