//! Semantic versions: `semver`, `isSemver`, `major`, `minor`, `patch`, comparisons.

mod version;

use std::any::Any;
use std::cmp::Ordering;

pub use version::Version;

use super::costs;
use super::declaration::Library;
use crate::error::EvalError;
use crate::function::{Call, Function, Overload};
use crate::types::Type;
use crate::value::{Opaque, Value};

/// Name of the type in expressions.
pub const TYPE: &str = "kubernetes.Semver";

impl Opaque for Version {
    fn type_of(&self) -> Type {
        Type::object(TYPE)
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        other.as_any().downcast_ref().map(|other| self.cmp(other) == Ordering::Equal)
    }

    fn native(&self) -> String {
        format!("(semver.Version){self}")
    }

    fn bytes(&self) -> usize {
        self.bytes()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

pub(super) fn library() -> Library {
    use Type::{Bool, Int, String};
    let semver = || Type::object(TYPE);
    let parsed = |overload: Overload| overload.costs_by_name(costs::parse_estimate, costs::read);
    let unit = |overload: Overload| overload.costs_by_name(costs::unit_estimate, costs::unit);
    let number =
        |name, id, run| Function::new(name, vec![unit(Overload::member(id, vec![semver()], Int, run))]);
    let compared = |name, id, result, run| {
        Function::new(name, vec![unit(Overload::member(id, vec![semver(), semver()], result, run))])
    };
    Library {
        name: "kubernetes.Semver",
        functions: vec![
            Function::new(
                "semver",
                vec![
                    parsed(Overload::global("string_to_semver", vec![String], semver(), parse)),
                    parsed(Overload::global("string_bool_to_semver", vec![String, Bool], semver(), parse)),
                ],
            ),
            Function::new(
                "isSemver",
                vec![
                    parsed(Overload::global("is_semver_string", vec![String], Bool, is_semver)),
                    parsed(Overload::global("is_semver_string_bool", vec![String, Bool], Bool, is_semver)),
                ],
            ),
            compared("isGreaterThan", "semver_is_greater_than", Bool, is_greater),
            compared("isLessThan", "semver_is_less_than", Bool, is_less),
            compared("compareTo", "semver_compare_to", Int, compare_to),
            number("major", "semver_major", major),
            number("minor", "semver_minor", minor),
            number("patch", "semver_patch", patch),
        ],
        ..Library::default()
    }
}

fn read(call: &Call<'_, '_>) -> Result<Result<Version, String>, EvalError> {
    let text = call.str_to_parse(0)?;
    let normalize = call.arguments.get(1).map_or(Ok(false), bool::try_from)?;
    Ok(if normalize { Version::normalized(text) } else { text.parse() })
}

fn parse<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    read(call)?.map(Value::opaque).map_err(EvalError::new)
}

fn is_semver<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::Bool(read(call)?.is_ok()))
}

fn order(call: &Call<'_, '_>) -> Result<Ordering, EvalError> {
    let (one, two): (&Version, &Version) = (call.opaque(0)?, call.opaque(1)?);
    Ok(one.cmp(two))
}

fn is_greater<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::Bool(order(call)? == Ordering::Greater))
}

fn is_less<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::Bool(order(call)? == Ordering::Less))
}

fn compare_to<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::Int(order(call)? as i64))
}

/// Numbers wrap when they are converted to signed integers, as in kube-apiserver.
fn number<'v>(call: &Call<'_, 'v>, of: impl Fn(&Version) -> u64) -> Result<Value<'v>, EvalError> {
    Ok(Value::Int(of(call.opaque(0)?).cast_signed()))
}

fn major<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    number(call, |version| version.major)
}

fn minor<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    number(call, |version| version.minor)
}

fn patch<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    number(call, |version| version.patch)
}
