//! What goes wrong while a program runs.

use std::borrow::Cow;

/// Why an evaluation has no value. The text is cel-go's; positions are not part of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// The expression is in error for these values: `no such key: x`, `division by zero`. Logical operators and
    /// quantifiers may absorb it.
    #[error("{0}")]
    Failed(Cow<'static, str>),
    /// The program cost more than its budget. Nothing absorbs it.
    #[error("operation cancelled: actual cost limit exceeded")]
    Budget,
    /// Whoever asked does not wait any more. Nothing absorbs it.
    #[error("operation interrupted")]
    Interrupted,
}

impl EvalError {
    /// An error with a text of its own.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Failed(text.into())
    }

    /// No overload of the function takes these values.
    #[must_use]
    pub fn no_such_overload() -> Self {
        Self::Failed(Cow::Borrowed("no such overload"))
    }

    /// A map or object has no such key.
    #[must_use]
    pub fn no_such_key(key: &str) -> Self {
        Self::Failed(Cow::Owned(format!("no such key: {key}")))
    }

    /// Whether logical operators may absorb it.
    #[must_use]
    pub fn is_absorbable(&self) -> bool {
        matches!(self, Self::Failed(_))
    }
}
