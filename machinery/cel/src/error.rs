//! Errors of a running program.

use std::borrow::Cow;

/// Reason why an evaluation has no value. Messages are those of cel-go, without positions.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// The expression fails for these values: `no such key: x`, `division by zero`. Logical operators and quantifiers absorb it
    /// if the other operand decides.
    #[error("{0}")]
    Failed(Cow<'static, str>),
    /// The program exceeded its budget. Never absorbed.
    #[error("operation cancelled: actual cost limit exceeded")]
    Budget,
    /// The caller interrupted the evaluation. Never absorbed.
    #[error("operation interrupted")]
    Interrupted,
}

impl EvalError {
    /// Returns an [`EvalError::Failed`] with this message.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Failed(text.into())
    }

    /// Returns the error of a function that has no overload for its arguments.
    #[must_use]
    pub fn no_such_overload() -> Self {
        Self::Failed(Cow::Borrowed("no such overload"))
    }

    /// Returns the error of a missing key of a map or field of an object.
    #[must_use]
    pub fn no_such_key(key: &str) -> Self {
        Self::Failed(Cow::Owned(format!("no such key: {key}")))
    }

    /// True if logical operators may absorb the error.
    #[must_use]
    pub fn is_absorbable(&self) -> bool {
        matches!(self, Self::Failed(_))
    }
}
