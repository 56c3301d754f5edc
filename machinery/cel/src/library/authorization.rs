//! Questions to the authorizer. Rules of definitions may name these functions, yet have no authorizer to ask: there are
//! types and no values.

use super::declaration::Library;
use crate::error::EvalError;
use crate::function::{Call, Function, Overload};
use crate::types::Type;
use crate::value::Value;

const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";
const PATH: &str = "kubernetes.authorization.PathCheck";
const GROUP: &str = "kubernetes.authorization.GroupCheck";
const RESOURCE: &str = "kubernetes.authorization.ResourceCheck";
const DECISION: &str = "kubernetes.authorization.Decision";

pub(super) fn library() -> Library {
    let of_resource = |name, id| member(name, id, RESOURCE, 1, Type::opaque(RESOURCE));
    let of_decision = |name, id, result| member(name, id, DECISION, 0, result);
    let checks = vec![
        overload("pathcheck_check", PATH, 1, Type::opaque(DECISION)),
        overload("resourcecheck_check", RESOURCE, 1, Type::opaque(DECISION)),
    ];
    Library {
        name: "kubernetes.authorization",
        functions: vec![
            member("path", "authorizer_path", AUTHORIZER, 1, Type::opaque(PATH)),
            member("group", "authorizer_group", AUTHORIZER, 1, Type::opaque(GROUP)),
            member("serviceAccount", "authorizer_serviceaccount", AUTHORIZER, 2, Type::opaque(AUTHORIZER)),
            member("resource", "groupcheck_resource", GROUP, 1, Type::opaque(RESOURCE)),
            of_resource("subresource", "resourcecheck_subresource"),
            of_resource("namespace", "resourcecheck_namespace"),
            of_resource("name", "resourcecheck_name"),
            of_resource("fieldSelector", "authorizer_fieldselector"),
            of_resource("labelSelector", "authorizer_labelselector"),
            Function::new("check", checks),
            of_decision("errored", "decision_errored", Type::Bool),
            of_decision("error", "decision_error", Type::String),
            of_decision("allowed", "decision_allowed", Type::Bool),
            of_decision("reason", "decision_reason", Type::String),
        ],
        ..Library::default()
    }
}

/// A function of one overload: a receiver, and so many texts.
fn member(name: &'static str, id: &'static str, of: &str, texts: usize, result: Type) -> Function {
    Function::new(name, vec![overload(id, of, texts, result)])
}

fn overload(id: &'static str, of: &str, texts: usize, result: Type) -> Overload {
    let mut parameters = vec![Type::opaque(of)];
    parameters.resize(texts + 1, Type::String);
    Overload::member(id, parameters, result, nobody_to_ask)
}

fn nobody_to_ask<'v>(_: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Err(EvalError::no_such_overload())
}
