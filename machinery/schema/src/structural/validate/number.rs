//! Numbers: ranges of types and formats, bounds, multiples. Integers are compared as integers, as upstream does.

use portico_machinery::object::Float;
use serde_json::{Number, Value};

use super::float::truncate_to_i64;
use super::outcome::Outcome;
use super::{Checks, Error, Validator};
use crate::structural::format::FormatKind;
use crate::structural::model::{Bound, JsonType};
use crate::structural::printed;

/// Number that a check requires, in the form in which it is compared and printed.
#[derive(Clone, Copy)]
enum Limit {
    Integer(i64),
    Float(f64),
}

impl Limit {
    #[expect(clippy::cast_precision_loss, reason = "upstream also compares floats")]
    fn float(self) -> f64 {
        match self {
            Self::Integer(integer) => integer as f64,
            Self::Float(float) => float,
        }
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Integer(integer) => integer.fmt(f),
            Self::Float(float) => Float(*float).fmt(f),
        }
    }
}

impl Validator<'_> {
    /// Validates a number of this type.
    pub(super) fn number(&self, number: &Number, ty: Option<JsonType>, checks: &Checks, out: &mut Outcome) {
        self.range(number, "Checked", ty, checks, out);
        let printed = || printed::print_value(&Value::Number(number.clone()));
        if let Some(factor) = checks.multiple_of {
            let factor = self.limit(number, factor, "MultipleOf", ty, checks, out);
            if factor.float() <= 0.0 {
                out.push(|| {
                    let text =
                        format!("factor MultipleOf declared for {} must be positive: {factor}", self.path);
                    Error::invalid_printed(&self.field_path(), &factor.to_string(), &text)
                });
            } else if !is_multiple(number, factor) {
                self.invalid(printed, format_args!("should be a multiple of {factor}"), out);
            }
        }
        if let Some(bound) = checks.minimum {
            let limit = self.limit(number, bound.value, "Minimum boundary", ty, checks, out);
            if let Some(order) = bound_violation(number, limit, bound, std::cmp::Ordering::Less) {
                self.invalid(printed, format_args!("should be greater than {order}{limit}"), out);
            }
        }
        if let Some(bound) = checks.maximum {
            let limit = self.limit(number, bound.value, "Maximum boundary", ty, checks, out);
            if let Some(order) = bound_violation(number, limit, bound, std::cmp::Ordering::Greater) {
                self.invalid(printed, format_args!("should be less than {order}{limit}"), out);
            }
        }
    }

    /// Converts a limit for the comparison with a number: an integer for an integer, unless the limit does not fit the type.
    fn limit(
        &self,
        number: &Number,
        limit: f64,
        label: &str,
        ty: Option<JsonType>,
        checks: &Checks,
        out: &mut Outcome,
    ) -> Limit {
        let fits = Number::from_f64(limit).is_none_or(|limit| self.range(&limit, label, ty, checks, out));
        if fits && !number.is_f64() {
            return Limit::Integer(truncate_to_i64(limit));
        }
        Limit::Float(limit)
    }

    /// Checks that a number is in the range of the type and its format.
    fn range(
        &self,
        number: &Number,
        label: &str,
        ty: Option<JsonType>,
        checks: &Checks,
        out: &mut Outcome,
    ) -> bool {
        let format = checks.format.as_ref();
        let fits = match (ty, format.map(|format| format.kind)) {
            (Some(JsonType::Integer), Some(FormatKind::Int32)) => {
                as_integer(number).is_some_and(|n| i32::try_from(n).is_ok())
            }
            (Some(JsonType::Integer), _) => as_integer(number).is_some(),
            #[expect(clippy::cast_possible_truncation, reason = "larger values become infinite")]
            (Some(JsonType::Number), Some(FormatKind::Float)) => {
                number.as_f64().is_some_and(|f| (f as f32).is_finite())
            }
            _ => return true,
        };
        if !fits {
            let name = ty.map_or("", JsonType::as_str);
            self.error_without_field(
                || match format {
                    Some(format) => {
                        format!(
                            "{label} value must be of type {name} with format {} in {}",
                            format.name, self.path
                        )
                    }
                    None => format!("{label} value must be of type {name} (default format) in {}", self.path),
                },
                out,
            );
        }
        fits
    }
}

/// Returns the number as a 64-bit integer, if it is one.
fn as_integer(number: &Number) -> Option<i64> {
    number.as_i64().or_else(|| number.as_f64()?.to_string().parse().ok())
}

fn is_multiple(number: &Number, factor: Limit) -> bool {
    match (number.as_i64(), factor) {
        (Some(integer), Limit::Integer(factor)) => integer % factor == 0,
        (_, factor) => {
            let (float, factor) = (number.as_f64().unwrap_or_default(), factor.float());
            super::float::is_integral(if factor < 1.0 { 1.0 / factor * float } else { float / factor })
        }
    }
}

/// Checks a bound on this side. Returns `None` if the number is within the bound, otherwise the text about equality for the
/// message, which is empty for an exclusive bound.
fn bound_violation(
    number: &Number,
    limit: Limit,
    bound: Bound,
    side: std::cmp::Ordering,
) -> Option<&'static str> {
    let order = match (number.as_i64(), limit) {
        (Some(integer), Limit::Integer(limit)) => integer.cmp(&limit),
        (_, limit) => number.as_f64()?.partial_cmp(&limit.float())?,
    };
    if order != side && !(bound.exclusive && order.is_eq()) {
        return None;
    }
    Some(if bound.exclusive { "" } else { "or equal to " })
}
