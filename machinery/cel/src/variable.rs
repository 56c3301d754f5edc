//! Variables of expressions.

use std::sync::Arc;

use crate::types::Type;

/// A variable of an expression.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Name, such as `self`.
    pub name: Arc<str>,
    /// Type of the variable.
    pub ty: Type,
}
