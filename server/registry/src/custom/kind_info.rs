//! Description of a version of a definition as a kind, in the form that built-in kinds have.

use portico_kinds::{DeletionRules, GenerationRule, KindInfo, NameRule, OwnershipFilters, Subresource};
use portico_machinery::expiration::Lifecycle;
use portico_machinery::gvk::GroupVersionKind;
use portico_machinery::version_order::preferred_first;
use portico_schema::Schema;

use super::columns;
use super::definition_facts::{DefinitionFacts, DefinitionVersion};
use super::kind_defaults::KindDefaults;

/// Kind of a version of a definition.
pub(super) fn new_kind_info(
    facts: &DefinitionFacts,
    version: &DefinitionVersion,
    schema: Schema,
    kind_defaults: &KindDefaults,
) -> KindInfo {
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
        verbs: kind_defaults.verbs.clone(),
        subresources: subresources(&gvk, version, &schema, kind_defaults),
        columns: match &*version.additional_printer_columns {
            [] => kind_defaults.columns.clone(),
            reported => columns::column_rules(reported).into(),
        },
        selectable_fields: selectable(facts, version),
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
        deletion: DeletionRules::default(),
        generation: GenerationRule::Managed { paths: vec![vec!["*".to_owned()]], counts_empty: false },
        status: status.map(|_| kind_defaults.status.clone()),
        ownership: status.map_or_else(OwnershipFilters::default, |_| kind_defaults.ownership.clone()),
        allow_unqualified_finalizers: true,
        expires: false,
        deprecation_warning: deprecation(facts, version, &gvk),
        off_by_default: false,
        lifecycle: Lifecycle::default(),
        gvk,
    }
}

fn subresources(
    parent: &GroupVersionKind,
    version: &DefinitionVersion,
    schema: &Schema,
    kind_defaults: &KindDefaults,
) -> Vec<Subresource> {
    let subresource = |name: &str, kind: GroupVersionKind, schema: Option<Schema>| Subresource {
        name: name.to_owned(),
        kind,
        schema,
        verbs: kind_defaults.subresource_verbs.clone(),
        is_connect: false,
        has_subpaths: true,
        parameters: Vec::new(),
    };
    let scale_kind = GroupVersionKind {
        group: "autoscaling".to_owned(),
        version: "v1".to_owned(),
        kind: "Scale".to_owned(),
    };
    let scale = version
        .subresources
        .scale
        .as_ref()
        .map(|_| subresource("scale", scale_kind, kind_defaults.scale.clone()));
    let status = version.subresources.status.as_ref();
    let status = status.map(|_| subresource("status", parent.clone(), Some(schema.clone())));
    scale.into_iter().chain(status).collect()
}

fn selectable(facts: &DefinitionFacts, version: &DefinitionVersion) -> Vec<String> {
    let namespace = facts.is_namespaced().then_some("metadata.namespace");
    let declared = version.selectable_fields.iter().map(|field| field.json_path.trim_start_matches('.'));
    std::iter::once("metadata.name").chain(namespace).chain(declared).map(str::to_owned).collect()
}

/// Upstream's warning about a deprecated version; empty for other versions.
fn deprecation(facts: &DefinitionFacts, version: &DefinitionVersion, gvk: &GroupVersionKind) -> String {
    if !version.deprecated {
        return String::new();
    }
    if let Some(warning) = &version.deprecation_warning {
        return warning.clone();
    }
    let preferred = facts.versions().iter().filter(|other| {
        other.served && !other.deprecated && preferred_first(&other.name, &version.name).is_lt()
    });
    let replacement = preferred.min_by(|a, b| preferred_first(&a.name, &b.name));
    let hint =
        replacement.map(|v| format!("; use {}/{} {}", gvk.group, v.name, gvk.kind)).unwrap_or_default();
    format!("{}/{} {} is deprecated{hint}", gvk.group, gvk.version, gvk.kind)
}
