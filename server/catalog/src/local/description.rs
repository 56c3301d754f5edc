//! Description of a group version in documents, for both built-in kinds and custom resources.

use std::sync::Arc;

use portico_kinds::{KindInfo, QueryParameter};
use portico_machinery::{GroupVersion, GroupVersionKind};
use portico_schema::TypeSet;

/// Description of a group version.
#[derive(Debug)]
pub(crate) struct GroupDescription<'a> {
    pub group_version: &'a GroupVersion,
    /// Kinds, sorted by resource.
    pub kinds: Vec<KindDescription<'a>>,
    /// Built-in types, to which documents of custom resources also refer.
    pub types: &'a Arc<TypeSet>,
    /// True if the kinds are custom resources.
    pub is_custom: bool,
}

/// Description of a served kind.
#[derive(Debug)]
pub(crate) struct KindDescription<'a> {
    pub gvk: GroupVersionKind,
    pub list_kind: &'a str,
    /// Plural resource name in paths.
    pub resource: &'a str,
    pub singular: &'a str,
    pub short_names: &'a [String],
    pub categories: &'a [String],
    pub namespaced: bool,
    pub verbs: Vec<&'a str>,
    pub subresources: Vec<SubresourceDescription<'a>>,
    /// `group/version/kind` in which objects are stored; empty if it is not published.
    pub stored_as: String,
    /// Name of the type, such as `io.k8s.api.core.v1.Pod`.
    pub type_name: String,
    /// Description of the parameter `name` of the kind's paths.
    pub name_description: String,
    /// True if the documented response to DELETE is the object instead of a Status.
    pub delete_returns_object: bool,
}

/// Description of a served subresource.
#[derive(Debug)]
pub(crate) struct SubresourceDescription<'a> {
    pub name: &'a str,
    /// Kind of requests and responses.
    pub kind: GroupVersionKind,
    pub verbs: Vec<&'a str>,
    /// Description of the parameter `name` of the subresource's paths.
    pub name_description: String,
    /// True if requests are connections that are passed on to another server.
    pub is_connect: bool,
    /// True if paths below the subresource are served.
    pub has_subpaths: bool,
    pub parameters: &'a [QueryParameter],
}

impl KindDescription<'_> {
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.contains(&verb)
    }

    /// Returns the name of the list's type, in the package of the kind's type.
    pub fn list_type(&self) -> String {
        let package = self.type_name.rsplit_once('.').map_or("", |(package, _)| package);
        format!("{package}.{}", self.list_kind)
    }
}

impl SubresourceDescription<'_> {
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.contains(&verb)
    }
}

impl<'a> From<&'a KindInfo> for KindDescription<'a> {
    fn from(info: &'a KindInfo) -> Self {
        let (storage, version, kind) = (&info.storage, &info.upstream_storage_version, &info.gvk.kind);
        let listed = info.stored && info.has_verb("list");
        Self {
            gvk: info.gvk.clone(),
            list_kind: &info.list_kind,
            resource: &info.resource,
            singular: &info.singular,
            short_names: &info.short_names,
            categories: &info.categories,
            namespaced: info.namespaced,
            verbs: as_strs(&info.verbs),
            subresources: info.subresources.iter().map(SubresourceDescription::from).collect(),
            stored_as: if listed { format!("{}/{version}/{kind}", storage.group) } else { String::new() },
            name_description: format!("name of the {}", info.gvk.kind),
            type_name: info.schema.typed().map_or_else(String::new, |typed| typed.root().name.to_string()),
            delete_returns_object: info.deletion.returns_object && !info.deletion.documented_as_status,
        }
    }
}

impl<'a> From<&'a portico_kinds::Subresource> for SubresourceDescription<'a> {
    fn from(info: &'a portico_kinds::Subresource) -> Self {
        Self {
            name: &info.name,
            kind: info.kind.clone(),
            verbs: as_strs(&info.verbs),
            name_description: format!("name of the {}", info.kind.kind),
            is_connect: info.is_connect,
            has_subpaths: info.has_subpaths,
            parameters: &info.parameters,
        }
    }
}

fn as_strs(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}
