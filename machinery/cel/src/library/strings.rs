//! Strings: upstream's extension, its version 0 (positions, pieces, case) and what version 2 adds (`format`, `quote`).
//!
//! Positions count characters (code points), never bytes.

mod clause;
mod edit;
mod format;
mod limits;
mod numerals;

pub(crate) use clause::{Clause, Format, Verb, visit_clauses};
pub(crate) use format::{refusal, value_text};
pub(crate) use limits::{MAX_TEXT_BYTES, too_long};

use super::costs;
use super::declaration::Library;
use crate::error::EvalError;
use crate::function::{Call, CallEstimate, CallSizes, Function, Overload};
use crate::size::{STRING_TRAVERSAL, SizeEstimate, scale};
use crate::types::Type;
use crate::value::{Text, Value, print_key};

/// Functions of version 0.
pub(super) fn base_functions() -> Library {
    Library {
        name: "cel.lib.ext.strings",
        functions: [position_functions(), piece_functions(), replace_functions()].concat(),
        ..Library::default()
    }
}

/// Functions of later versions.
pub(super) fn later_functions() -> Library {
    let text_and_list = vec![Type::String, Type::list(Type::Dyn)];
    Library {
        name: "cel.lib.ext.strings.v2",
        functions: vec![
            Function::new(
                "format",
                vec![
                    Overload::member("string_format", text_and_list, Type::String, format)
                        .costs(format_estimate, costs::read_and_write),
                ],
            ),
            Function::new(
                "strings.quote",
                vec![
                    Overload::global("strings_quote", vec![Type::String], Type::String, quote)
                        .costs(quote_estimate, costs::read),
                ],
            ),
        ],
        ..Library::default()
    }
}

fn position_functions() -> Vec<Function> {
    use Type::{Int, String};
    let index = |id, parameters, run| {
        Overload::member(id, parameters, Int, run)
            .costs_by_name(costs::compare_items_estimate, costs::compare_items)
    };
    vec![
        Function::new(
            "charAt",
            vec![
                Overload::member("string_char_at_int", vec![String, Int], String, char_at)
                    .costs_by_name(costs::unit_estimate, costs::find_position),
            ],
        ),
        Function::new(
            "indexOf",
            vec![
                index("string_index_of_string", vec![String, String], index_of),
                index("string_index_of_string_int", vec![String, String, Int], index_of),
            ],
        ),
        Function::new(
            "lastIndexOf",
            vec![
                index("string_last_index_of_string", vec![String, String], last_index_of),
                index("string_last_index_of_string_int", vec![String, String, Int], last_index_of),
            ],
        ),
    ]
}

fn piece_functions() -> Vec<Function> {
    use Type::{Int, String};
    let read = |id, parameters, run| {
        Overload::member(id, parameters, String, run).costs_by_name(costs::read_target_estimate, costs::read)
    };
    let split = |id, parameters| {
        Overload::member(id, parameters, Type::list(String), split)
            .costs_by_name(split_estimate, costs::read_twice)
    };
    let join = |id, parameters| {
        Overload::member(id, parameters, String, join).costs_by_name(join_estimate, join_cost)
    };
    vec![
        Function::new("lowerAscii", vec![read("string_lower_ascii", vec![String], lower)]),
        Function::new("upperAscii", vec![read("string_upper_ascii", vec![String], upper)]),
        Function::new("trim", vec![read("string_trim", vec![String], trim)]),
        Function::new(
            "substring",
            vec![
                read("string_substring_int", vec![String, Int], substring),
                read("string_substring_int_int", vec![String, Int, Int], substring),
            ],
        ),
        Function::new(
            "split",
            vec![
                split("string_split_string", vec![String, String]),
                split("string_split_string_int", vec![String, String, Int]),
            ],
        ),
        Function::new(
            "join",
            vec![
                join("list_join", vec![Type::list(String)]),
                join("list_join_string", vec![Type::list(String), String]),
            ],
        ),
    ]
}

fn replace_functions() -> Vec<Function> {
    use Type::{Int, String};
    let replace = |id, parameters| {
        Overload::member(id, parameters, String, replace).costs_by_name(replace_estimate, costs::replace)
    };
    vec![Function::new(
        "replace",
        vec![
            replace("string_replace_string_string", vec![String, String, String]),
            replace("string_replace_string_string_int", vec![String, String, String, Int]),
        ],
    )]
}

/// Returns the string at an index, with the lifetime of its data.
fn text<'c, 'v>(call: &Call<'c, 'v>, index: usize) -> Result<&'c Text<'v>, EvalError> {
    match call.argument(index)? {
        Value::String(text) => Ok(text),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Returns the integer at an index, if the overload has this parameter.
fn optional_int(call: &Call<'_, '_>, index: usize) -> Result<Option<i64>, EvalError> {
    call.arguments.get(index).map(i64::try_from).transpose()
}

fn char_at<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    edit::char_at(text(call, 0)?, call.int(1)?).map(Value::String)
}

fn index_of<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    edit::index_of(call.str(0)?, call.str(1)?, optional_int(call, 2)?.unwrap_or(0)).map(Value::Int)
}

fn last_index_of<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    edit::last_index_of(call.str(0)?, call.str(1)?, optional_int(call, 2)?).map(Value::Int)
}

fn lower<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::text(call.str(0)?.to_ascii_lowercase()))
}

fn upper<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::text(call.str(0)?.to_ascii_uppercase()))
}

fn trim<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    let text = text(call, 0)?;
    let start = text.len() - text.trim_start().len();
    Ok(Value::String(edit::part(text, start..start + text.trim().len())))
}

fn substring<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    edit::substring(text(call, 0)?, call.int(1)?, optional_int(call, 2)?).map(Value::String)
}

fn split<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    let pieces = edit::split(text(call, 0)?, call.str(1)?, optional_int(call, 2)?.unwrap_or(-1));
    Ok(Value::list(pieces.into_iter().map(Value::String).collect()))
}

fn join<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    let separator = if call.arguments.len() > 1 { call.str(1)? } else { "" };
    let mut joined = String::new();
    for (index, item) in call.list(0)?.iter().enumerate() {
        let item = item?;
        let invalid = || EvalError::new(format!("join: invalid input: {}", print_key(&item)));
        let text = item.as_str().ok_or_else(invalid)?;
        let separator = if index == 0 { "" } else { separator };
        if joined.len() + separator.len() + text.len() > MAX_TEXT_BYTES {
            return Err(EvalError::new(too_long()));
        }
        call.take_text(separator.len() + text.len())?;
        joined.push_str(separator);
        joined.push_str(text);
    }
    Ok(Value::text(joined))
}

fn replace<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    edit::replace(call.str(0)?, call.str(1)?, call.str(2)?, optional_int(call, 3)?.unwrap_or(-1))
        .map(Value::text)
}

fn format<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    let arguments = call.list(1)?;
    call.take(arguments.len())?;
    let arguments = arguments.to_vec()?;
    format::format(call.str(0)?, &arguments, call).map(Value::text)
}

fn quote<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::text(edit::quote(call.str(0)?)))
}

/// Estimate with an unknown size of the result.
fn format_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    Some(CallEstimate::cost(call.target()?.times_factor(STRING_TRAVERSAL)))
}

/// Estimates `quote`: in the worst case, each character is escaped; there are always two quotes.
fn quote_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    let size = (call.arguments() == 1).then(|| call.argument(0))?;
    // Without a limit, the size wraps around, as in upstream.
    let max = size.max.wrapping_mul(2).wrapping_add(2);
    let result = SizeEstimate::new(size.min.saturating_add(2), max);
    Some(CallEstimate::sized(size.times_factor(STRING_TRAVERSAL), result))
}

fn split_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    let size = call.target()?;
    // In the worst case, each character is a piece; a literal limit is more precise.
    let limit = (call.arguments() > 1).then(|| call.literal_int(1)).flatten();
    let max = limit.map_or(size.max, i64::cast_unsigned);
    Some(CallEstimate::sized(size.times_factor(2.0 * STRING_TRAVERSAL), SizeEstimate::new(0, max)))
}

fn join_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    let items = call.target()?;
    let mut size = call.target_items().map_or(SizeEstimate::fixed(0), |(_, item)| items.times(item));
    if call.arguments() > 0 {
        let separators = SizeEstimate::new(items.min.saturating_sub(1), items.max.saturating_sub(1));
        size = size.plus(call.argument(0).times(separators));
    }
    Some(CallEstimate::sized(size.times_factor(STRING_TRAVERSAL), size))
}

fn join_cost(_: &[Value<'_>], result: &Value<'_>) -> u64 {
    scale(result.cost_size(), 2.0 * STRING_TRAVERSAL)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "as upstream; saturates"
)]
fn rounded_up_quotient(size: u64, piece: u64) -> u64 {
    (size as f64 / piece as f64).ceil() as u64
}

/// Returns the range of sizes after replacing the most often with the longest, or the least often with the shortest string.
fn replace_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    let size = call.target().filter(|_| call.arguments() >= 2)?;
    let (old, new) = (call.argument(0), call.argument(1));
    let (max, unreplaced_max) = match () {
        () if old.min == 0 => (size.max.saturating_add(1), size.max),
        () if new.max <= old.min => (0, size.max),
        () => (rounded_up_quotient(size.max, old.min), 0),
    };
    let (min, unreplaced_min) = match () {
        () if old.max == 0 => (size.min.saturating_add(1), size.min),
        () if old.max <= new.min => (0, size.min),
        () => (rounded_up_quotient(size.min, old.max), 0),
    };
    let result =
        SizeEstimate::new(min, max).times(new).plus(SizeEstimate::new(unreplaced_min, unreplaced_max));
    Some(CallEstimate::sized(size.times_factor(2.0 * STRING_TRAVERSAL), result))
}
