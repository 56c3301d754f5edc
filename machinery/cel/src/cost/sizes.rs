//! Sizes of parts: literals, values with limits in the schema, scalars, local variables.

use super::{AstNode, Coster, EntrySize, Path};
use crate::ast::{Expr, ExprKind};
use crate::size::SizeEstimate;
use crate::types::Type;
use crate::value::Value;

impl Coster<'_> {
    pub(super) fn path(&self, expr: &Expr) -> Path {
        if let ExprKind::Ident(name) = &expr.kind
            && let Some(local) = self.scopes.find(name)
        {
            return local.path.clone();
        }
        self.paths[expr.id].clone()
    }

    pub(super) fn size_or_unknown(&mut self, expr: &Expr) -> SizeEstimate {
        self.size(expr).unwrap_or(SizeEstimate::UNKNOWN)
    }

    pub(super) fn size(&mut self, expr: &Expr) -> Option<SizeEstimate> {
        if let Some(size) = self.sizes[expr.id].or_else(|| literal_size(expr)) {
            return Some(size);
        }
        let ty = self.checked.type_of(expr);
        let path = self.path(expr);
        if let Some(size) = self.estimator.size(AstNode { path: &path, ty }) {
            self.sizes[expr.id] = Some(size);
            return Some(size);
        }
        if is_scalar(ty) {
            return Some(SizeEstimate::fixed(1));
        }
        match &expr.kind {
            ExprKind::Ident(name) => self.scopes.find(name).and_then(|local| local.size),
            _ => None,
        }
    }

    pub(super) fn entries(&self, expr: &Expr) -> Option<EntrySize> {
        self.entries[expr.id].or_else(|| match &expr.kind {
            ExprKind::Ident(name) => self.scopes.find(name).and_then(|local| local.entries),
            _ => None,
        })
    }

    pub(super) fn set_size(&mut self, expr: &Expr, size: Option<SizeEstimate>) {
        if size.is_some() {
            self.sizes[expr.id] = size;
        }
    }

    pub(super) fn set_entries(&mut self, expr: &Expr, entries: Option<EntrySize>) {
        if entries.is_some() {
            self.entries[expr.id] = entries;
        }
    }

    pub(super) fn copy_sizes(&mut self, to: &Expr, from: &Expr) {
        let size = self.size(from);
        self.set_size(to, size);
        let entries = self.entries(from);
        self.set_entries(to, entries);
    }
}

fn literal_size(expr: &Expr) -> Option<SizeEstimate> {
    let size = match &expr.kind {
        ExprKind::Literal(Value::String(text)) => text.characters(),
        ExprKind::Literal(Value::Bytes(bytes)) => bytes.len() as u64,
        ExprKind::Literal(_) => 1,
        ExprKind::List(items) => items.len() as u64,
        ExprKind::Map(entries) => entries.len() as u64,
        _ => return None,
    };
    Some(SizeEstimate::fixed(size))
}

fn is_scalar(ty: &Type) -> bool {
    match ty {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        other => other.optional_of().is_some_and(is_scalar),
    }
}
