//! URLs: `url`, `isURL`, and their parts.

use std::any::Any;

use indexmap::IndexMap;
use portico_gostd::url::{Query, Url, check_request_uri};

use super::costs;
use super::declaration::Library;
use crate::error::EvalError;
use crate::function::{Call, CallEstimate, CallSizes, Function, Implementation, Overload};
use crate::size::STRING_TRAVERSAL;
use crate::types::Type;
use crate::value::{Key, Map, MapBuilder, Opaque, Value};

/// Name of the type in expressions.
pub const TYPE: &str = "kubernetes.URL";

impl Opaque for Url {
    fn type_of(&self) -> Type {
        Type::object(TYPE)
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        other.as_any().downcast_ref::<Self>().map(|other| self.to_string() == other.to_string())
    }

    fn native(&self) -> String {
        format!("(*url.URL){self}")
    }

    fn bytes(&self) -> usize {
        self.bytes()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

pub(super) fn library() -> Library {
    let url = || Type::object(TYPE);
    let one = |name, overload| Function::new(name, vec![overload]);
    let part = |name, id, result, run: Implementation| {
        one(
            name,
            Overload::member(id, vec![url()], result, run).costs_by_name(costs::unit_estimate, costs::unit),
        )
    };
    let matrix = Type::map(Type::String, Type::list(Type::String));
    Library {
        name: "kubernetes.urls",
        functions: vec![
            one(
                "url",
                Overload::global("string_to_url", vec![Type::String], url(), parse)
                    .costs_by_name(estimate, costs::read),
            ),
            one("isURL", Overload::global("is_url_string", vec![Type::String], Type::Bool, is_url)),
            part("getScheme", "url_get_scheme", Type::String, scheme),
            part("getHost", "url_get_host", Type::String, host),
            part("getHostname", "url_get_hostname", Type::String, hostname),
            part("getPort", "url_get_port", Type::String, port),
            part("getEscapedPath", "url_get_escaped_path", Type::String, escaped_path),
            part("getQuery", "url_get_query", matrix, query),
        ],
        ..Library::default()
    }
}

fn estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    let size = (call.arguments() == 1).then(|| call.argument(0))?;
    Some(CallEstimate::sized(size.times_factor(STRING_TRAVERSAL), size))
}

fn parse<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    let reported = |error| EvalError::new(format!("URL parse error during conversion from string: {error}"));
    Url::parse(call.str_to_parse(0)?).map(Value::opaque).map_err(reported)
}

fn is_url<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::Bool(check_request_uri(call.str_to_parse(0)?).is_ok()))
}

fn part<'v>(call: &Call<'_, 'v>, of: impl Fn(&Url) -> String) -> Result<Value<'v>, EvalError> {
    Ok(Value::text(of(call.opaque(0)?)))
}

fn scheme<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    part(call, |url| url.scheme.clone())
}

fn host<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    part(call, Url::host)
}

fn hostname<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    part(call, Url::hostname)
}

fn port<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    part(call, Url::port)
}

fn escaped_path<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    call.take_parse(call.argument(0)?.bytes())?;
    part(call, Url::escaped_path)
}

fn query<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    let url: &Url = call.opaque(0)?;
    // Each byte may be a parameter.
    call.take(url.query().len())?;
    let texts = |values: Vec<String>| Value::list(values.into_iter().map(Value::text).collect());
    let mut parameters: IndexMap<String, Vec<String>> = IndexMap::new();
    for (key, value) in Query::parse(url.query()).iter() {
        parameters.entry(key.to_owned()).or_default().push(value.to_owned());
    }
    let entries = parameters.into_iter().map(|(key, values)| (Key::String(key.into()), texts(values)));
    Ok(Value::Map(Map::from(entries.collect::<MapBuilder<'v>>())))
}
