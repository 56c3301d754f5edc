//! Parts of timestamps (in UTC or in a zone) and of durations.

use super::zone;
use crate::error::EvalError;
use crate::function::{Call, Function, Overload};
use crate::types::Type;
use crate::value::{Civil, Timestamp, Value};

/// Declares an accessor with and without a zone. Function pointers capture nothing, so each accessor is a macro's
/// closure over the part that it reads.
macro_rules! part {
    ($name:literal, $id:literal, $with_zone:literal, $part:expr) => {
        Function::new(
            $name,
            vec![
                Overload::member($id, vec![Type::Timestamp], Type::Int, |call| read(call, $part)),
                Overload::member($with_zone, vec![Type::Timestamp, Type::String], Type::Int, |call| {
                    read(call, $part)
                }),
            ],
        )
    };
}

/// The same for what durations have, too: in whole units of so many nanoseconds.
macro_rules! span {
    ($function:expr, $id:literal, $unit:literal) => {{
        let mut function = $function;
        function
            .overloads
            .push(Overload::member($id, vec![Type::Duration], Type::Int, |call| whole(call, $unit)));
        function
    }};
}

pub(super) fn functions() -> Vec<Function> {
    vec![
        part!("getFullYear", "timestamp_to_year", "timestamp_to_year_with_tz", |at, _| at.year),
        part!("getMonth", "timestamp_to_month", "timestamp_to_month_with_tz", |at, _| at.month - 1),
        part!("getDayOfYear", "timestamp_to_day_of_year", "timestamp_to_day_of_year_with_tz", |at, _| at
            .day_of_year
            - 1),
        part!("getDayOfMonth", "timestamp_to_day_of_month", "timestamp_to_day_of_month_with_tz", |at, _| at
            .day
            - 1),
        part!(
            "getDate",
            "timestamp_to_day_of_month_1_based",
            "timestamp_to_day_of_month_1_based_with_tz",
            |at, _| at.day
        ),
        part!("getDayOfWeek", "timestamp_to_day_of_week", "timestamp_to_day_of_week_with_tz", |at, _| at
            .weekday),
        span!(
            part!("getHours", "timestamp_to_hours", "timestamp_to_hours_with_tz", |at, _| at.hour),
            "duration_to_hours",
            3_600_000_000_000
        ),
        span!(
            part!("getMinutes", "timestamp_to_minutes", "timestamp_to_minutes_with_tz", |at, _| at.minute),
            "duration_to_minutes",
            60_000_000_000
        ),
        span!(
            part!("getSeconds", "timestamp_to_seconds", "timestamp_to_seconds_tz", |at, _| at.second),
            "duration_to_seconds",
            1_000_000_000
        ),
        span!(
            part!(
                "getMilliseconds",
                "timestamp_to_milliseconds",
                "timestamp_to_milliseconds_with_tz",
                |_, at| { i64::from(at.nanos / 1_000_000) }
            ),
            "duration_to_milliseconds",
            1_000_000
        ),
    ]
}

fn read<'v>(call: &Call<'_, 'v>, part: fn(&Civil, &Timestamp) -> i64) -> Result<Value<'v>, EvalError> {
    let Value::Timestamp(at) = call.argument(0)? else { return Err(EvalError::no_such_overload()) };
    let offset = if call.arguments.len() > 1 { zone::offset(at, call.str(1)?)? } else { 0 };
    Ok(Value::Int(part(&at.civil(offset), at)))
}

fn whole<'v>(call: &Call<'_, 'v>, unit: i64) -> Result<Value<'v>, EvalError> {
    let Value::Duration(span) = call.argument(0)? else { return Err(EvalError::no_such_overload()) };
    Ok(Value::Int(span.nanos / unit))
}
