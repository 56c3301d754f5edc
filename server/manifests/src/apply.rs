//! One document: server-side apply by a call like a user's.

use std::sync::Arc;

use portico_machinery::{GroupResource, Object, Reason};
use portico_registry::{Answer, Body, Call, Registry, ServedResource, Stored};

use crate::document::Document;
use crate::identity::{self, FIELD_MANAGER, LABEL, MADE};
use crate::requests::{Refusal, Requests, refusal, target};

/// Fields that others own are taken over, as GitOps tools do; fields with doubled keys are refused.
const QUERY: &str = "fieldManager=portico-manifests&force=true&fieldValidation=Strict";
/// Where objects live whose manifest names no namespace.
const DEFAULT_NAMESPACE: &str = "default";

/// Which object it is, whatever its version.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) resource: GroupResource,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// Where a document goes.
pub(crate) struct Place {
    pub(crate) key: Key,
    served: Arc<ServedResource>,
}

impl Place {
    /// Whether its kind lives in namespaces.
    pub(crate) fn is_namespaced(&self) -> bool {
        self.served.info.namespaced
    }
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Created,
    Changed,
    Unchanged,
}

/// A document that was applied.
pub(crate) struct Applied {
    pub(crate) outcome: Outcome,
    pub(crate) warnings: Vec<String>,
}

/// Where a document goes; nothing while its kind is not served.
pub(crate) fn place(registry: &Registry, document: &Document) -> Option<Place> {
    let served = registry.objects().by_kind(&document.kind)?;
    let namespace = match (served.info.namespaced, document.object.namespace()) {
        (false, _) => "",
        (true, "") => DEFAULT_NAMESPACE,
        (true, named) => named,
    };
    let (namespace, name) = (namespace.to_owned(), document.object.name().to_owned());
    let key = Key { resource: GroupResource::clone(&served.storage), namespace, name };
    Some(Place { key, served })
}

/// Applies it. What did not exist is made, and shows that it was. What is being deleted is not applied: it would be gone
/// with what was written.
///
/// # Errors
/// [`Refusal`].
pub(crate) async fn apply(
    registry: &Registry,
    requests: &dyn Requests,
    document: &Document,
    place: &Place,
) -> Result<Applied, Refusal> {
    check_keys(document, place).map_err(Refusal::lasting)?;
    let current = current(registry, place).await?;
    if current.as_ref().is_some_and(Stored::is_deleting) {
        return Err(being_deleted());
    }
    let is_ours = !identity::has_controller(&document.object)
        && current.as_ref().is_none_or(|current| identity::is_made(current.object()));
    let mut answer = send(requests, document, place, is_ours).await?;
    if current.is_none() && answer.code == 200 && !is_made_by_us(&answer) {
        // Somebody else has made it meanwhile.
        answer = send(requests, document, place, false).await?;
    }
    if shown(&answer).deletion_timestamp().is_some() {
        return Err(being_deleted());
    }
    let outcome = match (&current, answer.code) {
        (_, 201) => Outcome::Created,
        (Some(before), _) if before.revision() == answer.revision => Outcome::Unchanged,
        _ => Outcome::Changed,
    };
    Ok(Applied { outcome, warnings: answer.warnings })
}

/// It is made anew once it is gone.
fn being_deleted() -> Refusal {
    Refusal::passing("it is being deleted")
}

/// Whether it is there, and stays.
///
/// # Errors
/// [`Refusal`].
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

/// Refuses keys that stand there twice: what is sent is written anew and has them once.
fn check_keys(document: &Document, place: &Place) -> Result<(), String> {
    let Some(text) = &document.text else { return Ok(()) };
    let Ok((_, typed)) = place.served.info.schema.read_applied(text.as_bytes()) else { return Ok(()) };
    // The parser's lines are those of the document, not of its file.
    let lines = typed.strict.iter().flat_map(|text| text.lines());
    let doubled: Vec<&str> = lines
        .filter(|line| line.ends_with("already set in map"))
        .filter_map(|line| line.find("key ").map(|at| &line[at..]))
        .collect();
    if doubled.is_empty() { Ok(()) } else { Err(doubled.join(", ")) }
}

async fn send(
    requests: &dyn Requests,
    document: &Document,
    place: &Place,
    is_ours: bool,
) -> Result<Answer, Refusal> {
    let mut object = document.object.clone();
    if is_ours {
        object.set(&["metadata", "labels", LABEL], MADE);
    }
    let target = target(&place.served, &place.key.namespace, &place.key.name);
    let call = Call {
        query: QUERY.to_owned(),
        body: object.to_json().into(),
        content_type: "application/apply-patch+yaml".to_owned(),
        ..identity::call("patch", target)
    };
    let answer = requests.serve(call).await;
    refusal(&answer).map(|()| answer)
}

/// The object that an answer shows.
fn shown(answer: &Answer) -> Object {
    let Body::Bytes(json) = &answer.body else { return Object::default() };
    Object::from_json(json).unwrap_or_default()
}

/// Whether nobody but us has written what an answer shows: another control service has made it of the same folder.
fn is_made_by_us(answer: &Answer) -> bool {
    let object = shown(answer);
    let writers = object.at(&["metadata", "managedFields"]);
    let own = writers.items().filter(|writer| writer.field("subresource").str().is_empty());
    own.into_iter().all(|writer| writer.field("manager").str() == FIELD_MANAGER)
}
