//! Description of a version of a definition as a kind, in the form that built-in kinds have.

use portico_kinds::{Deletion, Generation, KindInfo, NameRule, Ownership, Subresource};
use portico_machinery::expiration::Lifecycle;
use portico_machinery::gvk::GroupVersionKind;
use portico_machinery::version_order::preferred_first;
use portico_schema::Schema;

use super::columns;
use super::facts::{Facts, Version};
use super::shapes::Shapes;

/// Kind of a version of a definition.
pub(super) fn of(facts: &Facts, version: &Version, schema: Schema, shapes: &Shapes) -> KindInfo {
    let names = facts.names();
    let gvk = GroupVersionKind {
        group: facts.group().to_owned(),
        version: version.name.clone(),
        kind: names.kind.clone(),
    };
    let status = version.subresources.status.as_ref();
    KindInfo {
        resource: names.plural.clone(),
        singular: names.singular.clone(),
        list_kind: names.list_kind.clone(),
        short_names: names.short_names.clone(),
        categories: names.categories.clone(),
        namespaced: facts.is_namespaced(),
        verbs: shapes.verbs.clone(),
        subresources: subresources(&gvk, version, &schema, shapes),
        columns: match &*version.additional_printer_columns {
            [] => shapes.columns.clone(),
            reported => columns::of(reported).into(),
        },
        selectable: selectable(facts, version),
        storage: facts.resource(),
        storage_version: facts.storage().map_or_else(String::new, |v| v.name.clone()),
        upstream_storage_version: String::new(),
        uncached: false,
        schema,
        list_schema: None,
        stored: true,
        name_rule: NameRule::Subdomain,
        allow_create_on_update: false,
        allow_unconditional_update: false,
        deletion: Deletion::default(),
        generation: Generation::Changes { paths: vec![vec!["*".to_owned()]], counts_empty: false },
        status: status.map(|_| shapes.status.clone()),
        ownership: status.map_or_else(Ownership::default, |_| shapes.ownership.clone()),
        allow_unqualified_finalizers: true,
        expires: false,
        deprecation: deprecation(facts, version, &gvk),
        off_by_default: false,
        lifecycle: Lifecycle::default(),
        gvk,
    }
}

fn subresources(
    parent: &GroupVersionKind,
    version: &Version,
    schema: &Schema,
    shapes: &Shapes,
) -> Vec<Subresource> {
    let described = |name: &str, kind: GroupVersionKind, schema: Option<Schema>| Subresource {
        name: name.to_owned(),
        kind,
        schema,
        verbs: shapes.subresource_verbs.clone(),
        connect: false,
        below: true,
        parameters: Vec::new(),
    };
    let of_scale = GroupVersionKind {
        group: "autoscaling".to_owned(),
        version: "v1".to_owned(),
        kind: "Scale".to_owned(),
    };
    let scale =
        version.subresources.scale.as_ref().map(|_| described("scale", of_scale, shapes.scale.clone()));
    let status = version.subresources.status.as_ref();
    let status = status.map(|_| described("status", parent.clone(), Some(schema.clone())));
    scale.into_iter().chain(status).collect()
}

fn selectable(facts: &Facts, version: &Version) -> Vec<String> {
    let namespace = facts.is_namespaced().then_some("metadata.namespace");
    let own = version.selectable_fields.iter().map(|field| field.json_path.trim_start_matches('.'));
    std::iter::once("metadata.name").chain(namespace).chain(own).map(str::to_owned).collect()
}

/// Upstream's warning about a deprecated version; empty for other versions.
fn deprecation(facts: &Facts, version: &Version, gvk: &GroupVersionKind) -> String {
    if !version.deprecated {
        return String::new();
    }
    if let Some(warning) = &version.deprecation_warning {
        return warning.clone();
    }
    let better = facts.versions().iter().filter(|other| {
        other.served && !other.deprecated && preferred_first(&other.name, &version.name).is_lt()
    });
    let best = better.min_by(|a, b| preferred_first(&a.name, &b.name));
    let hint = best.map(|v| format!("; use {}/{} {}", gvk.group, v.name, gvk.kind)).unwrap_or_default();
    format!("{}/{} {} is deprecated{hint}", gvk.group, gvk.version, gvk.kind)
}
