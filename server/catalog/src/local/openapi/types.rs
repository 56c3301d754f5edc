//! The types that a group version's operations reach, each once, by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use portico_kinds::KindInfo;
use portico_machinery::GroupVersion;
use portico_machinery::gvk::GroupVersionKind;
use portico_schema::{FieldType, Type, TypeSet};

use super::META;
use super::operation::{Body, Content, PathItem};
use crate::local::Fragment;

/// A type and the set that its fields refer into.
#[derive(Clone, Debug)]
pub(super) struct Reached {
    pub types: Arc<TypeSet>,
    /// Kinds that are served under it: group, version, kind.
    pub kinds: Vec<GroupVersionKind>,
    name: Box<str>,
}

impl Reached {
    /// The type itself.
    pub fn ty(&self) -> Option<&Type> {
        self.types.by_name(&self.name)
    }
}

/// All types that operations of the fragment name, and those below them.
pub(super) fn reached(fragment: &Fragment, paths: &[PathItem<'_>]) -> BTreeMap<String, Reached> {
    let mut found = BTreeMap::new();
    let mut open: Vec<(Arc<TypeSet>, String)> = Vec::new();
    for item in paths {
        for operation in &item.operations {
            let body = match &operation.body {
                Some(Body::Object(name)) => Some(name.clone()),
                Some(Body::DeleteOptions) => Some(format!("{META}DeleteOptions")),
                Some(Body::Patch(_)) => Some(format!("{META}Patch")),
                None => None,
            };
            let answered = operation.responses.iter().filter_map(|(_, content)| match content {
                Content::Type(name) => Some(name.clone()),
                Content::Text => None,
            });
            let named = answered.chain(body);
            open.extend(named.map(|name| (set_of(fragment, &name), name)));
        }
    }
    while let Some((types, name)) = open.pop() {
        if found.contains_key(&name) {
            continue;
        }
        let Some(ty) = types.by_name(&name) else { continue };
        let mut below = Vec::new();
        ty.fields.iter().for_each(|field| refs(&field.ty, &types, &mut below));
        let kinds = kinds(ty, &fragment.group_version);
        let reached = Reached { types: types.clone(), kinds, name: name.clone().into() };
        found.insert(name, reached);
        open.extend(below.into_iter().map(|name| (types.clone(), name)));
    }
    found
}

/// The type of a kind that a subresource takes, when it is described beside the resource's own.
pub(super) fn of_kind(kind: &KindInfo, wanted: &GroupVersionKind) -> Option<String> {
    let text = format!("{}/{}/{}", wanted.group, wanted.version, wanted.kind);
    let types = kind.schema.typed()?.types();
    types.iter().find(|ty| ty.gvks.iter().any(|gvk| **gvk == text)).map(|ty| ty.name.to_string())
}

/// The set that describes a type: a kind's own, or the one with the types of `meta/v1`.
fn set_of(fragment: &Fragment, name: &str) -> Arc<TypeSet> {
    let of_kinds = fragment
        .kinds
        .iter()
        .filter_map(|k| k.schema.typed())
        .map(|typed| typed.types())
        .find(|types| types.id(name).is_some());
    of_kinds.unwrap_or(&fragment.types).clone()
}

fn refs(ty: &FieldType, types: &TypeSet, found: &mut Vec<String>) {
    match ty {
        FieldType::Ref(id) => found.push(types.get(*id).name.to_string()),
        FieldType::List(item) | FieldType::Map(item) => refs(item, types, found),
        _ => {}
    }
}

/// The kinds of a type. `DeleteOptions` and `WatchEvent` are of the core group and of every group that uses them.
fn kinds(ty: &Type, gv: &GroupVersion) -> Vec<GroupVersionKind> {
    let short = ty.name.strip_prefix(META).unwrap_or_default();
    if matches!(short, "DeleteOptions" | "WatchEvent") {
        let mut kinds = vec![GroupVersion::new("", "v1").kind(short)];
        if !gv.is_core() {
            kinds.push(gv.kind(short));
        }
        return kinds;
    }
    ty.gvks.iter().filter_map(|text| parse(text)).collect()
}

/// `group/version/kind`.
fn parse(text: &str) -> Option<GroupVersionKind> {
    let (rest, kind) = text.rsplit_once('/')?;
    let (group, version) = rest.split_once('/').unwrap_or(("", rest));
    Some(GroupVersion::new(group, version).kind(kind))
}
