//! Costs of library functions: kube-apiserver's estimates and counters, shared by all libraries.
//!
//! The numbers decide which rules are accepted, so they match upstream exactly, including roundings.

#[cfg(feature = "kubernetes")]
use crate::error::EvalError;
#[cfg(feature = "kubernetes")]
use crate::function::Call;
use crate::function::{CallEstimate, CallSizes};
use crate::size::{CostEstimate, DEFAULT_COST_LIMIT, STRING_TRAVERSAL, scale};
#[cfg(feature = "regex")]
use crate::size::{REGEX_LENGTH, SizeEstimate};
use crate::types::Type;
#[cfg(feature = "kubernetes")]
use crate::value::List;
use crate::value::Value;

/// Returns the size of an argument (the receiver first) at run time.
pub(super) fn size(arguments: &[Value<'_>], index: usize) -> u64 {
    arguments.get(index).map_or(1, Value::cost_size)
}

/// Estimates one unit: accessors, comparisons.
#[expect(clippy::unnecessary_wraps, reason = "an EstimateFn")]
pub(super) fn unit_estimate(_: &dyn CallSizes) -> Option<CallEstimate> {
    Some(CallEstimate::cost(CostEstimate::ONE))
}

/// Returns one unit.
#[cfg(feature = "kubernetes")]
pub(super) fn unit(_: &[Value<'_>], _: &Value<'_>) -> u64 {
    1
}

/// Estimates reading the string in the first argument once.
#[cfg(feature = "kubernetes")]
pub(super) fn parse_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    argument_read(call, STRING_TRAVERSAL)
}

/// Estimates reading the string in the first argument two times.
#[cfg(feature = "kubernetes")]
pub(super) fn parse_twice_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    argument_read(call, 2.0 * STRING_TRAVERSAL)
}

#[cfg(feature = "kubernetes")]
fn argument_read(call: &dyn CallSizes, factor: f64) -> Option<CallEstimate> {
    (call.arguments() >= 1).then(|| CallEstimate::cost(call.argument(0).times_factor(factor)))
}

/// Returns the cost of reading the first argument or receiver once.
pub(super) fn read(arguments: &[Value<'_>], _: &Value<'_>) -> u64 {
    scale(size(arguments, 0), STRING_TRAVERSAL)
}

/// Returns the cost of reading the first argument or receiver two times, or of reading and writing it.
pub(super) fn read_twice(arguments: &[Value<'_>], _: &Value<'_>) -> u64 {
    scale(size(arguments, 0), 2.0 * STRING_TRAVERSAL)
}

/// Number of characters of a string that are free where kube-apiserver does not count them.
const UNCOUNTED_CHARACTERS: u64 = 1_024;

/// Returns the cost of text that upstream does not count: `'a'.replace('', self.text)` copies a mebibyte for one unit, a hundred
/// thousand times in a comprehension. Short texts are free, so that rules have upstream's costs.
pub(crate) fn uncounted_cost(size: u64) -> u64 {
    scale(size.saturating_sub(UNCOUNTED_CHARACTERS), STRING_TRAVERSAL)
}

/// Returns the cost of [`read`] and of writing more than was read.
pub(super) fn read_and_write(arguments: &[Value<'_>], result: &Value<'_>) -> u64 {
    let written = result.cost_size().saturating_sub(size(arguments, 0));
    read(arguments, result).saturating_add(uncounted_cost(written))
}

/// Returns the cost of [`read_twice`] and of writing more than was read.
pub(super) fn replace(arguments: &[Value<'_>], result: &Value<'_>) -> u64 {
    let written = result.cost_size().saturating_sub(size(arguments, 0));
    read_twice(arguments, result).saturating_add(uncounted_cost(written))
}

/// Returns one unit plus the cost of searching a long text.
pub(super) fn find_position(arguments: &[Value<'_>], _: &Value<'_>) -> u64 {
    uncounted_cost(size(arguments, 0)).saturating_add(1)
}

/// Estimates reading the receiver once; the result has about the same length.
pub(super) fn read_target_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    let size = call.target()?;
    Some(CallEstimate::sized(size.times_factor(STRING_TRAVERSAL), size))
}

/// Estimates comparing each item of the receiver, including reading strings and bytes. A string is read once.
pub(super) fn compare_items_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    let size = call.target()?;
    let Some((items, item_size)) = call.target_items() else {
        return Some(CallEstimate::cost(size.times_factor(STRING_TRAVERSAL)));
    };
    let mut each = CostEstimate::ONE;
    if matches!(items, Type::String | Type::Bytes) {
        each = each.plus(item_size.times_factor(STRING_TRAVERSAL));
    }
    Some(CallEstimate::cost(size.times_cost(each)))
}

/// Maximum nesting that is counted item by item. Deeper values count as one unit.
const MAX_DEPTH: usize = 64;

/// Returns the cost of visiting all values in the receiver.
pub(super) fn compare_items(arguments: &[Value<'_>], _: &Value<'_>) -> u64 {
    let mut visited = 0;
    let cost = arguments.first().map_or(Some(0), |value| traversal(value, MAX_DEPTH, &mut visited));
    // Empty strings and lists are free.
    cost.map_or(u64::MAX, |cost| cost.max(uncounted_cost(visited)))
}

/// Returns the cost of visiting a value. Returns `None` if it contains more nested values than any budget pays for: a value can
/// contain another one many times.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "rounded down as upstream"
)]
fn traversal(value: &Value<'_>, depth: usize, visited: &mut u64) -> Option<u64> {
    let text = |bytes: usize| (bytes as f64 * STRING_TRAVERSAL) as u64;
    let Some(depth) = depth.checked_sub(1) else { return Some(1) };
    *visited = visited.checked_add(1).filter(|visited| *visited <= DEFAULT_COST_LIMIT)?;
    Some(match value {
        Value::String(value) => text(value.len()),
        Value::Bytes(value) => text(value.len()),
        Value::List(list) => list.iter().try_fold(0, |sum: u64, item| {
            let cost = item.map_or(Some(1), |item| traversal(&item, depth, visited))?;
            Some(sum.saturating_add(cost))
        })?,
        Value::Map(map) => map.iter().flatten().try_fold(0, |sum: u64, (key, value)| {
            let sum = sum.saturating_add(traversal(&key, depth, visited)?);
            Some(sum.saturating_add(traversal(&value, depth, visited)?))
        })?,
        _ => 1,
    })
}

/// Returns the receiver, and counts its nested items before [`compare_items`] visits them.
///
/// # Errors
/// `no such overload` for anything but a list; [`EvalError::Budget`] if the evaluation cannot pay for it.
#[cfg(feature = "kubernetes")]
pub(super) fn visited_list<'c, 'v>(call: &Call<'c, 'v>) -> Result<&'c List<'v>, EvalError> {
    let list = call.list(0)?;
    visit_items(call, list, MAX_DEPTH)?;
    Ok(list)
}

#[cfg(feature = "kubernetes")]
fn visit_items(call: &Call<'_, '_>, list: &List<'_>, depth: usize) -> Result<(), EvalError> {
    call.take(list.len())?;
    list.iter().flatten().try_for_each(|item| visit(call, &item, depth))
}

#[cfg(feature = "kubernetes")]
fn visit(call: &Call<'_, '_>, value: &Value<'_>, depth: usize) -> Result<(), EvalError> {
    let Some(depth) = depth.checked_sub(1) else { return Ok(()) };
    match value {
        Value::List(list) => visit_items(call, list, depth),
        Value::Map(map) => {
            call.take(map.len())?;
            map.iter().flatten().try_for_each(|(_, value)| visit(call, &value, depth))
        }
        _ => Ok(()),
    }
}

/// Returns the cost of matching a text with a regular expression.
#[cfg(feature = "regex")]
pub(super) fn regex(text: u64, pattern: u64) -> u64 {
    // Plus one, so that an empty string does not make any expression free.
    scale(text.saturating_add(1), STRING_TRAVERSAL).saturating_mul(scale(pattern, REGEX_LENGTH))
}

/// Estimates the cost of [`regex`].
#[cfg(feature = "regex")]
pub(super) fn regex_estimate(text: SizeEstimate, pattern: SizeEstimate) -> CostEstimate {
    text.plus(SizeEstimate::fixed(1)).times_factor(STRING_TRAVERSAL).times(pattern.times_factor(REGEX_LENGTH))
}
