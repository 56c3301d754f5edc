//! Values that do not match their types.

use std::fmt;

/// Value that does not match its type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}{}{text}", if path.is_empty() { "" } else { ": " })]
pub struct TypeMismatch {
    /// Path as upstream prints it: `.spec.ports[port=80]`.
    pub path: String,
    /// Reason for the mismatch.
    pub text: String,
}

impl TypeMismatch {
    pub(super) fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    /// Prepends a path element.
    pub(super) fn prefixed(mut self, step: &str) -> Self {
        self.path.insert_str(0, step);
        self
    }
}

/// All mismatches of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeMismatches(pub Vec<TypeMismatch>);

impl std::error::Error for TypeMismatches {}

impl fmt::Display for TypeMismatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = &self.0[..] {
            return only.fmt(f);
        }
        f.write_str("errors:")?;
        self.0.iter().try_for_each(|mismatch| write!(f, "\n  {mismatch}"))
    }
}
