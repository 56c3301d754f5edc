//! Calls of a plan: which overload takes the values, and what counts the cost.

use super::node::{CallNode, Node};
use crate::error::EvalError;
use crate::function::{CostFn, Overload};
use crate::value::Value;

/// Functions whose second argument is a regular expression.
const PATTERNS: [&str; 3] = ["matches", "find", "findAll"];
/// Replacement for an argument in error, for costs: a value of size one.
pub(crate) const IN_ERROR: Value<'static> = Value::Bool(false);

impl CallNode {
    /// The regular expression that is written out as its second argument.
    pub fn pattern(&self) -> Option<&str> {
        match self.arguments.get(1) {
            Some(Node::Constant(Value::String(pattern))) if PATTERNS.contains(&&*self.name) => Some(pattern),
            _ => None,
        }
    }

    /// True if its second argument is a regular expression.
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

    /// The overload that takes these values.
    pub(crate) fn taking(&self, arguments: &[Value<'_>]) -> Result<&Overload, EvalError> {
        // The function checks the items of the list itself.
        let any = matches!(&*self.name, "sort" | "@sortByAssociatedKeys")
            && matches!(arguments.first(), Some(Value::List(_)));
        let found = self.overloads.iter().find(|candidate| any || takes(candidate, arguments));
        found.map(|overload| &**overload).ok_or_else(|| match self.pattern() {
            // A precompiled pattern checks its argument itself.
            Some(_) => EvalError::no_such_overload(),
            None => no_overload(&self.name, arguments),
        })
    }

    /// Returns the cost of a call that is not made because of an argument in error or a missing overload.
    pub(crate) fn cost(&self, arguments: &[Value<'_>]) -> u64 {
        self.coster().map_or(1, |cost| cost(arguments, &IN_ERROR))
    }

    /// True if any possible overload asks.
    pub(crate) fn asks(&self) -> bool {
        self.overloads.iter().any(|overload| overload.asks)
    }

    /// Returns the cost function of the only overload, or of all overloads of the name.
    pub(crate) fn coster(&self) -> Option<CostFn> {
        let only = self.overloads.len() == 1;
        self.overloads.last().filter(|overload| only || overload.cost_by_name)?.cost
    }
}

fn takes(overload: &Overload, arguments: &[Value<'_>]) -> bool {
    overload.parameters.len() == arguments.len()
        && overload.parameters.iter().zip(arguments).all(|(parameter, argument)| argument.is_of(parameter))
}

/// Operators say only that there is none; functions what they were called with.
fn no_overload(name: &str, arguments: &[Value<'_>]) -> EvalError {
    let first = arguments.first();
    // Texts and times are asked, whatever they are asked; others only for what they know.
    let asked = matches!(first, Some(Value::String(_) | Value::Timestamp(_) | Value::Duration(_)));
    match name {
        "contains" | "startsWith" | "endsWith" => return EvalError::no_such_overload(),
        "size" | "matches" | "sort" if asked => return EvalError::no_such_overload(),
        "size" | "matches" | "sort" => return EvalError::new(format!("no such overload: {name}")),
        "flatten" => return flattened(arguments),
        _ => {}
    }
    if name.contains('_') || name.starts_with('@') {
        return if asked || first.is_some_and(|first| has_trait(name, first)) {
            EvalError::no_such_overload()
        } else {
            EvalError::new(format!("no such overload: {name}"))
        };
    }
    let types: Vec<String> = arguments.iter().map(|argument| argument.type_of().name().to_owned()).collect();
    EvalError::new(format!("no such overload: {name}({})", types.join(", ")))
}

/// `flatten` checks its arguments itself, and reports them in its own form.
fn flattened(arguments: &[Value<'_>]) -> EvalError {
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
