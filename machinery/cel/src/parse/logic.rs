//! Chains of `&&` and `||` as balanced trees, so that long ones are not deep.

use std::sync::Arc;

use crate::ast::{Expr, ExprKind, Id};

/// Returns a balanced tree of terms; `ids` are those of the operators between them.
pub(super) fn balanced_tree(function: &'static str, terms: Vec<Expr>, ids: &[Id]) -> Expr {
    let name = Arc::from(function);
    let mut terms: Vec<Option<Expr>> = terms.into_iter().map(Some).collect();
    build(&name, &mut terms, ids, 0).unwrap_or(Expr { id: 0, kind: ExprKind::Broken })
}

/// Returns the tree for `ids`, whose first term is `terms[first]`. `None` cannot occur if there is one more term than operators.
fn build(name: &Arc<str>, terms: &mut [Option<Expr>], ids: &[Id], first: usize) -> Option<Expr> {
    if ids.is_empty() {
        return terms.get_mut(first)?.take();
    }
    let middle = ids.len() / 2;
    let left = build(name, terms, &ids[..middle], first)?;
    let right = build(name, terms, &ids[middle + 1..], first + middle + 1)?;
    let kind = ExprKind::Call { function: name.clone(), target: None, arguments: vec![left, right] };
    Some(Expr { id: ids[middle], kind })
}
