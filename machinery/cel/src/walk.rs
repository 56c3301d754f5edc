//! Walks over trees. The parser limits the depth of trees, so the walks are recursive.

use crate::ast::{Expr, ExprKind};

/// Visits each node, parents first.
pub(crate) fn visit_nodes<'e>(expr: &'e Expr, visit: &mut impl FnMut(&'e Expr)) {
    visit(expr);
    for child in children(expr) {
        visit_nodes(child, visit);
    }
}

/// Visits each node, parents first, to change it; ids of object fields are changed with their values.
pub(crate) fn each_mut(expr: &mut Expr, visit: &mut impl FnMut(&mut Expr)) {
    visit(expr);
    match &mut expr.kind {
        ExprKind::Literal(_) | ExprKind::Ident(_) | ExprKind::Broken => {}
        ExprKind::Select { operand, .. } => each_mut(operand, visit),
        ExprKind::Call { target, arguments, .. } => {
            target.iter_mut().for_each(|target| each_mut(target, visit));
            arguments.iter_mut().for_each(|argument| each_mut(argument, visit));
        }
        ExprKind::List(items) => items.iter_mut().for_each(|item| each_mut(&mut item.value, visit)),
        ExprKind::Map(entries) => entries.iter_mut().for_each(|entry| {
            each_mut(&mut entry.key, visit);
            each_mut(&mut entry.value, visit);
        }),
        ExprKind::Struct { fields, .. } => {
            fields.iter_mut().for_each(|field| each_mut(&mut field.value, visit))
        }
        ExprKind::Comprehension(fold) => {
            for part in
                [&mut fold.range, &mut fold.start, &mut fold.condition, &mut fold.step, &mut fold.result]
            {
                each_mut(part, visit);
            }
        }
    }
}

/// Returns the children of a node.
pub(crate) fn children(expr: &Expr) -> Vec<&Expr> {
    match &expr.kind {
        ExprKind::Literal(_) | ExprKind::Ident(_) | ExprKind::Broken => Vec::new(),
        ExprKind::Select { operand, .. } => vec![operand],
        ExprKind::Call { target, arguments, .. } => {
            target.iter().map(|target| &**target).chain(arguments).collect()
        }
        ExprKind::List(items) => items.iter().map(|item| &item.value).collect(),
        ExprKind::Map(entries) => entries.iter().flat_map(|entry| [&entry.key, &entry.value]).collect(),
        ExprKind::Struct { fields, .. } => fields.iter().map(|field| &field.value).collect(),
        ExprKind::Comprehension(fold) => {
            vec![&fold.range, &fold.start, &fold.condition, &fold.step, &fold.result]
        }
    }
}
