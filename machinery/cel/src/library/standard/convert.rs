//! Conversions between types: `int(…)`, `string(…)`, `type(…)`, `dyn(…)`.

use std::sync::Arc;

use crate::error::EvalError;
use crate::function::{Call, CallEstimate, CallSizes, Function, Implementation, Overload};
use crate::library::costs::read;
use crate::size::{STRING_TRAVERSAL, SizeEstimate};
use crate::types::Type;
use crate::value::{Duration, Timestamp, Value, print_double};

pub(super) fn functions() -> Vec<Function> {
    use Type::{Bool, Bytes, Double, Duration, Int, String, Timestamp, Uint};
    let any = || Type::param("A");
    let mut strings = conversion(
        "string",
        &String,
        to_string,
        [
            ("string_to_string", String),
            ("bool_to_string", Bool),
            ("bytes_to_string", Bytes),
            ("double_to_string", Double),
            ("duration_to_string", Duration),
            ("int64_to_string", Int),
            ("timestamp_to_string", Timestamp),
            ("uint64_to_string", Uint),
        ],
    );
    let mut bytes =
        conversion("bytes", &Bytes, to_bytes, [("bytes_to_bytes", Bytes), ("string_to_bytes", String)]);
    set_read_cost(&mut strings, "bytes_to_string", shrinking_estimate);
    set_read_cost(&mut bytes, "string_to_bytes", growing_estimate);
    vec![
        Function::new(
            "type",
            vec![Overload::global("type", vec![any()], Type::type_of(any()), |call| {
                Ok(Value::Type(Arc::new(call.argument(0)?.type_of())))
            })],
        ),
        Function::new(
            "dyn",
            vec![Overload::global("to_dyn", vec![any()], Type::Dyn, |call| call.argument(0).cloned())],
        ),
        conversion("bool", &Bool, to_bool, [("bool_to_bool", Bool), ("string_to_bool", String)]),
        bytes,
        conversion(
            "double",
            &Double,
            to_double,
            [
                ("double_to_double", Double),
                ("int64_to_double", Int),
                ("string_to_double", String),
                ("uint64_to_double", Uint),
            ],
        ),
        conversion(
            "duration",
            &Duration,
            to_duration,
            [("duration_to_duration", Duration), ("int64_to_duration", Int), ("string_to_duration", String)],
        ),
        conversion(
            "int",
            &Int,
            to_int,
            [
                ("int64_to_int64", Int),
                ("double_to_int64", Double),
                ("duration_to_int64", Duration),
                ("string_to_int64", String),
                ("timestamp_to_int64", Timestamp),
                ("uint64_to_int64", Uint),
            ],
        ),
        strings,
        conversion(
            "timestamp",
            &Timestamp,
            to_timestamp,
            [
                ("timestamp_to_timestamp", Timestamp),
                ("int64_to_timestamp", Int),
                ("string_to_timestamp", String),
            ],
        ),
        conversion(
            "uint",
            &Uint,
            to_uint,
            [
                ("uint64_to_uint64", Uint),
                ("double_to_uint64", Double),
                ("int64_to_uint64", Int),
                ("string_to_uint64", String),
            ],
        ),
    ]
}

fn conversion<const N: usize>(
    name: &'static str,
    to: &Type,
    run: Implementation,
    from: [(&'static str, Type); N],
) -> Function {
    let overload = |(id, from)| Overload::global(id, vec![from], to.clone(), run);
    Function::new(name, from.into_iter().map(overload).collect())
}

/// Sets the cost of reading the argument for an overload.
fn set_read_cost(function: &mut Function, id: &str, estimate: crate::function::EstimateFn) {
    for overload in function.overloads.iter_mut().filter(|overload| overload.id == id) {
        overload.estimate = Some(estimate);
        overload.cost = Some(read);
    }
}

#[expect(clippy::unnecessary_wraps, reason = "an EstimateFn")]
fn shrinking_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    let size = call.argument(0);
    Some(CallEstimate::sized(size.times_factor(STRING_TRAVERSAL), SizeEstimate::new(size.min / 4, size.max)))
}

/// Estimates a conversion to bytes: a character has up to four bytes.
#[expect(clippy::unnecessary_wraps, reason = "an EstimateFn")]
fn growing_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    let size = call.argument(0);
    let result = SizeEstimate::new(size.min, size.max.wrapping_mul(4));
    Some(CallEstimate::sized(size.times_factor(STRING_TRAVERSAL), result))
}

fn conversion_error(from: &Value<'_>, to: &Type) -> EvalError {
    EvalError::new(format!("type conversion error from '{}' to '{}'", from.type_of().name(), to.name()))
}

fn to_bool<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    match call.argument(0)? {
        Value::Bool(value) => Ok(Value::Bool(*value)),
        from @ Value::String(text) => match &**text {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(Value::Bool(false)),
            _ => Err(conversion_error(from, &Type::Bool)),
        },
        from => Err(conversion_error(from, &Type::Bool)),
    }
}

fn to_bytes<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    match call.argument(0)? {
        from @ Value::Bytes(_) => Ok(from.clone()),
        Value::String(text) => Ok(Value::Bytes(text.as_bytes().into())),
        from => Err(conversion_error(from, &Type::Bytes)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "lossy as in cel-go")]
fn to_double<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    call.take_parse(call.argument(0)?.bytes())?;
    match call.argument(0)? {
        Value::Double(value) => Ok(Value::Double(*value)),
        Value::Int(value) => Ok(Value::Double(*value as f64)),
        Value::Uint(value) => Ok(Value::Double(*value as f64)),
        from @ Value::String(text) => text
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite() || !text.contains(|c: char| c.is_ascii_digit()))
            .map(Value::Double)
            .ok_or_else(|| conversion_error(from, &Type::Double)),
        from => Err(conversion_error(from, &Type::Double)),
    }
}

fn to_duration<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    call.take_parse(call.argument(0)?.bytes())?;
    match call.argument(0)? {
        Value::Duration(value) => Ok(Value::Duration(*value)),
        from @ Value::String(text) => {
            Duration::parse(text).map(Value::Duration).ok_or_else(|| conversion_error(from, &Type::Duration))
        }
        from => Err(conversion_error(from, &Type::Duration)),
    }
}

fn to_timestamp<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    call.take_parse(call.argument(0)?.bytes())?;
    match call.argument(0)? {
        Value::Timestamp(value) => Ok(Value::Timestamp(*value)),
        Value::Int(seconds) => Timestamp::at(*seconds, 0).map(Value::Timestamp),
        from @ Value::String(text) => {
            let at = Timestamp::parse(text).ok_or_else(|| conversion_error(from, &Type::Timestamp))?;
            Timestamp::at(at.seconds, at.nanos)?;
            Ok(Value::Timestamp(at))
        }
        from => Err(conversion_error(from, &Type::Timestamp)),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "checked against the range")]
fn to_int<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    call.take_parse(call.argument(0)?.bytes())?;
    let overflow = || EvalError::new("integer overflow");
    match call.argument(0)? {
        Value::Int(value) => Ok(Value::Int(*value)),
        Value::Uint(value) => i64::try_from(*value).map(Value::Int).map_err(|_| overflow()),
        Value::Double(value) if *value > i64::MIN as f64 && *value < i64::MAX as f64 => {
            Ok(Value::Int(*value as i64))
        }
        Value::Double(_) => Err(overflow()),
        Value::Duration(value) => Ok(Value::Int(value.nanos)),
        Value::Timestamp(value) => Ok(Value::Int(value.seconds)),
        from @ Value::String(text) => {
            text.parse().map(Value::Int).map_err(|_| conversion_error(from, &Type::Int))
        }
        from => Err(conversion_error(from, &Type::Int)),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "checked against the range"
)]
fn to_uint<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    call.take_parse(call.argument(0)?.bytes())?;
    let overflow = || EvalError::new("unsigned integer overflow");
    match call.argument(0)? {
        Value::Uint(value) => Ok(Value::Uint(*value)),
        Value::Int(value) => u64::try_from(*value).map(Value::Uint).map_err(|_| overflow()),
        Value::Double(value) if *value >= 0.0 && *value < u64::MAX as f64 => Ok(Value::Uint(*value as u64)),
        Value::Double(_) => Err(overflow()),
        from @ Value::String(text) if !text.starts_with('+') => {
            text.parse().map(Value::Uint).map_err(|_| conversion_error(from, &Type::Uint))
        }
        from => Err(conversion_error(from, &Type::Uint)),
    }
}

fn to_string<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::text(match call.argument(0)? {
        from @ Value::String(_) => return Ok(from.clone()),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => print_double(*value),
        Value::Duration(value) => value.to_string(),
        Value::Timestamp(value) => value.to_string(),
        Value::Bytes(bytes) => {
            call.take_parse(bytes.len())?;
            std::str::from_utf8(bytes)
                .map_err(|_| EvalError::new("invalid UTF-8 in bytes, cannot convert to string"))?
                .to_owned()
        }
        Value::Type(ty) => ty.name().to_owned(),
        from => return Err(conversion_error(from, &Type::String)),
    }))
}
