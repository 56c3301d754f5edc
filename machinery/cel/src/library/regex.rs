//! Regular expressions: `find` and `findAll`.

use std::sync::Arc;

use regex::Regex;

use super::costs;
use super::declaration::Library;
use crate::error::EvalError;
use crate::function::{Call, CallEstimate, CallSizes, Function, Overload};
use crate::size::SizeEstimate;
use crate::types::Type;
use crate::value::Value;

pub(super) fn library() -> Library {
    use Type::{Int, String};
    let find_all = |id, parameters| {
        Overload::member(id, parameters, Type::list(String), find_all).costs_by_name(estimate, cost)
    };
    Library {
        name: "kubernetes.regex",
        functions: vec![
            Function::new(
                "find",
                vec![
                    Overload::member("string_find_string", vec![String, String], String, find)
                        .costs_by_name(estimate, cost),
                ],
            ),
            Function::new(
                "findAll",
                vec![
                    find_all("string_find_all_string", vec![String, String]),
                    find_all("string_find_all_string_int", vec![String, String, Int]),
                ],
            ),
        ],
        ..Library::default()
    }
}

fn call_regex(call: &Call<'_, '_>) -> Result<Arc<Regex>, EvalError> {
    call.str(1)?;
    call.regex().map_err(|error| match error {
        EvalError::Failed(reason) => EvalError::new(format!("Illegal regex: {reason}")),
        stop => stop,
    })
}

fn find<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    let found = call_regex(call)?.find(call.str(0)?).map_or("", |found| found.as_str());
    Ok(Value::text(found))
}

/// Returns all matches, or at most a number; all if it is negative. An empty match adjacent to another one is skipped.
fn find_all<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    let count = call.arguments.get(2).map_or(Ok(-1), i64::try_from)?;
    let limit = usize::try_from(count).unwrap_or(usize::MAX);
    let regex = call_regex(call)?;
    let mut found = Vec::new();
    for part in regex.find_iter(call.str(0)?).take(limit) {
        call.take_text(part.len())?;
        found.push(Value::text(part.as_str()));
    }
    Ok(Value::list(found))
}

fn estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    let text = call.target().filter(|_| call.arguments() >= 1)?;
    let cost = costs::regex_estimate(text, call.argument(0));
    // At worst each character is found by itself.
    Some(CallEstimate::sized(cost, SizeEstimate::new(0, text.max)))
}

fn cost(arguments: &[Value<'_>], _: &Value<'_>) -> u64 {
    costs::regex(costs::size(arguments, 0), costs::size(arguments, 1))
}
