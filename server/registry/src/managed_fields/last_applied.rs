//! Migration from client-side to server-side apply: `kubectl apply --server-side` takes over the fields in the annotation of
//! `kubectl apply` without a conflict, and updates the annotation.

use portico_machinery::Object;
use portico_machinery::object::to_go_json;
use portico_schema::apply::Conflicts;
use portico_schema::fields::FieldSet;
use portico_schema::managed::Manager;

use crate::served_resource::ServedResource;

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Only manager to which this applies: other managers do not maintain the annotation.
pub(super) const MANAGER: &str = "kubectl";

/// Upstream's limit for all annotations together, in bytes.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// Conflicts that remain after removing fields that the annotation covers and that have not changed since.
pub(super) fn remaining_conflicts(
    served_resource: &ServedResource,
    live: &Object,
    conflicts: Conflicts<Manager>,
) -> Conflicts<Manager> {
    let Some(allowed) = unchanged_fields(served_resource, live) else { return conflicts };
    let remaining = conflicts.0.into_iter().map(|(manager, set)| (manager, set.difference(&allowed)));
    Conflicts(remaining.filter(|(_, set)| !set.is_empty()).collect())
}

/// Fields that the client applied last and that have not changed since.
fn unchanged_fields(served_resource: &ServedResource, live: &Object) -> Option<FieldSet> {
    let applied = Object::from_json(live.annotation(ANNOTATION)?.as_bytes()).ok()?;
    if applied.api_version() != served_resource.api_version {
        return None;
    }
    let schema = &served_resource.info.schema;
    schema.check_applied(&applied).ok()?;
    let changes = schema.compare_raw(&applied, live).ok()?;
    let fields = schema.fields_of(&applied);
    Some(fields.difference(&changes.modified).difference(&changes.added).difference(&changes.removed))
}

/// Updates the annotation with the applied configuration, if the object has it.
pub(super) fn refresh(object: &mut Object, config: &Object) {
    if object.annotation(ANNOTATION).is_none_or(str::is_empty) {
        return;
    }
    let mut annotated = config.clone();
    annotated.remove(&["metadata", "annotations", ANNOTATION]);
    annotated.sort_keys();
    let mut text = String::from_utf8_lossy(&to_go_json(annotated.map())).into_owned();
    text.push('\n');
    let others = object.at(&["metadata", "annotations"]).entries().filter(|(k, _)| *k != ANNOTATION);
    let size: usize = others.map(|(k, v)| k.len() + v.str().len()).sum();
    if size + ANNOTATION.len() + text.len() > MAX_ANNOTATIONS {
        object.remove(&["metadata", "annotations", ANNOTATION]);
    } else {
        object.set(&["metadata", "annotations", ANNOTATION], text);
    }
}
