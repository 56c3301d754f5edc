//! Applies one document with a server-side apply request, with the verbs and checks of a user's request.

use std::sync::Arc;

use portico_machinery::{GroupResource, GroupVersion, Object, Reason};
use portico_registry::{Answer, Body, Call, Registry, ServedResource, StoredObject, Target};

use crate::document::Document;
use crate::foreign_servers::ForeignResource;
use crate::identity::{self, FIELD_MANAGER, LABEL, LABEL_VALUE};
use crate::requests::{Refusal, Requests, check_answer, target};

/// Takes over fields of other managers, as GitOps tools do, and refuses duplicate fields.
const QUERY: &str = "fieldManager=portico-manifests&force=true&fieldValidation=Strict";
/// Namespace of objects whose manifest names none.
const DEFAULT_NAMESPACE: &str = "default";

/// Identity of an object, without its version.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ObjectKey {
    pub(crate) resource: GroupResource,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// Local resource to which a document is applied.
pub(crate) struct LocalTarget {
    pub(crate) key: ObjectKey,
    served: Arc<ServedResource>,
}

impl LocalTarget {
    pub(crate) fn is_namespaced(&self) -> bool {
        self.served.info.namespaced
    }
}

/// Result of applying a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ApplyOutcome {
    Created,
    Changed,
    Unchanged,
}

/// Outcome and warnings of an applied document.
pub(crate) struct ApplyResult {
    pub(crate) outcome: ApplyOutcome,
    pub(crate) warnings: Vec<String>,
}

/// Returns the local target of a document; `None` if its kind is not served.
pub(crate) fn local_target(registry: &Registry, document: &Document) -> Option<LocalTarget> {
    let served = registry.objects().by_kind(&document.kind)?;
    let key = object_key(document, GroupResource::clone(&served.storage), served.info.namespaced);
    Some(LocalTarget { key, served })
}

fn object_key(document: &Document, resource: GroupResource, is_namespaced: bool) -> ObjectKey {
    let namespace = match (is_namespaced, document.object.namespace()) {
        (false, _) => "",
        (true, "") => DEFAULT_NAMESPACE,
        (true, named) => named,
    };
    ObjectKey { resource, namespace: namespace.to_owned(), name: document.object.name().to_owned() }
}

/// Returns the key of a document's object, and its target on another server.
pub(crate) fn aggregated_target(document: &Document, resource: &ForeignResource) -> (ObjectKey, Target) {
    let group_version = document.kind.group_version();
    let key = object_key(
        document,
        GroupResource::new(&group_version.group, &resource.name),
        resource.is_namespaced,
    );
    let target = target_of(&group_version, &key);
    (key, target)
}

/// Returns the target of an object in this version.
pub(crate) fn target_of(group_version: &GroupVersion, key: &ObjectKey) -> Target {
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
    local_target: &LocalTarget,
) -> Result<ApplyResult, Refusal> {
    check_keys(document, local_target).map_err(Refusal::permanent)?;
    let current = read_current(registry, local_target).await?;
    let target = target(&local_target.served, &local_target.key.namespace, &local_target.key.name);
    write(requests, document, target, current.as_ref().map(StoredObject::object)).await
}

/// Applies a document to an object on another server.
///
/// # Errors
/// Returns the [`Refusal`] of the request.
pub(crate) async fn apply_aggregated(
    requests: &dyn Requests,
    document: &Document,
    target: Target,
) -> Result<ApplyResult, Refusal> {
    check_foreign_keys(document).map_err(Refusal::permanent)?;
    for name in [&target.namespace, &target.name] {
        check_segment(name).map_err(Refusal::permanent)?;
    }
    let answer = requests.serve(identity::request("get", target.clone())).await;
    let exists = match &answer.status {
        Some(status) if status.reason() == Reason::NotFound => false,
        _ => check_answer(&answer).map(|()| true)?,
    };
    let current = exists.then(|| object_of(&answer));
    write(requests, document, target, current.as_ref()).await
}

/// Writes a document. A new object gets the label of the folder. An object that is being deleted is not written, because the
/// write would be lost with it.
async fn write(
    requests: &dyn Requests,
    document: &Document,
    target: Target,
    current: Option<&Object>,
) -> Result<ApplyResult, Refusal> {
    if current.is_some_and(|current| current.deletion_timestamp().is_some()) {
        return Err(deletion_refusal());
    }
    let with_label =
        !identity::has_controller(&document.object) && current.is_none_or(identity::is_created_from_folder);
    let mut answer = send(requests, document, target.clone(), with_label).await?;
    if current.is_none() && answer.code == 200 && !is_written_by_folder_only(&object_of(&answer)) {
        // Another client has created the object in the meantime: applies again without the label.
        answer = send(requests, document, target, false).await?;
    }
    let after = object_of(&answer);
    if after.deletion_timestamp().is_some() {
        return Err(deletion_refusal());
    }
    let outcome = match (current, answer.code) {
        (_, 201) => ApplyOutcome::Created,
        (Some(before), _) if before.resource_version() == after.resource_version() => ApplyOutcome::Unchanged,
        _ => ApplyOutcome::Changed,
    };
    Ok(ApplyResult { outcome, warnings: answer.warnings })
}

/// Returns the refusal for an object that is being deleted. The document is applied again after the deletion.
fn deletion_refusal() -> Refusal {
    Refusal::temporary("the object is being deleted")
}

/// Returns true if the object exists and is not being deleted.
///
/// # Errors
/// Returns a [`Refusal`] if the object cannot be read.
pub(crate) async fn exists(registry: &Registry, local_target: &LocalTarget) -> Result<bool, Refusal> {
    Ok(read_current(registry, local_target).await?.is_some_and(|current| !current.is_deleting()))
}

async fn read_current(
    registry: &Registry,
    local_target: &LocalTarget,
) -> Result<Option<StoredObject>, Refusal> {
    let ObjectKey { namespace, name, .. } = &local_target.key;
    match registry.get(&local_target.served.resource, namespace, name).await {
        Ok(stored) => Ok(Some(stored)),
        Err(status) if status.reason() == Reason::NotFound => Ok(None),
        Err(status) => Err(Refusal::from(&*status)),
    }
}

/// Refuses duplicate keys in the document's text: the request is encoded from the parsed object and would contain them once.
fn check_keys(document: &Document, local_target: &LocalTarget) -> Result<(), String> {
    let Some(text) = &document.text else { return Ok(()) };
    let Ok((_, typed)) = local_target.served.info.schema.read_applied(text.as_bytes()) else { return Ok(()) };
    refuse_duplicates(typed.strict.iter().flat_map(|text| text.lines()))
}

/// Refuses duplicate keys in a document whose schema only another server knows.
fn check_foreign_keys(document: &Document) -> Result<(), String> {
    let lines = document.text.as_deref().map(portico_schema::duplicate_keys).unwrap_or_default();
    refuse_duplicates(lines.iter().map(String::as_str))
}

/// Refuses names that are not valid as a path segment.
fn check_segment(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._:~@+=,;!$&'()*".contains(c);
    if name.chars().all(is_plain) && !matches!(name, "." | "..") {
        return Ok(());
    }
    Err(format!("{name:?} is not a valid path segment"))
}

fn refuse_duplicates<'a>(lines: impl Iterator<Item = &'a str>) -> Result<(), String> {
    // The parser's line numbers are relative to the document, not to the file, and are omitted.
    let duplicates: Vec<&str> = lines
        .filter(|line| line.ends_with("already set in map"))
        .filter_map(|line| line.find("key ").map(|start| &line[start..]))
        .collect();
    if duplicates.is_empty() { Ok(()) } else { Err(duplicates.join(", ")) }
}

async fn send(
    requests: &dyn Requests,
    document: &Document,
    target: Target,
    with_label: bool,
) -> Result<Answer, Refusal> {
    let mut object = document.object.clone();
    if with_label {
        object.set(&["metadata", "labels", LABEL], LABEL_VALUE);
    }
    let call = Call {
        query: QUERY.to_owned(),
        body: object.to_json().into(),
        content_type: "application/apply-patch+yaml".to_owned(),
        ..identity::request("patch", target)
    };
    let answer = requests.serve(call).await;
    check_answer(&answer).map(|()| answer)
}

/// Parses the object in a response.
pub(crate) fn object_of(answer: &Answer) -> Object {
    let Body::Bytes(json) = &answer.body else { return Object::default() };
    Object::from_json(json).unwrap_or_default()
}

/// Returns true if only this field manager has written the object: another control service has created it from the same folder.
fn is_written_by_folder_only(object: &Object) -> bool {
    let writers = object.at(&["metadata", "managedFields"]);
    let main_writers = writers.items().filter(|writer| writer.field("subresource").str().is_empty());
    main_writers.into_iter().all(|writer| writer.field("manager").str() == FIELD_MANAGER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_without_special_meaning_in_a_path_are_sent() {
        for plain in ["", "one", "system:node", "a.b-c"] {
            assert_eq!(check_segment(plain), Ok(()));
        }
        for other in ["a/status", "a?dryRun=All", "..", "a%2f", "a b", "\u{e9}"] {
            assert!(check_segment(other).is_err(), "{other}");
        }
    }
}
