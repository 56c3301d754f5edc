//! Limits of recursion: of the grammar rules as counted by cel-go, and of the whole tree, so that walks over trees can be
//! recursive functions.

use crate::ast::Expr;
use crate::diagnostics::Issue;
use crate::walk::children;

/// Levels of nesting in an expression, also after macros are expanded.
///
/// Limit (Expressions): the expression is rejected.
pub(super) const MAX_DEPTH: usize = 250;

/// Current nesting of each recursive rule.
#[derive(Debug, Default)]
pub(super) struct Depth {
    pub expr: usize,
    pub relation: usize,
    pub calc: usize,
    pub member: usize,
}

/// Enters one level of a rule.
pub(super) fn enter(rule: &mut usize) -> Result<(), Issue> {
    *rule += 1;
    if *rule > MAX_DEPTH {
        return Err(Issue::without_position(format!("expression recursion limit exceeded: {MAX_DEPTH}")));
    }
    Ok(())
}

/// True if a tree is too deep. Iterates level by level, without recursion.
pub(super) fn too_deep(expr: &Expr) -> bool {
    let mut level = vec![expr];
    for _ in 0..MAX_DEPTH {
        level = level.into_iter().flat_map(children).collect();
        if level.is_empty() {
            return false;
        }
    }
    true
}
