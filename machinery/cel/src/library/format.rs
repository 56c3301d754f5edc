//! Named formats: `format.dns1123Label()` and similar functions, `format.named`, `validate`.

mod checks;

use std::any::Any;

use super::costs;
use super::declaration::Library;
use crate::error::EvalError;
use crate::function::{Call, CallEstimate, CallSizes, Function, Implementation, Overload};
use crate::size::{REGEX_LENGTH, STRING_TRAVERSAL};
use crate::types::Type;
use crate::value::{Opaque, Value};

/// Name of the type in expressions.
pub const TYPE: &str = "kubernetes.NamedFormat";
/// Length of a format's regular expression, for estimates.
const REGEX_SIZE: f64 = 128.0;

/// A named format of strings.
#[derive(Debug)]
pub struct Format {
    /// Name in expressions.
    name: &'static str,
    /// Name of the function that returns the format.
    function: &'static str,
    /// Returns the violations in a string.
    check: fn(&str) -> Vec<String>,
    /// Length of an equivalent regular expression, for costs.
    regex_size: u64,
    /// Returns the format.
    run: Implementation,
}

/// Declares a format and its function.
macro_rules! format {
    ($name:literal, $check:path, $regex_size:literal, $index:literal) => {
        Format {
            name: $name,
            function: concat!("format.", $name),
            check: $check,
            regex_size: $regex_size,
            run: |_| Ok(Value::opaque(NamedFormat(&FORMATS[$index]))),
        }
    };
}

static FORMATS: [Format; 13] = [
    format!("dns1123Label", checks::dns1123_label, 30, 0),
    format!("dns1123Subdomain", checks::dns1123_subdomain, 60, 1),
    format!("dns1035Label", checks::dns1035_label, 30, 2),
    format!("qualifiedName", checks::qualified_name, 60, 3),
    format!("dns1123LabelPrefix", checks::dns1123_label_prefix, 30, 4),
    format!("dns1123SubdomainPrefix", checks::dns1123_subdomain_prefix, 60, 5),
    format!("dns1035LabelPrefix", checks::dns1035_label_prefix, 30, 6),
    format!("labelValue", checks::label_value, 40, 7),
    format!("uri", checks::uri, 1103, 8),
    format!("uuid", checks::uuid, 70, 9),
    format!("byte", checks::byte, 84, 10),
    format!("date", checks::date, 71, 11),
    format!("datetime", checks::datetime, 71, 12),
];

/// A format as a CEL value.
#[derive(Clone, Copy, Debug)]
pub struct NamedFormat(&'static Format);

impl Opaque for NamedFormat {
    fn type_of(&self) -> Type {
        Type::object(TYPE)
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        other.as_any().downcast_ref::<Self>().map(|other| self.0.name == other.0.name)
    }

    fn native(&self) -> String {
        ["(*cel.Format)", self.0.name].concat()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

pub(super) fn library() -> Library {
    let of_type = || Type::object(TYPE);
    let problems = Type::optional(Type::list(Type::String));
    let constant = |format: &Format| {
        Function::new(
            format.function,
            vec![Overload::global(format.function, Vec::new(), of_type(), format.run)],
        )
    };
    let mut functions: Vec<Function> = FORMATS.iter().map(constant).collect();
    functions.push(Function::new(
        "format.named",
        vec![
            Overload::global("format-named", vec![Type::String], Type::optional(of_type()), named_format)
                .costs_by_name(costs::unit_estimate, costs::unit),
        ],
    ));
    functions.push(Function::new(
        "validate",
        vec![
            Overload::member("format-validate", vec![of_type(), Type::String], problems, validate)
                .costs_by_name(estimate, cost),
        ],
    ));
    Library::new("kubernetes.format", functions)
}

fn named_format<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    let name = call.str(0)?;
    let format = FORMATS.iter().find(|format| format.name == name);
    Ok(format.map_or(Value::NONE, |format| Value::some(Value::opaque(NamedFormat(format)))))
}

/// Returns the violations in a string, or an empty optional.
fn validate<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    let format: &NamedFormat = call.opaque(0)?;
    let problems = (format.0.check)(call.str_to_parse(1)?);
    if problems.is_empty() {
        return Ok(Value::NONE);
    }
    Ok(Value::some(Value::list(problems.into_iter().map(Value::text).collect())))
}

fn estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    let text = (call.arguments() >= 1).then(|| call.argument(0))?;
    let cost = text.times_factor(STRING_TRAVERSAL).times_factor(REGEX_SIZE * REGEX_LENGTH);
    Some(CallEstimate::cost(cost))
}

fn cost(arguments: &[Value<'_>], _: &Value<'_>) -> u64 {
    let format = arguments.first().and_then(Value::as_opaque::<NamedFormat>);
    format.map_or(1, |format| costs::regex(costs::size(arguments, 1), format.0.regex_size))
}
