//! Validation of literal format strings with literal arguments: rejects those that always fail.

use crate::ast::{Expr, ExprKind, Item};
use crate::check::CheckedAst;
use crate::diagnostics::Issue;
use crate::library::strings::{Clause, Format, Verb, refusal, visit_clauses as walk_clauses};
use crate::types::Type;
use crate::value::Value;
use crate::walk;

/// Validates literal format strings with their literal lists of arguments.
pub(crate) fn literal_formats(checked: &CheckedAst) -> Vec<Issue> {
    let mut issues = Vec::new();
    walk::visit_nodes(&checked.expr, &mut |expr| {
        let Some((text, arguments)) = literal_format(expr) else { return };
        let mut checker = Checker { checked, arguments, at: expr };
        match walk_clauses(text, &mut checker) {
            Err(message) => issues.push(Issue::at(checked.offsets[checker.at.id], message)),
            Ok(clauses) if clauses < arguments.len() => {
                let count = arguments.len();
                issues.push(Issue::at(
                    checked.offsets[expr.id],
                    format!("too many arguments supplied to string.format (expected {clauses}, got {count})"),
                ));
            }
            Ok(_) => {}
        }
    });
    issues
}

fn literal_format(expr: &Expr) -> Option<(&str, &[Item])> {
    let ExprKind::Call { function, target: Some(target), arguments } = &expr.kind else { return None };
    match (&target.kind, &arguments[..]) {
        (ExprKind::Literal(Value::String(text)), [Expr { kind: ExprKind::List(items), .. }])
            if &**function == "format" =>
        {
            Some((text, items))
        }
        _ => None,
    }
}

struct Checker<'c> {
    checked: &'c CheckedAst,
    arguments: &'c [Item],
    /// Location of an error: the call, or an argument.
    at: &'c Expr,
}

impl Format for Checker<'_> {
    const ARGUMENTS_FIRST: bool = false;

    fn arguments(&self) -> usize {
        self.arguments.len()
    }

    fn text(&mut self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn clause(&mut self, index: usize, clause: Clause) -> Result<(), String> {
        let Some(argument) = self.arguments.get(index) else { return Ok(()) };
        let wrong = match clause.verb {
            Verb::String => unprintable(self.checked, &argument.value),
            verb => (!accepts(verb, self.checked.type_of(&argument.value))).then_some(&argument.value),
        };
        let Some(wrong) = wrong else { return Ok(()) };
        self.at = wrong;
        Err(refusal(clause.verb, self.checked.type_of(wrong).name()))
    }
}

fn accepts(verb: Verb, ty: &Type) -> bool {
    use Type::{Bool, Bytes, Double, Dyn, Int, String, Uint};
    match verb {
        Verb::Decimal | Verb::Octal => matches!(ty, Dyn | Int | Uint),
        // Names such as `NaN` represent numbers without a literal.
        Verb::Fixed | Verb::Scientific => matches!(ty, Dyn | Double | String),
        Verb::Binary => matches!(ty, Dyn | Int | Uint | Bool),
        Verb::Hex { .. } => matches!(ty, Dyn | Int | Uint | String | Bytes),
        Verb::String => !matches!(ty, Type::Object(_) | Type::Opaque(..)),
    }
}

/// Returns the first part of a value that cannot be formatted as a string; literal lists and maps are searched.
fn unprintable<'c>(checked: &CheckedAst, expr: &'c Expr) -> Option<&'c Expr> {
    if !accepts(Verb::String, checked.type_of(expr)) {
        return Some(expr);
    }
    match &expr.kind {
        ExprKind::List(items) => items.iter().find_map(|item| unprintable(checked, &item.value)),
        ExprKind::Map(entries) => entries
            .iter()
            .flat_map(|entry| [&entry.key, &entry.value])
            .find_map(|part| unprintable(checked, part)),
        _ => None,
    }
}
