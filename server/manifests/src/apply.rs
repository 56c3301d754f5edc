//! Applies one document by a server-side apply request, like a user's.

use std::sync::Arc;

use portico_machinery::{GroupResource, GroupVersion, Object, Reason};
use portico_registry::{Answer, Body, Call, Registry, ServedResource, Stored, Target};

use crate::document::Document;
use crate::identity::{self, FIELD_MANAGER, LABEL, MADE};
use crate::other_servers::OtherResource;
use crate::requests::{Refusal, Requests, refusal, target};

/// Takes over fields of other managers, as GitOps tools do, and refuses duplicate fields.
const QUERY: &str = "fieldManager=portico-manifests&force=true&fieldValidation=Strict";
/// Namespace of objects whose manifest names none.
const DEFAULT_NAMESPACE: &str = "default";

/// Identity of an object, without its version.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) resource: GroupResource,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// Local resource to which a document is applied.
pub(crate) struct Place {
    pub(crate) key: Key,
    served: Arc<ServedResource>,
}

impl Place {
    pub(crate) fn is_namespaced(&self) -> bool {
        self.served.info.namespaced
    }
}

/// Result of applying a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Created,
    Changed,
    Unchanged,
}

/// Outcome and warnings of an applied document.
pub(crate) struct Applied {
    pub(crate) outcome: Outcome,
    pub(crate) warnings: Vec<String>,
}

/// Returns the local target of a document; `None` if its kind is not served.
pub(crate) fn place(registry: &Registry, document: &Document) -> Option<Place> {
    let served = registry.objects().by_kind(&document.kind)?;
    let key = key(document, GroupResource::clone(&served.storage), served.info.namespaced);
    Some(Place { key, served })
}

fn key(document: &Document, resource: GroupResource, is_namespaced: bool) -> Key {
    let namespace = match (is_namespaced, document.object.namespace()) {
        (false, _) => "",
        (true, "") => DEFAULT_NAMESPACE,
        (true, named) => named,
    };
    Key { resource, namespace: namespace.to_owned(), name: document.object.name().to_owned() }
}

/// Returns the key of a document's object, and its target on another server.
pub(crate) fn place_aggregated(document: &Document, resource: &OtherResource) -> (Key, Target) {
    let group_version = document.kind.group_version();
    let key = key(document, GroupResource::new(&group_version.group, &resource.name), resource.is_namespaced);
    let target = target_of(&group_version, &key);
    (key, target)
}

/// Returns the target of an object in this version.
pub(crate) fn target_of(group_version: &GroupVersion, key: &Key) -> Target {
    Target {
        group: group_version.group.clone(),
        version: group_version.version.clone(),
        resource: key.resource.resource.clone(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        ..Target::default()
    }
}

/// Applies a document locally.
///
/// # Errors
/// Returns the [`Refusal`] of the request.
pub(crate) async fn apply(
    registry: &Registry,
    requests: &dyn Requests,
    document: &Document,
    place: &Place,
) -> Result<Applied, Refusal> {
    check_keys(document, place).map_err(Refusal::lasting)?;
    let current = current(registry, place).await?;
    let target = target(&place.served, &place.key.namespace, &place.key.name);
    write(requests, document, target, current.as_ref().map(Stored::object)).await
}

/// Applies a document to an object on another server.
///
/// # Errors
/// Returns the [`Refusal`] of the request.
pub(crate) async fn apply_aggregated(
    requests: &dyn Requests,
    document: &Document,
    target: Target,
) -> Result<Applied, Refusal> {
    check_foreign_keys(document).map_err(Refusal::lasting)?;
    for name in [&target.namespace, &target.name] {
        check_segment(name).map_err(Refusal::lasting)?;
    }
    let answer = requests.serve(identity::call("get", target.clone())).await;
    let is_there = match &answer.status {
        Some(status) if status.reason() == Reason::NotFound => false,
        _ => refusal(&answer).map(|()| true)?,
    };
    let current = is_there.then(|| shown(&answer));
    write(requests, document, target, current.as_ref()).await
}

/// Writes a document. A new object gets the label of the folder. An object that is being deleted is not written, because the
/// write would be lost with it.
async fn write(
    requests: &dyn Requests,
    document: &Document,
    target: Target,
    current: Option<&Object>,
) -> Result<Applied, Refusal> {
    if current.is_some_and(|current| current.deletion_timestamp().is_some()) {
        return Err(being_deleted());
    }
    let is_ours = !identity::has_controller(&document.object) && current.is_none_or(identity::is_made);
    let mut answer = send(requests, document, target.clone(), is_ours).await?;
    if current.is_none() && answer.code == 200 && !is_made_by_us(&shown(&answer)) {
        // Another client has created the object in the meantime: applies again without the label.
        answer = send(requests, document, target, false).await?;
    }
    let after = shown(&answer);
    if after.deletion_timestamp().is_some() {
        return Err(being_deleted());
    }
    let outcome = match (current, answer.code) {
        (_, 201) => Outcome::Created,
        (Some(before), _) if before.resource_version() == after.resource_version() => Outcome::Unchanged,
        _ => Outcome::Changed,
    };
    Ok(Applied { outcome, warnings: answer.warnings })
}

/// Returns the refusal for an object that is being deleted. The document is applied again after the deletion.
fn being_deleted() -> Refusal {
    Refusal::passing("the object is being deleted")
}

/// Returns true if the object exists and is not being deleted.
///
/// # Errors
/// Returns a [`Refusal`] if the object cannot be read.
pub(crate) async fn stays(registry: &Registry, place: &Place) -> Result<bool, Refusal> {
    Ok(current(registry, place).await?.is_some_and(|current| !current.is_deleting()))
}

async fn current(registry: &Registry, place: &Place) -> Result<Option<Stored>, Refusal> {
    let Key { namespace, name, .. } = &place.key;
    match registry.get(&place.served.resource, namespace, name).await {
        Ok(stored) => Ok(Some(stored)),
        Err(status) if status.reason() == Reason::NotFound => Ok(None),
        Err(status) => Err(Refusal::from(&*status)),
    }
}

/// Refuses duplicate keys in the document's text: the request is encoded from the parsed object and would contain them once.
fn check_keys(document: &Document, place: &Place) -> Result<(), String> {
    let Some(text) = &document.text else { return Ok(()) };
    let Ok((_, typed)) = place.served.info.schema.read_applied(text.as_bytes()) else { return Ok(()) };
    refuse_doubled(typed.strict.iter().flat_map(|text| text.lines()))
}

/// Refuses duplicate keys in a document whose schema only another server knows.
fn check_foreign_keys(document: &Document) -> Result<(), String> {
    let lines = document.text.as_deref().map(portico_schema::doubled_keys).unwrap_or_default();
    refuse_doubled(lines.iter().map(String::as_str))
}

/// Refuses names that are not valid as a path segment.
fn check_segment(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._:~@+=,;!$&'()*".contains(c);
    if name.chars().all(is_plain) && !matches!(name, "." | "..") {
        return Ok(());
    }
    Err(format!("{name:?} is not a valid path segment"))
}

fn refuse_doubled<'a>(lines: impl Iterator<Item = &'a str>) -> Result<(), String> {
    // The parser's line numbers are relative to the document, not to the file, and are omitted.
    let doubled: Vec<&str> = lines
        .filter(|line| line.ends_with("already set in map"))
        .filter_map(|line| line.find("key ").map(|at| &line[at..]))
        .collect();
    if doubled.is_empty() { Ok(()) } else { Err(doubled.join(", ")) }
}

async fn send(
    requests: &dyn Requests,
    document: &Document,
    target: Target,
    is_ours: bool,
) -> Result<Answer, Refusal> {
    let mut object = document.object.clone();
    if is_ours {
        object.set(&["metadata", "labels", LABEL], MADE);
    }
    let call = Call {
        query: QUERY.to_owned(),
        body: object.to_json().into(),
        content_type: "application/apply-patch+yaml".to_owned(),
        ..identity::call("patch", target)
    };
    let answer = requests.serve(call).await;
    refusal(&answer).map(|()| answer)
}

/// Parses the object in a response.
pub(crate) fn shown(answer: &Answer) -> Object {
    let Body::Bytes(json) = &answer.body else { return Object::default() };
    Object::from_json(json).unwrap_or_default()
}

/// Returns true if only this field manager has written the object: another control service has created it from the same folder.
fn is_made_by_us(object: &Object) -> bool {
    let writers = object.at(&["metadata", "managedFields"]);
    let own = writers.items().filter(|writer| writer.field("subresource").str().is_empty());
    own.into_iter().all(|writer| writer.field("manager").str() == FIELD_MANAGER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_stand_for_themselves_in_a_path_are_sent() {
        for plain in ["", "one", "system:node", "a.b-c"] {
            assert_eq!(check_segment(plain), Ok(()));
        }
        for other in ["a/status", "a?dryRun=All", "..", "a%2f", "a b", "\u{e9}"] {
            assert!(check_segment(other).is_err(), "{other}");
        }
    }
}
