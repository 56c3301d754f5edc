//! `contains`, `startsWith`, `endsWith`, `matches`.

use super::read;
use crate::function::{CallEstimate, CallSizes};
use crate::size::{REGEX_LENGTH, STRING_TRAVERSAL, SizeEstimate, scale};
use crate::{Call, EvalError, Function, Overload, Type, Value};

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
        Function::new(
            "matches",
            vec![
                Overload::global("matches", two(), Type::Bool, matches),
                Overload::member("matches_string", two(), Type::Bool, matches)
                    .costs(matches_estimate, matches_cost),
            ],
        ),
    ]
}

fn matches<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::Bool(call.regex()?.is_match(call.str(0)?)))
}

#[expect(clippy::unnecessary_wraps, reason = "an EstimateFn")]
fn affix_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    Some(CallEstimate::cost(call.argument(0).times_factor(STRING_TRAVERSAL)))
}

fn contains_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    let text = call.target()?.times_factor(STRING_TRAVERSAL);
    Some(CallEstimate::cost(text.times(call.argument(0).times_factor(STRING_TRAVERSAL))))
}

/// An empty text costs as one of one character, so that an expensive pattern still counts.
fn matches_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    let text = call.target()?.plus(SizeEstimate::fixed(1)).times_factor(STRING_TRAVERSAL);
    Some(CallEstimate::cost(text.times(call.argument(0).times_factor(REGEX_LENGTH))))
}

fn sizes(arguments: &[Value<'_>]) -> (u64, u64) {
    let size = |index: usize| arguments.get(index).map_or(1, Value::cost_size);
    (size(0), size(1))
}

fn contains_cost(arguments: &[Value<'_>], _: &Value<'_>) -> u64 {
    let (text, part) = sizes(arguments);
    scale(text, STRING_TRAVERSAL).saturating_mul(scale(part, STRING_TRAVERSAL))
}

fn matches_cost(arguments: &[Value<'_>], _: &Value<'_>) -> u64 {
    let (text, pattern) = sizes(arguments);
    scale(text.saturating_add(1), STRING_TRAVERSAL).saturating_mul(scale(pattern, REGEX_LENGTH))
}
