//! Parts of timestamps (in UTC or in a zone) and of durations.

use jiff::civil::DateTime;

use super::zone;
use crate::error::EvalError;
use crate::function::{Call, Function, Overload};
use crate::types::Type;
use crate::value::Value;

/// Declares an accessor with and without a zone. Function pointers cannot capture variables, so a macro makes each accessor
/// a closure.
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

/// Declares an accessor that durations also have, in whole units of a number of nanoseconds.
macro_rules! span {
    ($function:expr, $id:literal, $unit:literal) => {{
        let mut function = $function;
        function
            .overloads
            .push(Overload::member($id, vec![Type::Duration], Type::Int, |call| in_whole_units(call, $unit)));
        function
    }};
}

pub(super) fn functions() -> Vec<Function> {
    vec![
        part!("getFullYear", "timestamp_to_year", "timestamp_to_year_with_tz", |year, _| year),
        part!("getMonth", "timestamp_to_month", "timestamp_to_month_with_tz", |_, at| i64::from(at.month())
            - 1),
        part!("getDayOfYear", "timestamp_to_day_of_year", "timestamp_to_day_of_year_with_tz", |_, at| {
            i64::from(at.day_of_year()) - 1
        }),
        part!("getDayOfMonth", "timestamp_to_day_of_month", "timestamp_to_day_of_month_with_tz", |_, at| {
            i64::from(at.day()) - 1
        }),
        part!(
            "getDate",
            "timestamp_to_day_of_month_1_based",
            "timestamp_to_day_of_month_1_based_with_tz",
            |_, at| at.day().into()
        ),
        part!("getDayOfWeek", "timestamp_to_day_of_week", "timestamp_to_day_of_week_with_tz", |_, at| at
            .weekday()
            .to_sunday_zero_offset()
            .into()),
        span!(
            part!("getHours", "timestamp_to_hours", "timestamp_to_hours_with_tz", |_, at| at.hour().into()),
            "duration_to_hours",
            3_600_000_000_000
        ),
        span!(
            part!("getMinutes", "timestamp_to_minutes", "timestamp_to_minutes_with_tz", |_, at| at
                .minute()
                .into()),
            "duration_to_minutes",
            60_000_000_000
        ),
        span!(
            part!("getSeconds", "timestamp_to_seconds", "timestamp_to_seconds_tz", |_, at| at
                .second()
                .into()),
            "duration_to_seconds",
            1_000_000_000
        ),
        span!(
            part!(
                "getMilliseconds",
                "timestamp_to_milliseconds",
                "timestamp_to_milliseconds_with_tz",
                |_, at| at.millisecond().into()
            ),
            "duration_to_milliseconds",
            1_000_000
        ),
    ]
}

fn read<'v>(call: &Call<'_, 'v>, component: fn(i64, DateTime) -> i64) -> Result<Value<'v>, EvalError> {
    let Value::Timestamp(timestamp) = call.argument(0)? else { return Err(EvalError::no_such_overload()) };
    let offset = if call.arguments.len() > 1 { zone::offset(timestamp, call.str_to_parse(1)?)? } else { 0 };
    let (year, timestamp) = timestamp.calendar(offset);
    Ok(Value::Int(component(year, timestamp)))
}

fn in_whole_units<'v>(call: &Call<'_, 'v>, unit: i64) -> Result<Value<'v>, EvalError> {
    let Value::Duration(span) = call.argument(0)? else { return Err(EvalError::no_such_overload()) };
    Ok(Value::Int(span.nanos / unit))
}
