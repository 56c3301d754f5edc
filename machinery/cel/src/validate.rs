//! Validation of literals after type checking.

mod formats;

use crate::ast::{Expr, ExprKind};
use crate::check::CheckedAst;
use crate::diagnostics::Issue;
use crate::language::Language;
use crate::meter::Meter;
use crate::types::Type;
use crate::value::{Duration, Timestamp, Value};
use crate::walk;
use formats::literal_formats;

/// Function whose arguments may be of different types.
const FORMAT_FUNCTION: &str = "format";

/// Checks literals of durations, timestamps and regular expressions, and that list and map literals hold one type. The meter
/// pays for compiling the regular expressions.
pub(crate) fn validate(checked: &CheckedAst, meter: &Meter) -> Vec<Issue> {
    let mut issues = Vec::new();
    walk::visit_nodes(&checked.expr, &mut |expr| {
        if let ExprKind::Call { function, arguments, .. } = &expr.kind
            && let Some(argument) = arguments.first()
            && let ExprKind::Literal(literal) = &argument.kind
            && !literal_works(function, literal, (&checked.language, meter))
        {
            issues.push(Issue::at(checked.offsets[argument.id], format!("invalid {function} argument")));
        }
    });
    if checked.language.is_uniform() {
        require_one_type(checked, &checked.expr, &mut issues);
    }
    issues.extend(literal_formats(checked));
    issues
}

#[cfg_attr(not(feature = "regex"), expect(unused_variables, reason = "there are no patterns"))]
fn literal_works(function: &str, literal: &Value<'_>, (language, meter): (&Language, &Meter)) -> bool {
    match (function, literal) {
        ("duration", Value::String(text)) => Duration::parse(text).is_some(),
        ("duration", Value::Int(_)) => false,
        ("timestamp", Value::String(text)) => {
            Timestamp::parse(text).is_some_and(|at| Timestamp::at(at.seconds, at.nanos).is_ok())
        }
        ("timestamp", Value::Int(seconds)) => Timestamp::at(*seconds, 0).is_ok(),
        #[cfg(feature = "regex")]
        ("matches", Value::String(pattern)) => language.pattern_cache().is_pattern(pattern, meter),
        _ => true,
    }
}

fn require_one_type(checked: &CheckedAst, expr: &Expr, issues: &mut Vec<Issue>) {
    match &expr.kind {
        ExprKind::Call { function, .. } if &**function == FORMAT_FUNCTION => return,
        ExprKind::List(items) => {
            let types = items
                .iter()
                .map(|item| (&item.value, value_type(checked.type_of(&item.value), item.optional)));
            same_types(checked, types, true, issues);
        }
        ExprKind::Map(entries) => {
            let keys = entries.iter().map(|entry| (&entry.key, checked.type_of(&entry.key)));
            same_types(checked, keys, false, issues);
            let values = entries
                .iter()
                .map(|entry| (&entry.value, value_type(checked.type_of(&entry.value), entry.optional)));
            same_types(checked, values, false, issues);
        }
        _ => {}
    }
    for child in walk::children(expr) {
        require_one_type(checked, child, issues);
    }
}

fn value_type(ty: &Type, optional: bool) -> &Type {
    if optional { ty.optional_of().unwrap_or(ty) } else { ty }
}

fn same_types<'c>(
    checked: &CheckedAst,
    mut types: impl Iterator<Item = (&'c Expr, &'c Type)>,
    first_only: bool,
    issues: &mut Vec<Issue>,
) {
    let Some((_, first)) = types.next() else { return };
    for (expr, ty) in types {
        if ty != first {
            let message = format!("expected type '{first}' but found '{ty}'");
            issues.push(Issue::at(checked.offsets[expr.id], message));
            if first_only {
                return;
            }
        }
    }
}
