//! Routes inside a group version: which kind, which action, or upstream's 404 and 405 (upstream's `APIInstaller.registerResourceHandlers`).

use std::sync::Arc;

use portico_kinds::Subresource;
use portico_machinery::{GroupVersionResource, Status};

use crate::Result;
use crate::call::{Call, Target};
use crate::connection;
use crate::custom;
use crate::registry::{Part, Verbs};
use crate::served::ServedResource;

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

/// A call's way.
pub(crate) struct Route<'a> {
    pub(crate) served: Arc<ServedResource>,
    pub(crate) action: Verb,
    pub(crate) part: Part<'a>,
    pub(crate) namespace: &'a str,
}

/// The kind that a target names, whatever else is wrong with it.
pub(super) fn served(inner: &Verbs, target: &Target) -> Option<Arc<ServedResource>> {
    let resource = GroupVersionResource::new(&target.group, &target.version, &target.resource);
    inner.by_resource(&resource)
}

/// The way of a call to the kind that its target names.
pub(super) fn find(served: Arc<ServedResource>, call: &Call) -> Result<Route<'_>> {
    let target = &call.target;
    if served.custom.is_some() {
        return custom::find(&served, call);
    }
    let namespace = namespace_of(&served, target)?;
    let (part, verbs) = part_of(&served, target)?;
    match action_on(call, verbs, served.info.namespaced && namespace.is_empty()) {
        Some(action) => Ok(Route { served, action, part, namespace }),
        // A prefix of the path that once was, as authorization still reads it.
        None if call.verb == "proxy" => Err(Box::new(Status::no_route())),
        None => Err(Box::new(Status::no_method())),
    }
}

/// The kind and the namespace of a connection, by whatever method it may be asked for.
pub(super) fn connection<'a>(inner: &Verbs, call: &'a Call) -> Result<(Arc<ServedResource>, &'a str)> {
    let target = &call.target;
    let served = served(inner, target).ok_or_else(|| Box::new(Status::no_route()))?;
    let namespace = namespace_of(&served, target)?;
    let found = subresource(&served, target)?;
    if target.name.is_empty() || !connection::has_verb(found.below, &found.verbs, &call.verb) {
        return Err(Box::new(Status::no_method()));
    }
    Ok((served, namespace))
}

/// The namespace of the path; 404 when the kind lives elsewhere.
fn namespace_of<'a>(served: &ServedResource, target: &'a Target) -> Result<&'a str> {
    let (namespace, name) = (target.namespace.as_str(), target.name.as_str());
    // Path grammar: below /namespaces/x the path itself names x as the namespace.
    let own = target.resource == "namespaces" && namespace == name;
    match (served.info.namespaced, namespace.is_empty()) {
        (true, true) if !name.is_empty() => Err(Box::new(Status::no_route())),
        (false, false) if own => Ok(""),
        (false, false) => Err(Box::new(Status::no_route())),
        _ => Ok(namespace),
    }
}

/// The part of the object and the verbs that it has.
fn part_of<'a, 's>(served: &'s ServedResource, target: &'a Target) -> Result<(Part<'a>, &'s [String])> {
    if target.subresource.is_empty() {
        return Ok((Part::Main, &served.info.verbs));
    }
    let subresource = subresource(served, target)?;
    if subresource.connect || served.row.connection_of(&target.subresource).is_some() {
        let message =
            format!("{}/{} connects: it is asked for by Connect", target.resource, target.subresource);
        return Err(Box::new(Status::bad_request(message)));
    }
    // A subresource of another kind is an action or a view, or it is not there yet.
    let built = subresource.kind == served.info.gvk
        || served.row.action_of(&target.subresource).is_some()
        || served.view(Part::Subresource(&target.subresource)).is_some();
    let verbs: &[String] = if built { &subresource.verbs } else { &[] };
    Ok((Part::Subresource(&target.subresource), verbs))
}

/// The subresource that the path names; one that serves nothing below itself is not there with more behind it.
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
