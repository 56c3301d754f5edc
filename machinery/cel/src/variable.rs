//! Variables of expressions.

use std::sync::Arc;

use crate::types::Type;

/// A variable of an expression.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its name: `self`.
    pub name: Arc<str>,
    /// Its type.
    pub ty: Type,
}
