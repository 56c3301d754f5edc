//! Arguments of a call, for estimates of overloads.

use std::sync::Arc;

use super::{AstNode, Coster, Path, SizeEstimator};
use crate::ast::{ACCUMULATOR, Expr, ExprKind};
use crate::function::CallSizes;
use crate::size::SizeEstimate;
use crate::types::Type;

/// Argument of a call.
struct Argument<'c> {
    ty: &'c Type,
    path: Path,
    size: Option<SizeEstimate>,
    literal: Option<i64>,
}

/// All arguments of a call.
pub(super) struct Arguments<'c> {
    target: Option<Argument<'c>>,
    arguments: Vec<Argument<'c>>,
    estimator: &'c dyn SizeEstimator,
}

impl<'c> Arguments<'c> {
    pub fn of(coster: &mut Coster<'c>, target: Option<&Expr>, arguments: &[Expr]) -> Self {
        Self {
            target: target.map(|target| argument(coster, target)),
            arguments: arguments.iter().map(|expr| argument(coster, expr)).collect(),
            estimator: coster.estimator,
        }
    }

    /// Returns the type and size of the items of a list, or of the first parameter of a type.
    fn items(&self, of: &Argument<'c>) -> Option<(Type, SizeEstimate)> {
        let ty = of.ty.parameters().into_iter().next()?;
        let path: Path = match of.path.is_empty() {
            true => Vec::new(),
            false => of.path.iter().cloned().chain([Arc::from("@items")]).collect(),
        };
        let size = self.estimator.size(AstNode { path: &path, ty });
        Some((ty.clone(), size.unwrap_or(SizeEstimate::UNKNOWN)))
    }
}

fn argument<'c>(coster: &mut Coster<'c>, expr: &Expr) -> Argument<'c> {
    let size = coster.size(expr);
    let path = coster.path(expr);
    // Values derived from an accumulator do not come from a variable.
    let path = if path.first().is_some_and(|first| **first == *ACCUMULATOR) { Vec::new() } else { path };
    Argument { ty: coster.checked.type_of(expr), path, size, literal: literal_int(expr) }
}

impl CallSizes for Arguments<'_> {
    fn target(&self) -> Option<SizeEstimate> {
        self.target.as_ref().map(|target| target.size.unwrap_or(SizeEstimate::UNKNOWN))
    }

    fn arguments(&self) -> usize {
        self.arguments.len()
    }

    fn argument(&self, index: usize) -> SizeEstimate {
        self.known_size(Some(index)).unwrap_or(SizeEstimate::UNKNOWN)
    }

    fn target_type(&self) -> Option<&Type> {
        self.target.as_ref().map(|target| target.ty)
    }

    fn argument_type(&self, index: usize) -> Option<&Type> {
        self.arguments.get(index).map(|argument| argument.ty)
    }

    fn target_items(&self) -> Option<(Type, SizeEstimate)> {
        self.target.as_ref().and_then(|target| self.items(target))
    }

    fn argument_items(&self, index: usize) -> Option<(Type, SizeEstimate)> {
        self.arguments.get(index).and_then(|argument| self.items(argument))
    }

    fn literal_int(&self, index: usize) -> Option<i64> {
        self.arguments.get(index).and_then(|argument| argument.literal)
    }

    fn known_size(&self, index: Option<usize>) -> Option<SizeEstimate> {
        match index {
            Some(index) => self.arguments.get(index)?.size,
            None => self.target.as_ref()?.size,
        }
    }
}

/// Returns the value of an argument that is a literal integer.
fn literal_int(expr: &Expr) -> Option<i64> {
    match &expr.kind {
        ExprKind::Literal(crate::value::Value::Int(value)) => Some(*value),
        _ => None,
    }
}
