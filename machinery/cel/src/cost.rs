//! Estimates of the cost of an expression before it runs: cel-go's algorithm with kube-apiserver's numbers.
//!
//! The numbers decide which rules kube-apiserver accepts and appear in its messages, so they are reproduced exactly.

mod calls;
mod declared;
mod entry;
mod folds;
mod node;
mod scopes;
mod sizes;

use std::sync::Arc;

use crate::ast::{Entry, Expr, ExprKind, Item};
use crate::check::CheckedAst;
use crate::size::{CostEstimate, LIST_CREATE, MAP_CREATE, SELECT_AND_IDENT, STRUCT_CREATE, SizeEstimate};
use crate::types::Type;
pub use declared::DeclaredSizes;
use entry::{EntrySize, Path};
use scopes::Scopes;

/// A part of an expression, for [`SizeEstimator::size`].
#[derive(Clone, Copy, Debug)]
pub struct AstNode<'n> {
    /// Path from a variable: its name, then names of fields, `@items`, `@keys`, `@values` or `@indices`.
    /// Empty for computed values.
    pub path: &'n [Arc<str>],
    /// Type of the part.
    pub ty: &'n Type,
}

/// Source of the sizes of variables and of their parts.
pub trait SizeEstimator {
    /// Returns the size of a part in characters, bytes, items or entries, if known.
    fn size(&self, of: AstNode<'_>) -> Option<SizeEstimate>;
}

/// Estimates a checked expression.
pub(crate) fn estimate(checked: &CheckedAst, sizes: &dyn SizeEstimator) -> CostEstimate {
    let nodes = checked.offsets.len();
    let mut coster = Coster {
        checked,
        estimator: sizes,
        paths: vec![Vec::new(); nodes],
        sizes: vec![None; nodes],
        entries: vec![None; nodes],
        scopes: Scopes::default(),
    };
    coster.cost(&checked.expr)
}

struct Coster<'c> {
    checked: &'c CheckedAst,
    estimator: &'c dyn SizeEstimator,
    paths: Vec<Path>,
    sizes: Vec<Option<SizeEstimate>>,
    entries: Vec<Option<EntrySize>>,
    scopes: Scopes,
}

impl Coster<'_> {
    fn cost(&mut self, expr: &Expr) -> CostEstimate {
        match &expr.kind {
            ExprKind::Literal(_) | ExprKind::Broken => CostEstimate::ZERO,
            ExprKind::Ident(name) => self.ident(expr, name),
            ExprKind::Select { operand, field, test } => self.select(expr, operand, field, *test),
            ExprKind::Call { function, target, arguments } => {
                self.call(expr, function, target.as_deref(), arguments)
            }
            ExprKind::List(items) => self.list(expr, items),
            ExprKind::Map(entries) => self.map(expr, entries),
            ExprKind::Struct { fields, .. } => fields
                .iter()
                .fold(CostEstimate::fixed(STRUCT_CREATE), |sum, field| sum.plus(self.cost(&field.value))),
            ExprKind::Comprehension(fold) if fold.is_binding() => self.binding(expr, fold),
            ExprKind::Comprehension(fold) => self.fold(expr, fold),
        }
    }

    fn ident(&mut self, expr: &Expr, name: &Arc<str>) -> CostEstimate {
        self.paths[expr.id] =
            self.scopes.find(name).map_or_else(|| vec![name.clone()], |local| local.path.clone());
        CostEstimate::fixed(SELECT_AND_IDENT)
    }

    fn select(&mut self, expr: &Expr, operand: &Expr, field: &Arc<str>, test: bool) -> CostEstimate {
        let cost = self.cost(operand);
        if test {
            return cost;
        }
        let mut path = self.path(operand);
        path.push(field.clone());
        self.paths[expr.id] = path;
        match self.checked.type_of(operand) {
            Type::Map(_) | Type::Object(_) | Type::Param(_) => {
                cost.plus(CostEstimate::fixed(SELECT_AND_IDENT))
            }
            _ => cost,
        }
    }

    fn list(&mut self, expr: &Expr, items: &[Item]) -> CostEstimate {
        let mut sum = CostEstimate::ZERO;
        let mut size = initial_size(items.is_empty());
        for item in items {
            sum = sum.plus(self.cost(&item.value));
            size = size.union(self.size_or_unknown(&item.value));
        }
        self.entries[expr.id] = Some(EntrySize { list: true, key: SizeEstimate::fixed(1), value: size });
        sum.plus(CostEstimate::fixed(LIST_CREATE))
    }

    fn map(&mut self, expr: &Expr, entries: &[Entry]) -> CostEstimate {
        let mut sum = CostEstimate::ZERO;
        let (mut key, mut value) = (initial_size(entries.is_empty()), initial_size(entries.is_empty()));
        for entry in entries {
            sum = sum.plus(self.cost(&entry.key)).plus(self.cost(&entry.value));
            key = key.union(self.size_or_unknown(&entry.key));
            value = value.union(self.size_or_unknown(&entry.value));
        }
        self.entries[expr.id] = Some(EntrySize { list: false, key, value });
        sum.plus(CostEstimate::fixed(MAP_CREATE))
    }
}

/// Returns the neutral element of the union of sizes.
fn initial_size(empty: bool) -> SizeEstimate {
    SizeEstimate::new(if empty { 0 } else { u64::MAX }, 0)
}

#[cfg(feature = "kubernetes")]
#[cfg(test)]
mod tests;
