//! Function `matches`.

use crate::error::EvalError;
use crate::function::{Call, CallEstimate, CallSizes, Function, Overload};
use crate::size::{REGEX_LENGTH, STRING_TRAVERSAL, SizeEstimate, scale};
use crate::types::Type;
use crate::value::Value;

pub(super) fn function() -> Function {
    let two = || vec![Type::String, Type::String];
    Function::new(
        "matches",
        vec![
            Overload::global("matches", two(), Type::Bool, matches),
            Overload::member("matches_string", two(), Type::Bool, matches)
                .costs(matches_estimate, matches_cost),
        ],
    )
}

fn matches<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::Bool(call.regex()?.is_match(call.str(0)?)))
}

/// Estimates a match. An empty text counts as one character, so that an expensive pattern is charged.
fn matches_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    let text = call.target()?.plus(SizeEstimate::fixed(1)).times_factor(STRING_TRAVERSAL);
    Some(CallEstimate::cost(text.times(call.argument(0).times_factor(REGEX_LENGTH))))
}

fn matches_cost(arguments: &[Value<'_>], _: &Value<'_>) -> u64 {
    let size = |index: usize| arguments.get(index).map_or(1, Value::cost_size);
    let (text, pattern) = (size(0), size(1));
    scale(text.saturating_add(1), STRING_TRAVERSAL).saturating_mul(scale(pattern, REGEX_LENGTH))
}
