//! Routes within a group version: kind and verb of a call, or upstream's status
//! 404 or 405 (`APIInstaller.registerResourceHandlers`).

use std::sync::Arc;

use portico_kinds::Subresource;
use portico_machinery::{GroupVersionResource, Status};

use super::custom_route;
use super::verb::{Route, Verb};
use crate::Result;
use crate::call::{Call, Target};
use crate::connection;
use crate::handlers::HandlerTable;
use crate::objects::Objects;
use crate::served_resource::ServedResource;
use crate::verb_types::ObjectPart;

/// Served resource of a target, without further checks.
pub(super) fn find_served_resource(objects: &Objects, target: &Target) -> Option<Arc<ServedResource>> {
    let resource = GroupVersionResource::new(&target.group, &target.version, &target.resource);
    objects.by_resource(&resource)
}

/// Route of a call to this kind.
pub(super) fn find<'a>(
    handlers: &HandlerTable,
    served_resource: Arc<ServedResource>,
    call: &'a Call,
) -> Result<Route<'a>> {
    let target = &call.target;
    if served_resource.custom.is_some() {
        return custom_route::find(&served_resource, call);
    }
    let namespace = served_resource.namespace_of(target)?;
    let (part, verbs) = part_of(handlers, &served_resource, target)?;
    match verb_of(call, verbs, served_resource.info.namespaced && namespace.is_empty()) {
        Some(verb) => Ok(Route { served_resource, verb, part, namespace }),
        // Former prefix `/proxy` of paths, which authorization still recognizes.
        None if call.verb == "proxy" => Err(Box::new(Status::route_not_found())),
        None => Err(Box::new(Status::method_not_allowed())),
    }
}

/// Namespace of a connection; any method of the connection is allowed.
pub(super) fn connection<'a>(served_resource: &ServedResource, call: &'a Call) -> Result<&'a str> {
    let target = &call.target;
    let namespace = served_resource.namespace_of(target)?;
    let found = subresource(served_resource, target)?;
    if target.name.is_empty() || !connection::has_verb(found.has_subpaths, &found.verbs, &call.verb) {
        return Err(Box::new(Status::method_not_allowed()));
    }
    Ok(namespace)
}

/// Part of the object that a target addresses, and the verbs of that part.
fn part_of<'a, 's>(
    handlers: &HandlerTable,
    served_resource: &'s ServedResource,
    target: &'a Target,
) -> Result<(ObjectPart<'a>, &'s [String])> {
    if target.subresource.is_empty() {
        return Ok((ObjectPart::Main, &served_resource.info.verbs));
    }
    let subresource = subresource(served_resource, target)?;
    if subresource.is_connect || handlers.connection(served_resource, &target.subresource).is_some() {
        let message = format!("{}/{} is a connection: use Connect", target.resource, target.subresource);
        return Err(Box::new(Status::bad_request(message)));
    }
    // A subresource of another kind is served only if it is an action or a view.
    let is_served = subresource.kind == served_resource.info.gvk
        || handlers.action(served_resource, &target.subresource).is_some()
        || served_resource.view(ObjectPart::Subresource(&target.subresource)).is_some();
    let verbs: &[String] = if is_served { &subresource.verbs } else { &[] };
    Ok((ObjectPart::Subresource(&target.subresource), verbs))
}

/// Subresource of the path; 404 if the path continues after a subresource that does not serve such paths.
fn subresource<'s>(served_resource: &'s ServedResource, target: &Target) -> Result<&'s Subresource> {
    let is_served = |found: &&Subresource| found.has_subpaths || target.subpath.trim_matches('/').is_empty();
    let found = served_resource.info.subresource(&target.subresource).filter(is_served);
    found.ok_or_else(|| Box::new(Status::route_not_found()))
}

fn verb_of(call: &Call, verbs: &[String], across_namespaces: bool) -> Option<Verb> {
    let collection = call.target.name.is_empty();
    let action = match (call.verb.as_str(), collection) {
        ("list", true) => Verb::List,
        ("watch", true) => Verb::Watch,
        ("watch", false) if call.watch_prefix => Verb::Watch,
        ("create", true) if !across_namespaces => Verb::Create,
        ("create", false) if !call.target.subresource.is_empty() => Verb::Create,
        ("deletecollection", true) if !across_namespaces => Verb::DeleteCollection,
        ("get", false) => Verb::Get,
        ("update", false) => Verb::Update,
        ("patch", false) => Verb::Patch,
        ("delete", false) => Verb::Delete,
        _ => return None,
    };
    verbs.contains(&call.verb).then_some(action)
}
