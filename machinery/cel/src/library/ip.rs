//! IP addresses: `ip`, `isIP`, `ip.isCanonical`, families and kinds.

use std::any::Any;
use std::net::IpAddr;

use portico_gostd::netip::{self, parse_address};
use portico_gostd::strconv::quote;

use super::costs;
use super::declaration::Library;
use crate::error::EvalError;
use crate::function::{Call, Function, Overload};
use crate::types::Type;
use crate::value::{Opaque, Value};

/// Name of the type in expressions.
pub const TYPE: &str = "net.IP";

/// An IP address without a zone, which is not an IPv4-mapped IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip(pub IpAddr);

impl Opaque for Ip {
    fn type_of(&self) -> Type {
        Type::opaque(TYPE)
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        other.as_any().downcast_ref().map(|other| self == other)
    }

    fn size(&self) -> Option<u64> {
        Some(if self.0.is_ipv4() { 4 } else { 16 })
    }

    fn native(&self) -> String {
        format!("(netip.Addr){}", self.0)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

pub(super) fn library() -> Library {
    let of_type = || Type::opaque(TYPE);
    let global = |name, overload: Overload| Function::new(name, vec![overload]);
    let is = |name, id, run| {
        let overload = Overload::member(id, vec![of_type()], Type::Bool, run);
        Function::new(name, vec![overload.costs_by_name(costs::unit_estimate, costs::unit)])
    };
    let of_text = |id, result, run| Overload::global(id, vec![Type::String], result, run);
    Library {
        name: "kubernetes.net.ip",
        functions: vec![
            global(
                "ip",
                of_text("string_to_ip", of_type(), parse).costs_by_name(costs::parse_estimate, costs::read),
            ),
            global(
                "isIP",
                of_text("is_ip", Type::Bool, is_ip).costs_by_name(costs::parse_estimate, costs::read),
            ),
            global(
                "ip.isCanonical",
                of_text("ip_is_canonical", Type::Bool, is_canonical)
                    .costs_by_name(costs::parse_twice_estimate, costs::read_twice),
            ),
            global("string", Overload::global("ip_to_string", vec![of_type()], Type::String, string)),
            global(
                "family",
                Overload::member("ip_family", vec![of_type()], Type::Int, family)
                    .costs_by_name(costs::unit_estimate, costs::unit),
            ),
            is("isUnspecified", "ip_is_unspecified", is_unspecified),
            is("isLoopback", "ip_is_loopback", is_loopback),
            is("isLinkLocalMulticast", "ip_is_link_local_multicast", is_link_local_multicast),
            is("isLinkLocalUnicast", "ip_is_link_local_unicast", is_link_local_unicast),
            is("isGlobalUnicast", "ip_is_global_unicast", is_global_unicast),
        ],
        types: vec![(TYPE, of_type())],
        ..Library::default()
    }
}

/// Parses an address.
///
/// # Errors
/// kube-apiserver's message.
pub(super) fn read(text: &str) -> Result<Ip, String> {
    let quoted = || quote(text);
    let address = parse_address(text).map_err(|error| {
        format!("IP Address {} parse error during conversion from string: {error}", quoted())
    })?;
    if !address.zone.is_empty() {
        return Err(format!("IP address {} with zone value is not allowed", quoted()));
    }
    if is_mapped(address.ip) {
        return Err(format!("IPv4-mapped IPv6 address {} is not allowed", quoted()));
    }
    Ok(Ip(address.ip))
}

/// True for an IPv4-mapped IPv6 address.
pub(super) fn is_mapped(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some())
}

fn parse<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    read(call.str_to_parse(0)?).map(Value::opaque).map_err(EvalError::new)
}

fn is_ip<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::Bool(read(call.str_to_parse(0)?).is_ok()))
}

fn is_canonical<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    let text = call.str_to_parse(0)?;
    let ip = read(text).map_err(EvalError::new)?;
    Ok(Value::Bool(ip.0.to_string() == text))
}

fn receiver(call: &Call<'_, '_>) -> Result<IpAddr, EvalError> {
    call.opaque::<Ip>(0).map(|ip| ip.0)
}

fn string<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::text(receiver(call)?.to_string()))
}

fn family<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::Int(if receiver(call)?.is_ipv4() { 4 } else { 6 }))
}

fn is_unspecified<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::Bool(receiver(call)?.is_unspecified()))
}

fn is_loopback<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::Bool(receiver(call)?.is_loopback()))
}

fn is_link_local_multicast<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::Bool(netip::is_link_local_multicast(receiver(call)?)))
}

fn is_link_local_unicast<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::Bool(netip::is_link_local_unicast(receiver(call)?)))
}

fn is_global_unicast<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::Bool(netip::is_global_unicast(receiver(call)?)))
}
