//! Equality and order of values.

use std::cmp::Ordering;

#[cfg(feature = "json")]
use serde_json::Value as Json;

use super::{List, Map, Steps, Value};
#[cfg(feature = "json")]
use crate::decl::{DeclKind, escape};
use crate::decl::{DeclType, ListKind};
use crate::error::EvalError;
use crate::size::DEFAULT_COST_LIMIT;

/// Levels of values that an expression compares.
///
/// Data is limited where it is decoded.
///
/// Limit (Expressions): the expression fails.
const MAX_DEPTH: usize = 512;

/// Compares values like CEL's `==`: numbers by value, containers item by item; values of different types are not equal.
///
/// # Errors
/// JSON does not match its declaration, or the comparison exceeds the steps of any evaluation.
pub fn equal(one: &Value<'_>, two: &Value<'_>) -> Result<bool, EvalError> {
    equal_within(one, two, &Steps::new(DEFAULT_COST_LIMIT))
}

/// Compares like [`equal`], within the steps of an evaluation.
pub(crate) fn equal_within(one: &Value<'_>, two: &Value<'_>, steps: &Steps) -> Result<bool, EvalError> {
    equal_at(one, two, Limits { steps, depth: MAX_DEPTH })
}

/// Remaining steps and nesting of a comparison.
#[derive(Clone, Copy)]
struct Limits<'s> {
    steps: &'s Steps,
    depth: usize,
}

impl Limits<'_> {
    /// Returns the limits for the parts of a value, which are one level deeper.
    fn for_children(self) -> Result<Self, EvalError> {
        let depth = self.depth.checked_sub(1).ok_or_else(|| EvalError::new("value is nested too deeply"))?;
        Ok(Self { depth, ..self })
    }
}

fn equal_at(one: &Value<'_>, two: &Value<'_>, limits: Limits<'_>) -> Result<bool, EvalError> {
    let limits = limits.for_children()?;
    limits.steps.take(1)?;
    Ok(match (one, two) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(one), Value::Bool(two)) => one == two,
        (Value::String(one), Value::String(two)) => {
            limits.steps.take_text(one.len().min(two.len()))?;
            one == two
        }
        (Value::Bytes(one), Value::Bytes(two)) => {
            limits.steps.take_text(one.len().min(two.len()))?;
            one == two
        }
        (Value::Timestamp(one), Value::Timestamp(two)) => one == two,
        (Value::Duration(one), Value::Duration(two)) => one == two,
        (Value::Type(one), Value::Type(two)) => one.name() == two.name(),
        (Value::Opaque(one), Value::Opaque(two)) => {
            limits.steps.take_parse(one.bytes().saturating_add(two.bytes()))?;
            one.equals(&**two).ok_or_else(EvalError::no_such_overload)?
        }
        // Values of libraries are compared first, with values of their own type only.
        (Value::Opaque(_), two) if !matches!(two, Value::Null) => return Err(EvalError::no_such_overload()),
        (Value::Optional(one), Value::Optional(two)) => match (one, two) {
            (None, None) => true,
            (Some(one), Some(two)) => equal_at(one, two, limits)?,
            _ => false,
        },
        // The same applies to values with a declaration.
        (Value::List(one), two) if one.declared().is_some_and(DeclType::is_known) && differs(two, false) => {
            return Err(EvalError::no_such_overload());
        }
        #[cfg(feature = "json")]
        (Value::Map(Map::Json { of, .. }), two) if of.is_known() && differs(two, true) => {
            return Err(EvalError::no_such_overload());
        }
        (Value::List(one), Value::List(two)) => lists(one, two, limits)?,
        (Value::Map(one), Value::Map(two)) => {
            one.object_name() == two.object_name() && maps(one, two, limits)?
        }
        _ => compare_numbers(one, two) == Some(Ordering::Equal),
    })
}

/// True if a value is neither null nor of the expected kind, a map or a list.
fn differs(value: &Value<'_>, map: bool) -> bool {
    match value {
        Value::Null => false,
        Value::Map(_) => !map,
        Value::List(_) => map,
        _ => true,
    }
}

fn lists(one: &List<'_>, two: &List<'_>, limits: Limits<'_>) -> Result<bool, EvalError> {
    if one.len() != two.len() {
        return Ok(false);
    }
    match one.kind() {
        ListKind::Atomic => {
            // In computed lists, items that cannot be compared count as equal.
            let computed = one.declared().is_none();
            for (one, two) in one.iter().zip(two.iter()) {
                match equal_at(&one?, &two?, limits) {
                    Ok(true) => {}
                    Err(error) if computed && error.is_absorbable() => {}
                    other => return other,
                }
            }
            Ok(true)
        }
        ListKind::Set => any_order(one, two, limits, |_, _| Ok(true)),
        ListKind::Map(keys) => any_order(one, two, limits, |one, two| same_key(one, two, keys, limits.steps)),
    }
}

/// True if each item of `two` has an equal item in `one`. Strings and numbers are sorted for speed.
fn any_order(
    one: &List<'_>,
    two: &List<'_>,
    limits: Limits<'_>,
    candidate: impl Fn(&Value<'_>, &Value<'_>) -> Result<bool, EvalError>,
) -> Result<bool, EvalError> {
    limits.steps.take(one.len())?;
    let items = one.to_vec()?;
    for (index, expected) in two.iter().enumerate() {
        let expected = expected?;
        // Most lists are in the same order: try the item at the same index first.
        let places = items.get(index).into_iter().chain(&items);
        let mut found = false;
        for item in places {
            limits.steps.take(1)?;
            if candidate(item, &expected)? && equal_at(item, &expected, limits)? {
                found = true;
                break;
            }
        }
        if !found {
            return Ok(false);
        }
    }
    Ok(true)
}

/// True if two items of a list of maps have the same keys.
pub(crate) fn same_key(
    one: &Value<'_>,
    two: &Value<'_>,
    keys: &[std::sync::Arc<str>],
    steps: &Steps,
) -> Result<bool, EvalError> {
    let (Value::Map(one), Value::Map(two)) = (one, two) else { return Ok(false) };
    let limits = Limits { steps, depth: 1 };
    for key in keys {
        let same = match (one.get_str(key)?, two.get_str(key)?) {
            (Some(one), Some(two)) => equal_at(&one, &two, limits)?,
            (None, None) => true,
            _ => false,
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}

fn maps(one: &Map<'_>, two: &Map<'_>, limits: Limits<'_>) -> Result<bool, EvalError> {
    if one.len() != two.len() {
        return Ok(false);
    }
    #[cfg(feature = "json")]
    if let (Map::Json { members, of }, Map::Json { members: other_members, .. }) = (one, two)
        && !undeclared_equal(members, other_members, of, limits.steps)?
    {
        return Ok(false);
    }
    for entry in one.iter() {
        let (key, value) = entry?;
        if let Value::String(key) = &key {
            limits.steps.take_key(key.len())?;
        }
        let same = match two.get(&key)? {
            Some(other) => equal_at(&value, &other, limits)?,
            None => false,
        };
        if !same {
            return Ok(false);
        }
    }
    #[cfg(feature = "json")]
    if let (Map::Json { of, .. }, Map::Json { .. }) = (one, two)
        && matches!(of.kind, DeclKind::Object(_))
    {
        return Ok(one.keys().count() == two.keys().count());
    }
    Ok(true)
}

/// Compares members without a declared field as plain JSON.
#[cfg(feature = "json")]
fn undeclared_equal(
    members: &serde_json::Map<String, Json>,
    other_members: &serde_json::Map<String, Json>,
    of: &DeclType,
    steps: &Steps,
) -> Result<bool, EvalError> {
    let DeclKind::Object(object) = &of.kind else { return Ok(true) };
    // Names that cannot be escaped are not fields.
    let declares =
        |name: &str| escape(name).is_some_and(|escaped| object.field_by_escaped_name(&escaped).is_some());
    for (name, value) in members.iter().filter(|(name, _)| !declares(name)) {
        take_json(value, steps)?;
        if other_members.get(name) != Some(value) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Counts the steps of comparing JSON.
#[cfg(feature = "json")]
fn take_json(json: &Json, steps: &Steps) -> Result<(), EvalError> {
    match json {
        Json::Array(items) => {
            steps.take(items.len())?;
            items.iter().try_for_each(|item| take_json(item, steps))
        }
        Json::Object(members) => {
            steps.take(members.len())?;
            members.iter().try_for_each(|(name, value)| {
                steps.take_key(name.len())?;
                take_json(value, steps)
            })
        }
        Json::String(text) => steps.take_text(text.len()),
        _ => Ok(()),
    }
}

/// Orders two values. Returns `None` for types without an order, and for NaN.
#[must_use]
pub fn compare(one: &Value<'_>, two: &Value<'_>) -> Option<Ordering> {
    match (one, two) {
        (Value::Bool(one), Value::Bool(two)) => Some(one.cmp(two)),
        (Value::String(one), Value::String(two)) => Some((**one).cmp(&**two)),
        (Value::Bytes(one), Value::Bytes(two)) => Some(one.cmp(two)),
        (Value::Timestamp(one), Value::Timestamp(two)) => Some(one.cmp(two)),
        (Value::Duration(one), Value::Duration(two)) => Some(one.cmp(two)),
        _ => compare_numbers(one, two),
    }
}

#[expect(clippy::cast_precision_loss, reason = "cel-go also compares as doubles")]
fn compare_numbers(one: &Value<'_>, two: &Value<'_>) -> Option<Ordering> {
    match (one, two) {
        (Value::Int(one), Value::Int(two)) => Some(one.cmp(two)),
        (Value::Uint(one), Value::Uint(two)) => Some(one.cmp(two)),
        (Value::Double(one), Value::Double(two)) => one.partial_cmp(two),
        (Value::Int(one), Value::Uint(two)) => Some(i128::from(*one).cmp(&i128::from(*two))),
        (Value::Uint(one), Value::Int(two)) => Some(i128::from(*one).cmp(&i128::from(*two))),
        (Value::Double(one), Value::Int(two)) => {
            double_with(*one, i64::MIN as f64, i64::MAX as f64, *two as f64)
        }
        (Value::Int(one), Value::Double(two)) => {
            double_with(*two, i64::MIN as f64, i64::MAX as f64, *one as f64).map(Ordering::reverse)
        }
        (Value::Double(one), Value::Uint(two)) => double_with(*one, 0.0, u64::MAX as f64, *two as f64),
        (Value::Uint(one), Value::Double(two)) => {
            double_with(*two, 0.0, u64::MAX as f64, *one as f64).map(Ordering::reverse)
        }
        _ => None,
    }
}

/// Orders a double and an integer.
fn double_with(double: f64, min: f64, max: f64, integer: f64) -> Option<Ordering> {
    if double < min {
        return Some(Ordering::Less);
    }
    if double > max {
        return Some(Ordering::Greater);
    }
    double.partial_cmp(&integer)
}
