//! Routes of custom resources. Unlike those of built-in kinds, they have no route table; the handler reports errors of the route.

use std::sync::Arc;

use portico_machinery::Status;

use super::verb::{Route, Verb};
use crate::Result;
use crate::call::{Call, Target};
use crate::served::ServedResource;
use crate::typed::Part;

/// Method without a verb that reads nevertheless: upstream's handlers use the verb of request info.
const HEAD: &str = "HEAD";

/// Route of a call whose path belongs to a custom resource.
pub(super) fn find<'a>(served: &Arc<ServedResource>, call: &'a Call) -> Result<Route<'a>> {
    check_ca_bundle(served)?;
    let target = &call.target;
    let part = part(served, target)?;
    let action = verb_of(call, part)
        .ok_or_else(|| Box::new(Status::method_not_supported(&served.resource, method(&call.verb))))?;
    let names_one = !matches!(action, Verb::List | Verb::Watch | Verb::Create | Verb::DeleteCollection);
    if names_one && target.name.is_empty() {
        return Err(Box::new(Status::bad_request("name must be provided")));
    }
    Ok(Route { served: Arc::clone(served), action, part, namespace: &target.namespace })
}

/// True if the scope of the path matches the resource: a path with a namespace for a cluster-scoped resource, or without one for
/// a namespaced resource, is not served.
pub(super) fn leads(served: &ServedResource, call: &Call) -> bool {
    match (served.info.namespaced, call.target.namespace.is_empty()) {
        (true, true) => matches!(call.verb.as_str(), "list" | "watch") && call.target.name.is_empty(),
        (false, false) => false,
        _ => true,
    }
}

/// Status 500 if the CA bundle of the conversion webhook is invalid: upstream cannot create the converter of the definition.
fn check_ca_bundle(served: &ServedResource) -> Result<()> {
    if served.custom.as_ref().is_none_or(|custom| custom.has_sound_ca_bundle) {
        return Ok(());
    }
    let why = "error resolving resource: the CA bundle of the conversion webhook is invalid";
    Err(Box::new(Status::internal(why)))
}

fn part<'a>(served: &ServedResource, target: &'a Target) -> Result<Part<'a>> {
    match target.subresource.as_str() {
        "" => Ok(Part::Main),
        name if served.info.subresource(name).is_some() => Ok(Part::Subresource(name)),
        _ => Err(Box::new(Status::not_found(&served.resource, &target.name))),
    }
}

fn verb_of(call: &Call, part: Part<'_>) -> Option<Verb> {
    let named = !call.target.name.is_empty();
    let action = match call.verb.as_str() {
        "get" | HEAD if named => Verb::Get,
        "list" | "get" | HEAD if part == Part::Main => Verb::List,
        "watch" if part == Part::Main => Verb::Watch,
        "create" if part == Part::Main => Verb::Create,
        "update" => Verb::Update,
        "patch" => Verb::Patch,
        "delete" if part == Part::Main => Verb::Delete,
        "deletecollection" if part == Part::Main => Verb::DeleteCollection,
        _ => return None,
    };
    Some(action)
}

/// Verb of request info; empty for methods without a verb.
fn method(verb: &str) -> &str {
    match verb {
        "get" | "list" | "watch" | "proxy" | "create" | "update" | "patch" | "delete"
        | "deletecollection" => verb,
        _ => "",
    }
}
