//! `optMap` and `optFlatMap`.

use super::{Expander, Macro, simple_name, to_array};
use crate::ast::{Expr, operator};
use crate::diagnostics::Issue;

/// Macros of optional values.
pub const OPTIONALS: [Macro; 2] =
    [Macro::member("optMap", 2, expand_optional_map), Macro::member("optFlatMap", 2, expand_optional_map)];

fn expand_optional_map(
    expander: &mut Expander<'_>,
    target: Option<Expr>,
    arguments: Vec<Expr>,
    name: &str,
) -> Result<Expr, Issue> {
    let [variable, body] = to_array(arguments)?;
    let target = target.ok_or_else(|| Issue::without_position("macro without receiver"))?;
    let Some(variable) = simple_name(&variable) else {
        return Err(expander.issue(&variable, format!("{name}() variable name must be a simple identifier")));
    };
    let again = expander.copy(&target)?;
    let present = expander.member_call("hasValue", target, Vec::new());
    let value = expander.member_call("value", again, Vec::new());
    let mut mapped = expander.binding(&variable, value, body);
    if name == "optMap" {
        mapped = expander.call("optional.of", vec![mapped]);
    }
    let none = expander.call("optional.none", Vec::new());
    Ok(expander.call(operator::CONDITIONAL, vec![present, mapped, none]))
}
