//! IP networks: `cidr`, `isCIDR`, `containsIP`, `containsCIDR`, `ip`, `masked`, `prefixLength`.

use std::any::Any;

use portico_gostd::netip::Prefix;
use portico_gostd::strconv::quote;

use super::costs;
use super::declaration::Library;
use super::ip::{self, Ip, is_mapped};
use crate::error::EvalError;
use crate::function::{Call, CallEstimate, CallSizes, Function, Overload};
use crate::size::{CostEstimate, STRING_TRAVERSAL, SizeEstimate, scale};
use crate::types::Type;
use crate::value::{Opaque, Value};

/// Name of the type in expressions.
pub const TYPE: &str = "net.CIDR";
/// Size of an address in bytes: 4 or 16.
const ADDRESS: SizeEstimate = SizeEstimate::new(4, 16);

impl Opaque for Prefix {
    fn type_of(&self) -> Type {
        Type::opaque(TYPE)
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        other.as_any().downcast_ref().map(|other| self == other)
    }

    /// Size of the address in bytes.
    fn size(&self) -> Option<u64> {
        Some(u64::from(self.bits).div_ceil(8))
    }

    fn native(&self) -> String {
        format!("(netip.Prefix){self}")
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

pub(super) fn library() -> Library {
    Library {
        name: "kubernetes.net.cidr",
        functions: [readers(), contents()].concat(),
        types: vec![(TYPE, Type::opaque(TYPE)), (ip::TYPE, Type::opaque(ip::TYPE))],
        ..Library::default()
    }
}

fn readers() -> Vec<Function> {
    let of_type = || Type::opaque(TYPE);
    let one = |name, overload| Function::new(name, vec![overload]);
    let parsed = |id, result, run| {
        Overload::global(id, vec![Type::String], result, run)
            .costs_by_name(costs::parse_estimate, costs::read)
    };
    let unit = |id, result, run| {
        Overload::member(id, vec![of_type()], result, run).costs_by_name(costs::unit_estimate, costs::unit)
    };
    vec![
        one("cidr", parsed("string_to_cidr", of_type(), parse)),
        one("isCIDR", parsed("is_cidr", Type::Bool, is_cidr)),
        one("string", Overload::global("cidr_to_string", vec![of_type()], Type::String, string)),
        one("ip", unit("cidr_ip", Type::opaque(ip::TYPE), address)),
        one("prefixLength", unit("cidr_prefix_length", Type::Int, prefix_length)),
        one("masked", unit("cidr_masked", of_type(), masked)),
    ]
}

fn contents() -> Vec<Function> {
    let with = |id, other, run| Overload::member(id, vec![Type::opaque(TYPE), other], Type::Bool, run);
    vec![
        Function::new(
            "containsIP",
            vec![
                with("cidr_contains_ip_string", Type::String, contains_ip)
                    .costs_by_name(ip_text_estimate, ip_text_cost),
                with("cidr_contains_ip_ip", Type::opaque(ip::TYPE), contains_ip)
                    .costs_by_name(ip_estimate, ip_cost),
            ],
        ),
        Function::new(
            "containsCIDR",
            vec![
                with("cidr_contains_cidr_string", Type::String, contains_cidr)
                    .costs_by_name(cidr_text_estimate, cidr_text_cost),
                with("cidr_contains_cidr", Type::opaque(TYPE), contains_cidr)
                    .costs_by_name(cidr_estimate, cidr_cost),
            ],
        ),
    ]
}

fn read(text: &str) -> Result<Prefix, EvalError> {
    let reported = |error: String| {
        // Upstream repeats the prefix.
        let prefix = "network address parse error during conversion from string";
        EvalError::new(format!("{prefix}: {error}"))
    };
    let network: Prefix = text.parse().map_err(|error: String| {
        reported(format!("network address parse error during conversion from string: {error}"))
    })?;
    if is_mapped(network.ip) {
        return Err(reported(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text))));
    }
    Ok(network)
}

fn receiver(call: &Call<'_, '_>) -> Result<Prefix, EvalError> {
    call.opaque(0).copied()
}

fn parse<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    read(call.str_to_parse(0)?).map(Value::opaque)
}

fn is_cidr<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::Bool(read(call.str_to_parse(0)?).is_ok()))
}

fn string<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::text(receiver(call)?.to_string()))
}

fn address<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::opaque(Ip(receiver(call)?.ip)))
}

fn prefix_length<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::Int(i64::from(receiver(call)?.bits)))
}

fn masked<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::opaque(receiver(call)?.masked()))
}

/// Tests if a network contains an address. An invalid address is `no such overload`, as in kube-apiserver.
fn contains_ip<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    let network = receiver(call)?;
    call.take_parse(call.argument(1)?.bytes())?;
    let ip = match call.argument(1)? {
        Value::String(text) => ip::read(text).map_err(|_| EvalError::no_such_overload())?,
        other => *other.as_opaque::<Ip>().ok_or_else(EvalError::no_such_overload)?,
    };
    Ok(Value::Bool(network.contains(ip.0)))
}

fn contains_cidr<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    let network = receiver(call)?;
    call.take_parse(call.argument(1)?.bytes())?;
    let other = match call.argument(1)? {
        Value::String(text) => read(text)?,
        other => *other.as_opaque().ok_or_else(EvalError::no_such_overload)?,
    };
    Ok(Value::Bool(network.contains_network(other)))
}

/// Estimates the comparison of two addresses.
fn comparison_estimate() -> CostEstimate {
    ADDRESS.plus(ADDRESS).times_factor(STRING_TRAVERSAL)
}

/// Cost of comparing two networks: masking one, and comparing the bits.
fn compared_networks() -> CostEstimate {
    comparison_estimate().plus(ADDRESS.times_factor(STRING_TRAVERSAL)).plus(CostEstimate::ONE)
}

fn with_text(call: &dyn CallSizes, cost: CostEstimate) -> Option<CallEstimate> {
    let text = (call.arguments() >= 1).then(|| call.argument(0))?;
    Some(CallEstimate::cost(cost.plus(text.times_factor(STRING_TRAVERSAL))))
}

fn ip_text_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    with_text(call, comparison_estimate())
}

#[expect(clippy::unnecessary_wraps, reason = "an EstimateFn")]
fn ip_estimate(_: &dyn CallSizes) -> Option<CallEstimate> {
    Some(CallEstimate::cost(comparison_estimate()))
}

fn cidr_text_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    with_text(call, compared_networks())
}

#[expect(clippy::unnecessary_wraps, reason = "an EstimateFn")]
fn cidr_estimate(_: &dyn CallSizes) -> Option<CallEstimate> {
    Some(CallEstimate::cost(compared_networks()))
}

fn ip_cost(arguments: &[Value<'_>], _: &Value<'_>) -> u64 {
    scale(2 * costs::size(arguments, 0), STRING_TRAVERSAL)
}

fn ip_text_cost(arguments: &[Value<'_>], result: &Value<'_>) -> u64 {
    ip_cost(arguments, result) + scale(costs::size(arguments, 1), STRING_TRAVERSAL)
}

fn cidr_cost(arguments: &[Value<'_>], result: &Value<'_>) -> u64 {
    ip_cost(arguments, result) + scale(costs::size(arguments, 0), STRING_TRAVERSAL) + 1
}

fn cidr_text_cost(arguments: &[Value<'_>], result: &Value<'_>) -> u64 {
    cidr_cost(arguments, result) + scale(costs::size(arguments, 1), STRING_TRAVERSAL)
}
