//! `cel.bind`, and `sortBy` which binds its input.

use super::{Expander, Macro, folds, simple_name, to_array};
use crate::ast::{Expr, ExprKind};
use crate::diagnostics::Issue;

/// `cel.bind(name, value, body)`; not part of the languages of kube-apiserver's releases.
pub const BIND: Macro = Macro::member("bind", 3, bind);
/// `list.sortBy(x, key)`.
pub const SORT_BY: Macro = Macro::member("sortBy", 2, sort_by);

const INPUT: &str = "@__sortBy_input__";

fn bind(
    expander: &mut Expander<'_>,
    target: Option<Expr>,
    arguments: Vec<Expr>,
    name: &str,
) -> Result<Expr, Issue> {
    let on_cel = matches!(&target, Some(Expr { kind: ExprKind::Ident(of), .. }) if &**of == "cel");
    if !on_cel {
        let target = target.ok_or_else(|| Issue::without_position("macro without receiver"))?;
        return Ok(expander.member_call(name, target, arguments));
    }
    let [variable, value, body] = to_array(arguments)?;
    match simple_name(&variable) {
        Some(variable) => Ok(expander.binding(&variable, value, body)),
        None => Err(expander.issue(&variable, "cel.bind() variable names must be simple identifiers")),
    }
}

fn sort_by(
    expander: &mut Expander<'_>,
    target: Option<Expr>,
    arguments: Vec<Expr>,
    _: &str,
) -> Result<Expr, Issue> {
    let target = target.ok_or_else(|| Issue::without_position("macro without receiver"))?;
    if matches!(target.kind, ExprKind::Literal(_) | ExprKind::Map(_) | ExprKind::Struct { .. }) {
        let message =
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
        return Err(expander.issue(&target, message));
    }
    let input = expander.ident(INPUT);
    let keys = folds::expand_map(expander, Some(input), arguments, "map")?;
    let input = expander.ident(INPUT);
    let sorted = expander.member_call("@sortByAssociatedKeys", input, vec![keys]);
    Ok(expander.binding(INPUT, target, sorted))
}
