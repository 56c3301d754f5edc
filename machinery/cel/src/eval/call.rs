//! Calls: which overload takes the values, what it returns, what it costs.

use smallvec::SmallVec;

use super::{Evaluated, Evaluator};
use crate::plan::CallNode;
use crate::{Call, EvalError, Overload, Value};

impl<'e, 'v> Evaluator<'e, 'v> {
    pub(super) fn call(&mut self, node: &'e CallNode) -> Evaluated<'v> {
        let mut arguments: SmallVec<[Value<'v>; 3]> = SmallVec::new();
        let (last, mut error) = (node.arguments.len().saturating_sub(1), None);
        for (index, argument) in node.arguments.iter().enumerate() {
            match self.run(argument) {
                Ok(value) => arguments.push(value),
                // Where nothing is looked at behind it, the call is free.
                Err(failure) if failure.is_absorbable() && (!node.stops || index == last) => {
                    arguments.push(IN_ERROR);
                    error = error.or(Some(failure));
                }
                Err(failure) => return Err(failure),
            }
        }
        if let Some(error) = error {
            self.charge(node.cost(&arguments))?;
            return Err(error);
        }
        let overload = match &node.overloads[..] {
            [only] if node.exact => only,
            candidates => match candidates.iter().find(|candidate| takes(candidate, &arguments)) {
                Some(found) => found,
                None => {
                    self.charge(node.cost(&arguments))?;
                    return Err(no_overload(node.name, &arguments));
                }
            },
        };
        let budget = self.limit.saturating_sub(self.cost);
        let result = (overload.run)(&Call { arguments: &arguments, budget });
        let counted = overload.cost_by_name || node.overloads.len() == 1;
        let cost = match (&result, overload.cost) {
            (Ok(result), Some(cost)) if counted => cost(&arguments, result),
            (Err(_), Some(cost)) if counted => cost(&arguments, &IN_ERROR),
            _ => 1,
        };
        self.charge(cost)?;
        result
    }
}

/// What costs take for a value in error, which is of size one.
const IN_ERROR: Value<'static> = Value::Bool(false);

impl CallNode {
    /// What a call costs that is not made: an argument is in error, or no overload takes them.
    fn cost(&self, arguments: &[Value<'_>]) -> u64 {
        let only = self.overloads.len() == 1;
        let known = self.overloads.first().filter(|overload| only || overload.cost_by_name);
        known.and_then(|overload| overload.cost).map_or(1, |cost| cost(arguments, &IN_ERROR))
    }
}

fn takes(overload: &Overload, arguments: &[Value<'_>]) -> bool {
    overload.parameters.len() == arguments.len()
        && overload.parameters.iter().zip(arguments).all(|(parameter, argument)| argument.is_of(parameter))
}

/// Operators say only that there is none; functions what they were called with.
fn no_overload(name: &str, arguments: &[Value<'_>]) -> EvalError {
    if name.contains('_') || name.starts_with('@') {
        let suited = arguments.first().is_some_and(|first| has_trait(name, first));
        return if suited {
            EvalError::no_such_overload()
        } else {
            EvalError::new(format!("no such overload: {name}"))
        };
    }
    match name {
        // Called on whatever there is.
        "contains" | "startsWith" | "endsWith" => return EvalError::no_such_overload(),
        "size" | "matches" => return EvalError::new(format!("no such overload: {name}")),
        _ => {}
    }
    let types: Vec<String> = arguments.iter().map(|argument| argument.type_of().name().to_owned()).collect();
    EvalError::new(format!("no such overload: {name}({})", types.join(", ")))
}

/// Whether values of the first argument's type know the operator at all.
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
