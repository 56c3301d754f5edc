//! Qualified names.

use crate::ast::{Expr, ExprKind};

/// Returns the dotted name that a chain of selections forms, if it is one.
pub(super) fn qualified_name(expr: &Expr) -> Option<String> {
    match &expr.kind {
        ExprKind::Ident(name) => Some(name.to_string()),
        ExprKind::Select { operand, field, test: false } => {
            qualified_name(operand).map(|prefix| format!("{prefix}.{field}"))
        }
        _ => None,
    }
}
