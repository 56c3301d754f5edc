//! Generates OpenAPI documents of described kinds: complete for version 3, and for version 2 a part to be merged.
//!
//! One traversal lists the operations ([`operation`]) and the types that they reach ([`types`]); the two versions differ only in
//! the writers ([`write_v3`], [`write_v2`]). Descriptions of types come from [`descriptions`], those of operations and parameters
//! from this module.

mod definition;
mod descriptions;
mod meta;
mod names;
mod operation;
mod parameter;
mod paths;
mod schema;
mod scheme;
mod types;
mod write_v2;
mod write_v3;

use std::collections::BTreeMap;

use portico_machinery::GroupVersion;
use serde_json::value::RawValue;

use super::GroupDescription;
use definition::Definition;
pub(crate) use descriptions::Descriptions;
pub(crate) use meta::META_PREFIX;
use names::Names;
pub(crate) use schema::{Dialect, KindRef};
use schema::{WriteOptions, type_schema};
use types::ReachableType;

/// Encoded types of custom resources, by name. They refer to [`SHARED_META_TYPES`].
pub(crate) type CustomTypes = BTreeMap<String, Box<RawValue>>;

/// Types of `meta/v1` that types of custom resources refer to.
const SHARED_META_TYPES: [&str; 2] = ["ObjectMeta", "ListMeta"];

/// Returns the version 3 document; `version` is the Kubernetes version in `info`.
pub(crate) fn v3_document(
    group: &GroupDescription<'_>,
    custom_types: CustomTypes,
    descriptions: Option<&Descriptions>,
    version: &str,
) -> Vec<u8> {
    let paths = paths::all_paths(group);
    let types =
        types::reachable_types(group, &known_group_versions(group), &paths, shared_meta_types(&custom_types));
    write_v3::document(
        group.is_custom,
        &paths,
        |options| definitions(options, &types, custom_types),
        descriptions,
        version,
    )
}

/// Returns the part of the version 2 document.
pub(crate) fn v2_part(
    group: &GroupDescription<'_>,
    custom_types: CustomTypes,
    descriptions: Option<&Descriptions>,
) -> Vec<u8> {
    let paths = paths::all_paths(group);
    let types = types::reachable_types(
        group,
        &scheme::server_group_versions(),
        &paths,
        shared_meta_types(&custom_types),
    );
    write_v2::part(&paths, |options| definitions(options, &types, custom_types), descriptions)
}

/// Returns the group versions in a version 3 document: the core group's and the document's own. Documents of custom resources
/// contain those of all client-go types, as upstream.
fn known_group_versions(group: &GroupDescription<'_>) -> Vec<GroupVersion> {
    let own = group.group_version;
    let core = GroupVersion::new("", "v1");
    match group.is_custom {
        true => scheme::client_group_versions(),
        false if own.is_core() => vec![core],
        false => vec![core, own.clone()],
    }
}

fn shared_meta_types(custom_types: &CustomTypes) -> impl Iterator<Item = String> {
    let names: &[&str] = if custom_types.is_empty() { &[] } else { &SHARED_META_TYPES };
    names.iter().map(|name| format!("{META_PREFIX}{name}"))
}

fn definitions(
    options: WriteOptions<'_>,
    types: &BTreeMap<String, ReachableType>,
    custom_types: CustomTypes,
) -> BTreeMap<String, Definition> {
    let typed = types.iter().filter_map(|(name, ty)| {
        let schema = type_schema(options, ty)?;
        Some((name.clone(), Definition::Typed(Box::new(schema))))
    });
    // Built-in types replace custom types with the same name.
    custom_types.into_iter().map(|(name, schema)| (name, Definition::Custom(schema))).chain(typed).collect()
}

fn names(group: &GroupDescription<'_>) -> Names {
    Names::new(group.group_version)
}
