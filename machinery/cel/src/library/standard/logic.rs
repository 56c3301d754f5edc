//! Logic and equality: declared here, evaluated by the evaluator itself.

use crate::ast::operator;
use crate::error::EvalError;
use crate::function::{Call, CallEstimate, CallSizes, Function, Overload};
use crate::size::{CostEstimate, STRING_TRAVERSAL, SizeEstimate, scale};
use crate::types::Type;
use crate::value::Value;

pub(super) fn functions() -> Vec<Function> {
    let any = || Type::param("A");
    let two = || vec![Type::Bool, Type::Bool];
    vec![
        Function::new(
            operator::CONDITIONAL,
            vec![Overload::global("conditional", vec![Type::Bool, any(), any()], any(), reject_call)],
        ),
        Function::new(operator::AND, vec![Overload::global("logical_and", two(), Type::Bool, reject_call)]),
        Function::new(operator::OR, vec![Overload::global("logical_or", two(), Type::Bool, reject_call)]),
        Function::new(
            operator::NOT,
            vec![Overload::global("logical_not", vec![Type::Bool], Type::Bool, not)],
        ),
        Function::new(
            operator::NOT_STRICTLY_FALSE,
            vec![Overload::global("not_strictly_false", vec![Type::Bool], Type::Bool, reject_call)],
        ),
        Function::new(operator::EQUALS, vec![equality("equals")]),
        Function::new(operator::NOT_EQUALS, vec![equality("not_equals")]),
    ]
}

fn equality(id: &'static str) -> Overload {
    let any = || Type::param("A");
    let estimate = if id == "equals" { equals_estimate } else { shorter_estimate };
    Overload::global(id, vec![any(), any()], Type::Bool, reject_call).costs(estimate, shorter)
}

fn not<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::Bool(!call.bool(0)?))
}

/// Estimates equality: one unit for values of the same library type; formats and URLs can take more.
fn equals_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    let (one, two) = (call.argument_type(0)?, call.argument_type(1)?);
    if one == two {
        let max_size = match one.name() {
            "net.IP" | "net.CIDR" | "kubernetes.Quantity" | "kubernetes.Semver" => {
                return Some(CallEstimate::cost(CostEstimate::ONE));
            }
            "kubernetes.NamedFormat" => 64,
            "kubernetes.URL" => call.known_size(Some(1)).map_or(1, |size| size.max),
            _ => return shorter_estimate(call),
        };
        return Some(CallEstimate::cost(CostEstimate::new(1, max_size).times_factor(STRING_TRAVERSAL)));
    }
    shorter_estimate(call)
}

/// Estimates reading the shorter value.
#[expect(clippy::unnecessary_wraps, reason = "an EstimateFn")]
pub(super) fn shorter_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    let max_size = call.argument(0).max.min(call.argument(1).max);
    let size = SizeEstimate::new(u64::from(max_size > 0), max_size);
    Some(CallEstimate::cost(size.times_factor(STRING_TRAVERSAL)))
}

/// Cost of equality and order: reading the shorter value, or one unit for values of libraries.
pub(super) fn shorter(arguments: &[Value<'_>], _: &Value<'_>) -> u64 {
    if matches!(arguments.first(), Some(Value::Opaque(_))) {
        return 1;
    }
    scale(arguments.iter().map(Value::cost_size).min().unwrap_or(0), STRING_TRAVERSAL)
}

/// Implementation of operators that the evaluator handles itself: logic, equality and indices.
pub(super) fn reject_call<'v>(_: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Err(EvalError::no_such_overload())
}
