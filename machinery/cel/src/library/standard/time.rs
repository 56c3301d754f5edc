//! Parts of timestamps (in UTC or in a zone) and of durations.

use jiff::civil::DateTime;

use super::zone;
use crate::error::EvalError;
use crate::function::{Call, Function, Overload};
use crate::types::Type;
use crate::value::Value;

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

/// Declares a getter that durations have, too, in whole units of a number of nanoseconds.
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

fn read<'v>(call: &Call<'_, 'v>, part: fn(i64, DateTime) -> i64) -> Result<Value<'v>, EvalError> {
    let Value::Timestamp(at) = call.argument(0)? else { return Err(EvalError::no_such_overload()) };
    let offset = if call.arguments.len() > 1 { zone::offset(at, call.parsed(1)?)? } else { 0 };
    let (year, at) = at.calendar(offset);
    Ok(Value::Int(part(year, at)))
}

fn whole<'v>(call: &Call<'_, 'v>, unit: i64) -> Result<Value<'v>, EvalError> {
    let Value::Duration(span) = call.argument(0)? else { return Err(EvalError::no_such_overload()) };
    Ok(Value::Int(span.nanos / unit))
}
