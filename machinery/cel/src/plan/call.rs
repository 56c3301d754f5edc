//! Calls of a plan: selection of the overload, and cost function.

use super::node::{CallNode, Node};
use crate::error::EvalError;
use crate::function::{CostFn, Overload};
use crate::value::Value;

/// Functions whose second argument is a regular expression.
const PATTERNS: [&str; 3] = ["matches", "find", "findAll"];
/// Replacement for an argument in error, for costs: a value of size one.
pub(crate) const IN_ERROR: Value<'static> = Value::Bool(false);

impl CallNode {
    /// Returns the literal regular expression in the second argument, if any.
    pub fn pattern(&self) -> Option<&str> {
        match self.arguments.get(1) {
            Some(Node::Constant(Value::String(pattern))) if PATTERNS.contains(&&*self.name) => Some(pattern),
            _ => None,
        }
    }

    /// True if the second argument is a regular expression.
    #[cfg(feature = "regex")]
    pub fn takes_pattern(&self) -> bool {
        PATTERNS.contains(&&*self.name)
    }

    /// True if each run returns the same result: all arguments are constants, and all possible overloads are pure.
    pub fn is_constant(&self) -> bool {
        let constant = |node: &Node| matches!(node, Node::Constant(_) | Node::Computed(_));
        !self.overloads.is_empty()
            && self.overloads.iter().all(|overload| overload.pure)
            && self.arguments.iter().all(constant)
    }

    /// Returns the overload that accepts these values.
    pub(crate) fn overload_for(&self, arguments: &[Value<'_>]) -> Result<&Overload, EvalError> {
        // The function checks the items of the list itself.
        let any = matches!(&*self.name, "sort" | "@sortByAssociatedKeys")
            && matches!(arguments.first(), Some(Value::List(_)));
        let found = self.overloads.iter().find(|candidate| any || accepts_arguments(candidate, arguments));
        found.map(|overload| &**overload).ok_or_else(|| match self.pattern() {
            // A precompiled pattern checks its argument itself.
            Some(_) => EvalError::no_such_overload(),
            None => no_overload(&self.name, arguments),
        })
    }

    /// Returns the cost of a call that is not made because of an argument in error or a missing overload.
    pub(crate) fn cost(&self, arguments: &[Value<'_>]) -> u64 {
        self.cost_fn().map_or(1, |cost| cost(arguments, &IN_ERROR))
    }

    /// True if any possible overload is external.
    pub(crate) fn is_external(&self) -> bool {
        self.overloads.iter().any(|overload| overload.external)
    }

    /// Returns the cost function of the only overload, or of all overloads of the name.
    pub(crate) fn cost_fn(&self) -> Option<CostFn> {
        let only = self.overloads.len() == 1;
        self.overloads.last().filter(|overload| only || overload.cost_by_name)?.cost
    }
}

fn accepts_arguments(overload: &Overload, arguments: &[Value<'_>]) -> bool {
    overload.parameters.len() == arguments.len()
        && overload.parameters.iter().zip(arguments).all(|(parameter, argument)| argument.is_of(parameter))
}

/// Returns the error of a missing overload. Errors of operators do not contain the argument types, errors of functions do.
fn no_overload(name: &str, arguments: &[Value<'_>]) -> EvalError {
    let first = arguments.first();
    // As in cel-go, strings and times handle all receiver calls themselves and report the generic error.
    let is_generic_receiver =
        matches!(first, Some(Value::String(_) | Value::Timestamp(_) | Value::Duration(_)));
    match name {
        "contains" | "startsWith" | "endsWith" => return EvalError::no_such_overload(),
        "size" | "matches" | "sort" if is_generic_receiver => return EvalError::no_such_overload(),
        "size" | "matches" | "sort" => return EvalError::new(format!("no such overload: {name}")),
        "flatten" => return flatten_error(arguments),
        _ => {}
    }
    if name.contains('_') || name.starts_with('@') {
        return if is_generic_receiver || first.is_some_and(|first| has_trait(name, first)) {
            EvalError::no_such_overload()
        } else {
            EvalError::new(format!("no such overload: {name}"))
        };
    }
    let types: Vec<String> = arguments.iter().map(|argument| argument.type_of().name().to_owned()).collect();
    EvalError::new(format!("no such overload: {name}({})", types.join(", ")))
}

/// `flatten` checks its arguments itself, and reports them in its own form.
fn flatten_error(arguments: &[Value<'_>]) -> EvalError {
    let names: Vec<String> = arguments.iter().map(|argument| argument.type_of().name().to_owned()).collect();
    let (first, rest) = names.split_first().map_or(("", &[][..]), |(first, rest)| (first, rest));
    EvalError::new(format!("no such overload: {first}.flatten({})", rest.join(", ")))
}

/// True if the type of the first argument supports the operator.
fn has_trait(name: &str, first: &Value<'_>) -> bool {
    use Value::{Bool, Bytes, Double, Duration, Int, List, String, Timestamp, Uint};
    let number = matches!(first, Int(_) | Uint(_) | Double(_));
    match name {
        "_+_" => number || matches!(first, String(_) | Bytes(_) | List(_) | Duration(_) | Timestamp(_)),
        "_-_" => number || matches!(first, Duration(_) | Timestamp(_)),
        "_*_" | "_/_" => number,
        "_%_" => matches!(first, Int(_) | Uint(_)),
        "_<_" | "_<=_" | "_>_" | "_>=_" => {
            number || matches!(first, Bool(_) | String(_) | Bytes(_) | Duration(_) | Timestamp(_))
        }
        _ => true,
    }
}
