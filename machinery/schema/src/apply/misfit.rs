//! Values that do not fit their types.

use std::fmt;

/// A value that does not fit its type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}{}{text}", if path.is_empty() { "" } else { ": " })]
pub struct TypeMismatch {
    /// Where, as upstream prints it: `.spec.ports[port=80]`.
    pub path: String,
    /// Why.
    pub text: String,
}

impl TypeMismatch {
    pub(super) fn at(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    /// The same one step further down.
    pub(super) fn below(mut self, step: &str) -> Self {
        self.path.insert_str(0, step);
        self
    }
}

/// Everything of a configuration that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfits(pub Vec<TypeMismatch>);

impl std::error::Error for Misfits {}

impl fmt::Display for Misfits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = &self.0[..] {
            return only.fmt(f);
        }
        f.write_str("errors:")?;
        self.0.iter().try_for_each(|misfit| write!(f, "\n  {misfit}"))
    }
}
