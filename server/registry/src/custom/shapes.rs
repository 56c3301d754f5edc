//! What all versions of all definitions have in common, held once for all of them: the types of built-in kinds that they
//! use, and the properties of a kind that no definition can set otherwise.

use std::sync::Arc;

use portico_kinds::{ColumnRule, Kinds, Ownership, StatusRule};
use portico_schema::{Schema, Typed};

use super::columns;

/// Verbs of a custom resource.
const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// Verbs of its subresources.
const SUBRESOURCE_VERBS: [&str; 3] = ["get", "patch", "update"];

/// Metadata that a write of the status leaves as it is: all but who owns which fields.
const KEPT_BY_STATUS: [&str; 13] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
];

/// See the module.
pub(crate) struct Shapes {
    /// `ObjectMeta`.
    pub(super) object_meta: Option<Typed>,
    /// `autoscaling/v1` `Scale`.
    pub(super) scale: Option<Schema>,
    /// Of each resource.
    pub(super) verbs: Arc<[String]>,
    /// Of each subresource.
    pub(super) subresource_verbs: Arc<[String]>,
    /// Of versions that name none.
    pub(super) columns: Arc<[ColumnRule]>,
    /// Of versions that have `/status`.
    pub(super) status: Arc<StatusRule>,
    /// Of those versions as well.
    pub(super) ownership: Ownership,
}

impl Shapes {
    /// With these built-in kinds.
    pub(crate) fn of(kinds: &Kinds) -> Arc<Self> {
        let dropped: [(&str, &[&str]); 2] = [("", &["status"]), ("status", &["metadata", "spec"])];
        Arc::new(Self {
            object_meta: kinds.meta("ObjectMeta").and_then(|schema| schema.typed().cloned()),
            scale: kinds.schema("io.k8s.api.autoscaling.v1.Scale"),
            verbs: words(&VERBS),
            subresource_verbs: words(&SUBRESOURCE_VERBS),
            columns: columns::of(&[]).into(),
            status: Arc::new(StatusRule {
                owns: vec!["status".to_owned()],
                keeps_metadata: KEPT_BY_STATUS.map(str::to_owned).into(),
                kept_on_create: false,
            }),
            ownership: Ownership::dropping(dropped),
        })
    }
}

fn words(words: &[&str]) -> Arc<[String]> {
    words.iter().map(|&word| word.to_owned()).collect()
}
