//! Names with dots.

use crate::ast::{Expr, ExprKind};

/// The dotted name that a chain of selections spells, if it is one.
pub(super) fn qualified(expr: &Expr) -> Option<String> {
    match &expr.kind {
        ExprKind::Ident(name) => Some(name.to_string()),
        ExprKind::Select { operand, field, test: false } => {
            qualified(operand).map(|prefix| format!("{prefix}.{field}"))
        }
        _ => None,
    }
}
