//! Types that the operations of a group version reach, each once, by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use portico_machinery::GroupVersion;
use portico_machinery::gvk::GroupVersionKind;
use portico_schema::{FieldType, Type, TypeSet};

use super::meta::META_PREFIX;
use super::operation::{Body, PathItem, ResponseContent};
use crate::local::GroupDescription;

/// A reachable type, and the set that contains the types of its fields.
#[derive(Clone, Debug)]
pub(super) struct ReachableType {
    pub types: Arc<TypeSet>,
    /// Kinds that the type is served as.
    pub kinds: Vec<GroupVersionKind>,
    name: Box<str>,
}

impl ReachableType {
    /// Returns the type.
    pub fn ty(&self) -> Option<&Type> {
        self.types.by_name(&self.name)
    }
}

/// Returns all built-in types that operations use, directly or through other types, and those in `extra_types`.
/// `all_group_versions` contains the group versions for types, such as `DeleteOptions`, that are kinds of every group.
pub(super) fn reachable_types(
    group: &GroupDescription<'_>,
    all_group_versions: &[GroupVersion],
    paths: &[PathItem<'_>],
    extra_types: impl IntoIterator<Item = String>,
) -> BTreeMap<String, ReachableType> {
    let types = group.types;
    let mut found = BTreeMap::new();
    let mut pending: Vec<String> = extra_types.into_iter().collect();
    for item in paths {
        for operation in &item.operations {
            let body = match &operation.body {
                Some(Body::Object(name)) => Some(name.clone()),
                Some(Body::DeleteOptions) => Some(format!("{META_PREFIX}DeleteOptions")),
                Some(Body::Patch) => Some(format!("{META_PREFIX}Patch")),
                None => None,
            };
            let response_types = operation.responses.iter().filter_map(|(_, content)| match content {
                ResponseContent::Type(name) => Some(name.clone()),
                ResponseContent::Text => None,
            });
            pending.extend(response_types.chain(body));
        }
    }
    while let Some(name) = pending.pop() {
        if found.contains_key(&name) {
            continue;
        }
        let Some(ty) = types.by_name(&name) else { continue };
        ty.fields.iter().for_each(|field| refs(&field.ty, types, &mut pending));
        let reachable = ReachableType {
            types: types.clone(),
            kinds: kinds(ty, all_group_versions),
            name: name.clone().into(),
        };
        found.insert(name, reachable);
    }
    found
}

/// Returns the name of the type of a kind.
pub(super) fn type_of_kind(types: &TypeSet, kind: &GroupVersionKind) -> Option<String> {
    let text = format!("{}/{}/{}", kind.group, kind.version, kind.kind);
    types.iter().find(|ty| ty.gvks.iter().any(|gvk| **gvk == text)).map(|ty| ty.name.to_string())
}

fn refs(ty: &FieldType, types: &TypeSet, found: &mut Vec<String>) {
    match ty {
        FieldType::Ref(id) => found.push(types.get(*id).name.to_string()),
        FieldType::List(item) | FieldType::Map(item) => refs(item, types, found),
        _ => {}
    }
}

/// Returns the kinds of a type.
fn kinds(ty: &Type, all_group_versions: &[GroupVersion]) -> Vec<GroupVersionKind> {
    let short = ty.name.strip_prefix(META_PREFIX).unwrap_or_default();
    if matches!(short, "DeleteOptions" | "WatchEvent") {
        return all_group_versions.iter().map(|group_version| group_version.kind(short)).collect();
    }
    ty.gvks.iter().filter_map(|text| parse(text)).collect()
}

/// Parses `group/version/kind`.
fn parse(text: &str) -> Option<GroupVersionKind> {
    let (rest, kind) = text.rsplit_once('/')?;
    let (group, version) = rest.split_once('/').unwrap_or(("", rest));
    Some(GroupVersion::new(group, version).kind(kind))
}
