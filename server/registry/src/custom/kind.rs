//! A version of a definition as the kind that generic code knows: the same description as built-in kinds have.

use std::sync::Arc;

use portico_kinds::{Deletion, Generation, KindInfo, NameRule, Ownership, StatusRule, Subresource};
use portico_machinery::expiration::Lifecycle;
use portico_machinery::gvk::GroupVersionKind;
use portico_machinery::version_order::preferred_first;
use portico_schema::{Schema, Typed};

use super::columns;
use super::facts::{Facts, Version};

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

/// A version of a definition as a kind; `scale` has the types of `autoscaling/v1` `Scale`.
pub(super) fn of(facts: &Facts, version: &Version, schema: Schema, scale: Option<&Schema>) -> KindInfo {
    let names = facts.names();
    let gvk = GroupVersionKind {
        group: facts.group().to_owned(),
        version: version.name.clone(),
        kind: names.kind.clone(),
    };
    let has_status = version.subresources.status.is_some();
    KindInfo {
        resource: names.plural.clone(),
        singular: names.singular.clone(),
        list_kind: names.list_kind.clone(),
        short_names: names.short_names.clone(),
        categories: names.categories.clone(),
        namespaced: facts.is_namespaced(),
        verbs: words(&VERBS),
        subresources: subresources(&gvk, version, &schema, scale),
        columns: columns::of(&version.additional_printer_columns),
        selectable: selectable(facts, version),
        storage: facts.resource(),
        storage_version: facts.storage().map_or_else(String::new, |v| v.name.clone()),
        schema,
        list_schema: None,
        stored: true,
        name_rule: NameRule::Subdomain,
        allow_create_on_update: false,
        allow_unconditional_update: false,
        deletion: Deletion::default(),
        generation: Generation::Changes(vec![vec!["*".to_owned()]]),
        status: has_status.then(|| StatusRule {
            owns: vec!["status".to_owned()],
            keeps_metadata: words(&KEPT_BY_STATUS),
            kept_on_create: false,
        }),
        ownership: ownership(has_status),
        allow_unqualified_finalizers: true,
        expires: false,
        deprecation: deprecation(facts, version, &gvk),
        off_by_default: false,
        lifecycle: Lifecycle::default(),
        gvk,
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn ownership(has_status: bool) -> Ownership {
    let status: (&str, &[&str]) = ("status", &["metadata", "spec"]);
    if has_status {
        Ownership::dropping([("", &["status"] as &[&str]), status])
    } else {
        Ownership::default()
    }
}

fn subresources(
    parent: &GroupVersionKind,
    version: &Version,
    schema: &Schema,
    scale: Option<&Schema>,
) -> Vec<Subresource> {
    let described = |name: &str, kind: GroupVersionKind, schema: Option<Schema>| Subresource {
        name: name.to_owned(),
        kind,
        schema,
        verbs: words(&SUBRESOURCE_VERBS),
        connect: false,
        below: true,
        parameters: Vec::new(),
    };
    let of_scale = GroupVersionKind {
        group: "autoscaling".to_owned(),
        version: "v1".to_owned(),
        kind: "Scale".to_owned(),
    };
    let scale = version.subresources.scale.as_ref().map(|_| described("scale", of_scale, scale.cloned()));
    let status = version.subresources.status.as_ref();
    let status = status.map(|_| described("status", parent.clone(), Some(schema.clone())));
    scale.into_iter().chain(status).collect()
}

fn selectable(facts: &Facts, version: &Version) -> Vec<String> {
    let namespace = facts.is_namespaced().then_some("metadata.namespace");
    let own = version.selectable_fields.iter().map(|field| field.json_path.trim_start_matches('.'));
    std::iter::once("metadata.name").chain(namespace).chain(own).map(str::to_owned).collect()
}

/// Upstream's warning about a version that should not be used any more; empty for others.
fn deprecation(facts: &Facts, version: &Version, gvk: &GroupVersionKind) -> String {
    if !version.deprecated {
        return String::new();
    }
    if let Some(said) = &version.deprecation_warning {
        return said.clone();
    }
    let better = facts.versions().iter().filter(|other| {
        other.served && !other.deprecated && preferred_first(&other.name, &version.name).is_lt()
    });
    let best = better.min_by(|a, b| preferred_first(&a.name, &b.name));
    let hint = best.map(|v| format!("; use {}/{} {}", gvk.group, v.name, gvk.kind)).unwrap_or_default();
    format!("{}/{} {} is deprecated{hint}", gvk.group, gvk.version, gvk.kind)
}

/// Shared by all versions of all definitions: the types of what they have in common with built-in kinds.
#[derive(Clone)]
pub(crate) struct Shapes {
    /// `ObjectMeta`.
    pub(crate) object_meta: Option<Typed>,
    /// `autoscaling/v1` `Scale`.
    pub(crate) scale: Option<Schema>,
}

impl Shapes {
    /// Of the built-in types.
    pub(crate) fn of(kinds: &portico_kinds::Kinds) -> Arc<Self> {
        Arc::new(Self {
            object_meta: kinds.meta("ObjectMeta").and_then(|schema| schema.typed().cloned()),
            scale: kinds.schema("io.k8s.api.autoscaling.v1.Scale"),
        })
    }
}
