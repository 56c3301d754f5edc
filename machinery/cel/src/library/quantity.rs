//! Quantities: `quantity`, `isQuantity`, conversions, arithmetic, comparisons.

use std::any::Any;
use std::cmp::Ordering;

use portico_gostd::apimachinery::quantity::Quantity;

use super::costs;
use super::declaration::Library;
use crate::error::EvalError;
use crate::function::{Call, Function, Overload};
use crate::types::Type;
use crate::value::{Opaque, Value};

/// Name of the type in expressions.
pub const TYPE: &str = "kubernetes.Quantity";

impl Opaque for Quantity {
    fn type_of(&self) -> Type {
        Type::object(TYPE)
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        other.as_any().downcast_ref().map(|other| self == other)
    }

    fn native(&self) -> String {
        format!("(*resource.Quantity){}", self.approximate())
    }

    fn bytes(&self) -> usize {
        self.bytes()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A computed quantity. kube-apiserver uses another Go type for these, which `==` does not match on its right side.
#[derive(Debug)]
struct ComputedQuantity(Quantity);

impl Opaque for ComputedQuantity {
    fn type_of(&self) -> Type {
        Type::object(TYPE)
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        self.0.equals(other)
    }

    fn native(&self) -> String {
        self.0.native()
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

pub(super) fn library() -> Library {
    Library {
        name: "kubernetes.quantity",
        functions: [readers(), arithmetic()].concat(),
        ..Library::default()
    }
}

fn quantity() -> Type {
    Type::object(TYPE)
}

fn unit(overload: Overload) -> Overload {
    overload.costs_by_name(costs::unit_estimate, costs::unit)
}

fn readers() -> Vec<Function> {
    let parsed = |overload: Overload| overload.costs_by_name(costs::parse_estimate, costs::read);
    let read = |name, id, result, run| {
        Function::new(name, vec![unit(Overload::member(id, vec![quantity()], result, run))])
    };
    vec![
        Function::new(
            "quantity",
            vec![parsed(Overload::global("string_to_quantity", vec![Type::String], quantity(), parse))],
        ),
        Function::new(
            "isQuantity",
            vec![parsed(Overload::global("is_quantity_string", vec![Type::String], Type::Bool, is_quantity))],
        ),
        // Upstream declares it as a global function.
        Function::new(
            "sign",
            vec![unit(Overload::global("quantity_sign", vec![quantity()], Type::Int, sign))],
        ),
        read("asApproximateFloat", "quantity_get_float", Type::Double, approximate),
        read("asInteger", "quantity_get_int", Type::Int, integer),
        read("isInteger", "quantity_is_integer", Type::Bool, is_integer),
    ]
}

fn arithmetic() -> Vec<Function> {
    let with = |id, other, result, run| unit(Overload::member(id, vec![quantity(), other], result, run));
    vec![
        Function::new(
            "isGreaterThan",
            vec![with("quantity_is_greater_than", quantity(), Type::Bool, is_greater)],
        ),
        Function::new("isLessThan", vec![with("quantity_is_less_than", quantity(), Type::Bool, is_less)]),
        Function::new("compareTo", vec![with("quantity_compare_to", quantity(), Type::Int, compare_to)]),
        Function::new(
            "add",
            vec![
                with("quantity_add", quantity(), quantity(), add),
                with("quantity_add_int", Type::Int, quantity(), add),
            ],
        ),
        Function::new(
            "sub",
            vec![
                with("quantity_sub", quantity(), quantity(), sub),
                with("quantity_sub_int", Type::Int, quantity(), sub),
            ],
        ),
    ]
}

fn receiver<'c>(call: &'c Call<'_, '_>) -> Result<&'c Quantity, EvalError> {
    amount(call.argument(0)?)
}

fn amount<'c>(value: &'c Value<'_>) -> Result<&'c Quantity, EvalError> {
    let computed = || value.as_opaque().map(|ComputedQuantity(amount)| amount);
    value.as_opaque().or_else(computed).ok_or_else(EvalError::no_such_overload)
}

/// Returns the second argument: a quantity or an integer.
fn other(call: &Call<'_, '_>) -> Result<Quantity, EvalError> {
    match call.argument(1)? {
        Value::Int(number) => Ok(Quantity::whole(*number)),
        other => amount(other).cloned(),
    }
}

fn parse<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    let amount: Result<Quantity, _> = call.str_to_parse(0)?.parse();
    amount.map(Value::opaque).map_err(|error| EvalError::new(error.to_string()))
}

fn is_quantity<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::Bool(call.str_to_parse(0)?.parse::<Quantity>().is_ok()))
}

fn sign<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::Int(receiver(call)?.sign()))
}

fn approximate<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::Double(receiver(call)?.approximate()))
}

fn integer<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    let integer = receiver(call)?.integer();
    integer.map(Value::Int).ok_or_else(|| EvalError::new("cannot convert value to integer"))
}

fn is_integer<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::Bool(receiver(call)?.integer().is_some()))
}

fn is_greater<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::Bool(receiver(call)?.cmp(&other(call)?) == Ordering::Greater))
}

fn is_less<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::Bool(receiver(call)?.cmp(&other(call)?) == Ordering::Less))
}

fn compare_to<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::Int(receiver(call)?.cmp(&other(call)?) as i64))
}

/// Counts reading the digits of both operands.
fn take_digits(call: &Call<'_, '_>) -> Result<(), EvalError> {
    call.take_parse(call.arguments.iter().map(Value::bytes).sum())
}

fn add<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    take_digits(call)?;
    Ok(Value::opaque(ComputedQuantity(receiver(call)?.plus(&other(call)?))))
}

fn sub<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    take_digits(call)?;
    Ok(Value::opaque(ComputedQuantity(receiver(call)?.minus(&other(call)?))))
}
