//! Sizes from declared types.

use super::{AstNode, SizeEstimator};
use crate::decl::{DeclKind, DeclType};
use crate::size::SizeEstimate;

/// Estimates the sizes of variables from one declaration: all variables, such as `self` and `oldSelf`, have this type.
#[derive(Clone, Copy, Debug)]
pub struct DeclaredSizes<'d>(pub &'d DeclType);

impl SizeEstimator for DeclaredSizes<'_> {
    fn size(&self, of: AstNode<'_>) -> Option<SizeEstimate> {
        let (_, steps) = of.path.split_first()?;
        let mut declaration = self.0;
        for (index, step) in steps.iter().enumerate() {
            declaration = match (&**step, &declaration.kind) {
                ("@items" | "@values", DeclKind::List { items, .. }) => items,
                ("@items" | "@values", DeclKind::Map { values }) => values,
                // Keys are only limited by the size of the request; upstream treats them as empty.
                ("@keys", DeclKind::Map { .. }) => {
                    return (index + 1 == steps.len()).then_some(SizeEstimate::new(0, 0));
                }
                (name, DeclKind::Object(object)) => &object.field_by_escaped_name(name)?.of,
                _ => return None,
            };
        }
        Some(SizeEstimate::new(0, declaration.max_elements))
    }
}
