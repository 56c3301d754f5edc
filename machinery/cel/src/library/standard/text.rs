//! `contains`, `startsWith`, `endsWith`.

use crate::function::{CallEstimate, CallSizes, Function, Overload};
use crate::library::costs::read;
use crate::size::{STRING_TRAVERSAL, scale};
use crate::types::Type;
use crate::value::Value;

pub(super) fn functions() -> Vec<Function> {
    let two = || vec![Type::String, Type::String];
    vec![
        Function::new(
            "contains",
            vec![
                Overload::member("contains_string", two(), Type::Bool, |call| {
                    Ok(Value::Bool(call.str(0)?.contains(call.str(1)?)))
                })
                .costs(contains_estimate, contains_cost),
            ],
        ),
        Function::new(
            "endsWith",
            vec![
                Overload::member("ends_with_string", two(), Type::Bool, |call| {
                    Ok(Value::Bool(call.str(0)?.ends_with(call.str(1)?)))
                })
                .costs(affix_estimate, read),
            ],
        ),
        Function::new(
            "startsWith",
            vec![
                Overload::member("starts_with_string", two(), Type::Bool, |call| {
                    Ok(Value::Bool(call.str(0)?.starts_with(call.str(1)?)))
                })
                .costs(affix_estimate, read),
            ],
        ),
    ]
}

#[expect(clippy::unnecessary_wraps, reason = "an EstimateFn")]
fn affix_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    Some(CallEstimate::cost(call.argument(0).times_factor(STRING_TRAVERSAL)))
}

fn contains_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    let text = call.target()?.times_factor(STRING_TRAVERSAL);
    Some(CallEstimate::cost(text.times(call.argument(0).times_factor(STRING_TRAVERSAL))))
}

fn sizes(arguments: &[Value<'_>]) -> (u64, u64) {
    let size = |index: usize| arguments.get(index).map_or(1, Value::cost_size);
    (size(0), size(1))
}

fn contains_cost(arguments: &[Value<'_>], _: &Value<'_>) -> u64 {
    let (text, part) = sizes(arguments);
    scale(text, STRING_TRAVERSAL).saturating_mul(scale(part, STRING_TRAVERSAL))
}
