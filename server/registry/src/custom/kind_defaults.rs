//! Properties that all versions of all definitions share: types of built-in kinds, and properties of a kind that definitions
//! cannot set.

use std::sync::Arc;

use portico_kinds::{ColumnRule, Kinds, OwnershipFilters, StatusRule};
use portico_schema::{Schema, Typed};

use super::columns;

/// Verbs of custom resources.
const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// Verbs of subresources of custom resources.
const SUBRESOURCE_VERBS: [&str; 3] = ["get", "patch", "update"];

/// Metadata that a write of the status does not change: all except managedFields.
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

/// Properties of all custom resources.
pub(crate) struct KindDefaults {
    /// Types of `ObjectMeta`.
    pub(super) object_meta: Option<Typed>,
    /// Types of `autoscaling/v1` `Scale`.
    pub(super) scale: Option<Schema>,
    /// Verbs of each resource.
    pub(super) verbs: Arc<[String]>,
    /// Verbs of each subresource.
    pub(super) subresource_verbs: Arc<[String]>,
    /// Columns of versions without columns.
    pub(super) columns: Arc<[ColumnRule]>,
    /// Status rule of versions with `/status`.
    pub(super) status: Arc<StatusRule>,
    /// Field ownership of versions with `/status`.
    pub(super) ownership: OwnershipFilters,
}

impl KindDefaults {
    /// Properties from these built-in kinds.
    pub(crate) fn from_kinds(kinds: &Kinds) -> Arc<Self> {
        let reset_fields: [(&str, &[&str]); 2] = [("", &["status"]), ("status", &["metadata", "spec"])];
        Arc::new(Self {
            object_meta: kinds.meta_schema("ObjectMeta").and_then(|schema| schema.typed().cloned()),
            scale: kinds.schema("io.k8s.api.autoscaling.v1.Scale"),
            verbs: to_strings(&VERBS),
            subresource_verbs: to_strings(&SUBRESOURCE_VERBS),
            columns: columns::column_rules(&[]).into(),
            status: Arc::new(StatusRule {
                owned_fields: vec!["status".to_owned()],
                kept_metadata: KEPT_BY_STATUS.map(str::to_owned).into(),
                kept_on_create: false,
            }),
            ownership: OwnershipFilters::with_reset_fields(reset_fields),
        })
    }
}

fn to_strings(texts: &[&str]) -> Arc<[String]> {
    texts.iter().map(|&word| word.to_owned()).collect()
}
