//! Names in paths of JSON patches: `jsonpatch.escapeKey`.

use super::costs;
use super::declaration::Library;
use crate::error::EvalError;
use crate::function::{Call, CallEstimate, CallSizes, Function, Overload};
use crate::size::STRING_TRAVERSAL;
use crate::types::Type;
use crate::value::Value;

pub(super) fn library() -> Library {
    let overload =
        Overload::global("string_jsonpatch_escapeKey_string", vec![Type::String], Type::String, escape);
    let function = Function::new("jsonpatch.escapeKey", vec![overload.costs_by_name(estimate, costs::read)]);
    Library::new("kubernetes.jsonpatch", vec![function])
}

fn estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    let size = call.argument(0);
    (call.arguments() == 1).then(|| CallEstimate::sized(size.times_factor(STRING_TRAVERSAL), size))
}

fn escape<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::text(call.str_to_parse(0)?.replace('~', "~0").replace('/', "~1")))
}
