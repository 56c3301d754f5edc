//! What no path may be, and why a text is none.

/// How long a path may be, in bytes. Upstream has no limit.
pub const MAX_PATH_LENGTH: usize = 16 * 1024;

/// How many values a path may look at in one object before it finds nothing. Upstream has no limit: a few `..` in a row
/// look at each value many times.
pub const MAX_VISITED: usize = 100_000;

/// Why a text is no path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidJsonPath {
    /// It goes on for more than [`MAX_PATH_LENGTH`].
    #[error("a path may have {MAX_PATH_LENGTH} bytes at most")]
    TooLong,
    /// Something is opened and not closed.
    #[error("{0} is not closed")]
    Unclosed(&'static str),
    /// A character that begins nothing.
    #[error("{0:?} begins nothing")]
    Unexpected(char),
    /// Two `..` in a row.
    #[error("one .. follows another")]
    TwiceRecursive,
    /// What looks like a number and is none.
    #[error("{0:?} is no number")]
    Number(String),
    /// What stands between brackets.
    #[error("{0:?} is no index")]
    Index(String),
    /// A quoted text with an escape that means nothing.
    #[error("{0} cannot be unquoted")]
    Quoted(String),
    /// Filters and unions inside each other without end.
    #[error("it is nested too deeply")]
    Nested,
}
