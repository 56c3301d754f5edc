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
use crate::served::ServedResource;
use crate::typed::Part;

/// Served resource of a target, without further checks.
pub(super) fn served(objects: &Objects, target: &Target) -> Option<Arc<ServedResource>> {
    let resource = GroupVersionResource::new(&target.group, &target.version, &target.resource);
    objects.by_resource(&resource)
}

/// Route of a call to this kind.
pub(super) fn find<'a>(
    handlers: &HandlerTable,
    served: Arc<ServedResource>,
    call: &'a Call,
) -> Result<Route<'a>> {
    let target = &call.target;
    if served.custom.is_some() {
        return custom_route::find(&served, call);
    }
    let namespace = served.namespace_of(target)?;
    let (part, verbs) = part_of(handlers, &served, target)?;
    match action_on(call, verbs, served.info.namespaced && namespace.is_empty()) {
        Some(action) => Ok(Route { served, action, part, namespace }),
        // Former prefix `/proxy` of paths, which authorization still recognizes.
        None if call.verb == "proxy" => Err(Box::new(Status::no_route())),
        None => Err(Box::new(Status::no_method())),
    }
}

/// Namespace of a connection; any method of the connection is allowed.
pub(super) fn connection<'a>(served: &ServedResource, call: &'a Call) -> Result<&'a str> {
    let target = &call.target;
    let namespace = served.namespace_of(target)?;
    let found = subresource(served, target)?;
    if target.name.is_empty() || !connection::has_verb(found.below, &found.verbs, &call.verb) {
        return Err(Box::new(Status::no_method()));
    }
    Ok(namespace)
}

/// Part of the object that a target addresses, and the verbs of that part.
fn part_of<'a, 's>(
    handlers: &HandlerTable,
    served: &'s ServedResource,
    target: &'a Target,
) -> Result<(Part<'a>, &'s [String])> {
    if target.subresource.is_empty() {
        return Ok((Part::Main, &served.info.verbs));
    }
    let subresource = subresource(served, target)?;
    if subresource.connect || handlers.connection(served, &target.subresource).is_some() {
        let message = format!("{}/{} is a connection: use Connect", target.resource, target.subresource);
        return Err(Box::new(Status::bad_request(message)));
    }
    // A subresource of another kind is served only if it is an action or a view.
    let built = subresource.kind == served.info.gvk
        || handlers.action(served, &target.subresource).is_some()
        || served.view(Part::Subresource(&target.subresource)).is_some();
    let verbs: &[String] = if built { &subresource.verbs } else { &[] };
    Ok((Part::Subresource(&target.subresource), verbs))
}

/// Subresource of the path; 404 if the path continues after a subresource that does not serve such paths.
fn subresource<'s>(served: &'s ServedResource, target: &Target) -> Result<&'s Subresource> {
    let fits = |found: &&Subresource| found.below || target.rest.trim_matches('/').is_empty();
    let found = served.info.subresource(&target.subresource).filter(fits);
    found.ok_or_else(|| Box::new(Status::no_route()))
}

fn action_on(call: &Call, verbs: &[String], across_namespaces: bool) -> Option<Verb> {
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
