//! What documents show of a group version, wherever its kinds come from: data of this build, or definitions that arrive
//! at run time.

use std::sync::Arc;

use portico_kinds::{KindInfo, QueryParameter};
use portico_machinery::{GroupVersion, GroupVersionKind};
use portico_schema::TypeSet;

/// A group version.
#[derive(Debug)]
pub(crate) struct Described<'a> {
    /// Which.
    pub group_version: &'a GroupVersion,
    /// Its kinds, sorted by resource.
    pub kinds: Vec<Kind<'a>>,
    /// Built-in types, which also the documents of custom resources refer to.
    pub types: &'a Arc<TypeSet>,
    /// Whether its kinds are custom resources.
    pub custom: bool,
}

/// A kind as it is served.
#[derive(Debug)]
pub(crate) struct Kind<'a> {
    pub gvk: GroupVersionKind,
    pub list_kind: &'a str,
    /// The plural resource of paths.
    pub resource: &'a str,
    pub singular: &'a str,
    pub short_names: &'a [String],
    pub categories: &'a [String],
    pub namespaced: bool,
    pub verbs: Vec<&'a str>,
    pub subresources: Vec<Subresource<'a>>,
    /// `group/version/kind` in which objects are stored; empty when nothing is to be published.
    pub stored_as: String,
    /// Its name among types, `io.k8s.api.core.v1.Pod`.
    pub type_name: String,
    /// Description of the parameter `name` of its paths.
    pub name_about: String,
    /// True if documents give the object, not a Status, as the answer to DELETE.
    pub delete_answers_object: bool,
}

/// A subresource as it is served.
#[derive(Debug)]
pub(crate) struct Subresource<'a> {
    pub name: &'a str,
    /// The kind that it takes and answers with.
    pub kind: GroupVersionKind,
    pub verbs: Vec<&'a str>,
    /// Description of the parameter `name` of its paths.
    pub name_about: String,
    /// Whether requests are handed on to something else.
    pub connect: bool,
    /// Whether paths below it are served.
    pub below: bool,
    pub parameters: &'a [QueryParameter],
}

impl Kind<'_> {
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.contains(&verb)
    }

    /// The name of the list's type: it stands beside the kind's.
    pub fn list_type(&self) -> String {
        let package = self.type_name.rsplit_once('.').map_or("", |(package, _)| package);
        format!("{package}.{}", self.list_kind)
    }
}

impl Subresource<'_> {
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.contains(&verb)
    }
}

impl<'a> From<&'a KindInfo> for Kind<'a> {
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
            verbs: words(&info.verbs),
            subresources: info.subresources.iter().map(Subresource::from).collect(),
            stored_as: if listed { format!("{}/{version}/{kind}", storage.group) } else { String::new() },
            name_about: format!("name of the {}", info.gvk.kind),
            type_name: info.schema.typed().map_or_else(String::new, |typed| typed.root().name.to_string()),
            delete_answers_object: info.deletion.answers_object && !info.deletion.documented_as_status,
        }
    }
}

impl<'a> From<&'a portico_kinds::Subresource> for Subresource<'a> {
    fn from(info: &'a portico_kinds::Subresource) -> Self {
        Self {
            name: &info.name,
            kind: info.kind.clone(),
            verbs: words(&info.verbs),
            name_about: format!("name of the {}", info.kind.kind),
            connect: info.connect,
            below: info.below,
            parameters: &info.parameters,
        }
    }
}

fn words(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}
