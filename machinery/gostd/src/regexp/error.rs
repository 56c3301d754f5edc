//! Errors of regular expressions.

/// Nesting of groups in a regular expression.
///
/// Go allows 1,000, which the engine would walk on its stack.
///
/// Limit (Definitions and schemas): the expression is invalid.
pub const MAX_DEPTH: usize = 250;

/// Error of a regular expression, with Go's message.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {code}: `{expression}`")]
pub struct Error {
    /// Kind of the error.
    pub code: Code,
    /// The invalid part, or the whole expression.
    pub expression: String,
}

/// Kind of an error of a regular expression.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Code {
    /// `[z-a]`, `[[:x:]]`, `\p{x}`.
    #[error("invalid character class range")]
    CharacterRange,
    /// `\8`
    #[error("invalid escape sequence")]
    Escape,
    /// `(?P<a`
    #[error("invalid named capture")]
    NamedCapture,
    /// `(?=a)`
    #[error("invalid or unsupported Perl syntax")]
    Perl,
    /// `a**`
    #[error("invalid nested repetition operator")]
    NestedRepetition,
    /// `a{1001}`
    #[error("invalid repeat count")]
    RepeatCount,
    /// `[a`
    #[error("missing closing ]")]
    MissingBracket,
    /// `(a`
    #[error("missing closing )")]
    MissingParenthesis,
    /// `*`
    #[error("missing argument to repetition operator")]
    MissingArgument,
    /// `\`
    #[error("trailing backslash at end of expression")]
    TrailingBackslash,
    /// `)`
    #[error("unexpected )")]
    UnexpectedParenthesis,
    /// Groups are nested deeper than [`MAX_DEPTH`].
    #[error("expression nests too deeply")]
    Depth,
    /// The compiled form exceeds [`MAX_COMPILED_BYTES`](super::MAX_COMPILED_BYTES).
    #[error("expression too large")]
    Size,
}

impl Error {
    pub(super) fn new(code: Code, expression: &str) -> Self {
        Self { code, expression: expression.to_owned() }
    }
}
