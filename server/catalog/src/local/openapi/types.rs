//! Types that the operations of a group version reach, each once, by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use portico_machinery::GroupVersion;
use portico_machinery::gvk::GroupVersionKind;
use portico_schema::{FieldType, Type, TypeSet};

use super::meta::META;
use super::operation::{Body, Content, PathItem};
use crate::local::Described;

/// A reachable type, and the set that contains the types of its fields.
#[derive(Clone, Debug)]
pub(super) struct Reached {
    pub types: Arc<TypeSet>,
    /// Kinds that the type is served as.
    pub kinds: Vec<GroupVersionKind>,
    name: Box<str>,
}

impl Reached {
    /// Returns the type.
    pub fn ty(&self) -> Option<&Type> {
        self.types.by_name(&self.name)
    }
}

/// Returns all built-in types that operations use, directly or through other types, and those in `more`. `all_group_versions`
/// contains the group versions for types, such as `DeleteOptions`, that are kinds of every group.
pub(super) fn reached(
    described: &Described<'_>,
    of_all: &[GroupVersion],
    paths: &[PathItem<'_>],
    more: impl IntoIterator<Item = String>,
) -> BTreeMap<String, Reached> {
    let types = described.types;
    let mut found = BTreeMap::new();
    let mut open: Vec<String> = more.into_iter().collect();
    for item in paths {
        for operation in &item.operations {
            let body = match &operation.body {
                Some(Body::Object(name)) => Some(name.clone()),
                Some(Body::DeleteOptions) => Some(format!("{META}DeleteOptions")),
                Some(Body::Patch) => Some(format!("{META}Patch")),
                None => None,
            };
            let answered = operation.responses.iter().filter_map(|(_, content)| match content {
                Content::Type(name) => Some(name.clone()),
                Content::Text => None,
            });
            open.extend(answered.chain(body));
        }
    }
    while let Some(name) = open.pop() {
        if found.contains_key(&name) {
            continue;
        }
        let Some(ty) = types.by_name(&name) else { continue };
        ty.fields.iter().for_each(|field| refs(&field.ty, types, &mut open));
        let reached = Reached { types: types.clone(), kinds: kinds(ty, of_all), name: name.clone().into() };
        found.insert(name, reached);
    }
    found
}

/// Returns the name of the type of a kind.
pub(super) fn of_kind(types: &TypeSet, wanted: &GroupVersionKind) -> Option<String> {
    let text = format!("{}/{}/{}", wanted.group, wanted.version, wanted.kind);
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
fn kinds(ty: &Type, of_all: &[GroupVersion]) -> Vec<GroupVersionKind> {
    let short = ty.name.strip_prefix(META).unwrap_or_default();
    if matches!(short, "DeleteOptions" | "WatchEvent") {
        return of_all.iter().map(|group_version| group_version.kind(short)).collect();
    }
    ty.gvks.iter().filter_map(|text| parse(text)).collect()
}

/// Parses `group/version/kind`.
fn parse(text: &str) -> Option<GroupVersionKind> {
    let (rest, kind) = text.rsplit_once('/')?;
    let (group, version) = rest.split_once('/').unwrap_or(("", rest));
    Some(GroupVersion::new(group, version).kind(kind))
}
