//! Routes of custom resources. Unlike those of built-in kinds, they have no route table; the handler reports errors of the route.

use std::sync::Arc;

use portico_machinery::Status;

use super::verb::{Route, Verb};
use crate::Result;
use crate::call::{Call, Target};
use crate::served_resource::ServedResource;
use crate::verb_types::ObjectPart;

/// Method without a verb that reads nevertheless: upstream's handlers use the verb of request info.
const HEAD: &str = "HEAD";

/// Route of a call whose path belongs to a custom resource.
pub(super) fn find<'a>(served_resource: &Arc<ServedResource>, call: &'a Call) -> Result<Route<'a>> {
    check_ca_bundle(served_resource)?;
    let target = &call.target;
    let part = part(served_resource, target)?;
    let verb = verb_of(call, part).ok_or_else(|| {
        Box::new(Status::method_not_supported(&served_resource.resource, verb_name(&call.verb)))
    })?;
    let names_one = !matches!(verb, Verb::List | Verb::Watch | Verb::Create | Verb::DeleteCollection);
    if names_one && target.name.is_empty() {
        return Err(Box::new(Status::bad_request("name must be provided")));
    }
    Ok(Route { served_resource: Arc::clone(served_resource), verb, part, namespace: &target.namespace })
}

/// True if the scope of the path matches the resource: a path with a namespace for a cluster-scoped resource, or without one for
/// a namespaced resource, is not served.
pub(super) fn is_resource_path(served_resource: &ServedResource, call: &Call) -> bool {
    match (served_resource.info.namespaced, call.target.namespace.is_empty()) {
        (true, true) => matches!(call.verb.as_str(), "list" | "watch") && call.target.name.is_empty(),
        (false, false) => false,
        _ => true,
    }
}

/// Status 500 if the CA bundle of the conversion webhook is invalid: upstream cannot create the converter of the definition.
fn check_ca_bundle(served_resource: &ServedResource) -> Result<()> {
    if served_resource.custom.as_ref().is_none_or(|custom| custom.has_sound_ca_bundle) {
        return Ok(());
    }
    let message = "error resolving resource: the CA bundle of the conversion webhook is invalid";
    Err(Box::new(Status::internal(message)))
}

fn part<'a>(served_resource: &ServedResource, target: &'a Target) -> Result<ObjectPart<'a>> {
    match target.subresource.as_str() {
        "" => Ok(ObjectPart::Main),
        name if served_resource.info.subresource(name).is_some() => Ok(ObjectPart::Subresource(name)),
        _ => Err(Box::new(Status::not_found(&served_resource.resource, &target.name))),
    }
}

fn verb_of(call: &Call, part: ObjectPart<'_>) -> Option<Verb> {
    let named = !call.target.name.is_empty();
    let action = match call.verb.as_str() {
        "get" | HEAD if named => Verb::Get,
        "list" | "get" | HEAD if part == ObjectPart::Main => Verb::List,
        "watch" if part == ObjectPart::Main => Verb::Watch,
        "create" if part == ObjectPart::Main => Verb::Create,
        "update" => Verb::Update,
        "patch" => Verb::Patch,
        "delete" if part == ObjectPart::Main => Verb::Delete,
        "deletecollection" if part == ObjectPart::Main => Verb::DeleteCollection,
        _ => return None,
    };
    Some(action)
}

/// Verb of request info; empty for methods without a verb.
fn verb_name(verb: &str) -> &str {
    match verb {
        "get" | "list" | "watch" | "proxy" | "create" | "update" | "patch" | "delete"
        | "deletecollection" => verb,
        _ => "",
    }
}
