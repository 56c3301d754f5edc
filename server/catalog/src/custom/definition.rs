//! A definition, with the facts that documents describe.

use std::sync::Arc;

use parking_lot::RwLock;
use portico_machinery::{GroupVersion, GroupVersionKind, digest};
use portico_registry::{Facts, Stored, Version};

use crate::local::{Kind, Subresource};

/// Verbs of custom resources, in upstream's order.
const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
/// Verbs of a definition that is being deleted: new objects are refused.
const LAST_VERBS: [&str; 5] = ["delete", "deletecollection", "get", "list", "watch"];
/// Verbs of subresources, also while the definition is being deleted.
const SUBRESOURCE_VERBS: [&str; 3] = ["get", "patch", "update"];

/// A definition and its encoded object.
#[derive(Debug)]
pub struct Definition {
    facts: Arc<Facts>,
    /// Newest stored object; its spec is that of the facts.
    stored: RwLock<Stored>,
    /// Digest of the definition's description in discovery.
    mark: String,
}

impl Definition {
    /// Creates a definition from an object and the facts parsed from it.
    #[must_use]
    pub fn new(facts: Arc<Facts>, stored: &Stored) -> Self {
        let mark = mark(&facts);
        Self { facts, stored: RwLock::new(undecoded(stored)), mark }
    }

    /// Returns the name, `<plural>.<group>`.
    pub(crate) fn name(&self) -> &str {
        self.facts.name()
    }

    pub(super) fn facts(&self) -> &Facts {
        &self.facts
    }

    pub(super) fn stored(&self) -> Stored {
        self.stored.read().clone()
    }

    /// Returns true if documents describe the definition.
    pub(super) fn is_published(&self) -> bool {
        self.facts.is_established()
    }

    /// Returns the versions that documents describe.
    pub(super) fn versions(&self) -> impl Iterator<Item = &Version> {
        self.facts.versions().iter().filter(|version| version.served)
    }

    /// Returns the group versions that documents describe.
    pub(super) fn group_versions(&self) -> impl Iterator<Item = GroupVersion> {
        self.versions().map(|version| GroupVersion::new(self.facts.group(), &version.name))
    }

    /// Returns the digest of the description in discovery.
    pub(super) fn discovery_mark(&self) -> &str {
        &self.mark
    }

    /// Returns the identity of the description in OpenAPI, which depends only on the spec.
    pub(super) fn openapi_mark(&self) -> String {
        format!("{}/{}", self.facts.uid(), self.facts.generation())
    }

    /// Returns true if documents describe both definitions in the same way.
    pub(super) fn is_published_like(&self, other: &Self) -> bool {
        self.is_published() == other.is_published()
            && self.mark == other.mark
            && self.facts.uid() == other.facts.uid()
            && self.facts.generation() == other.facts.generation()
    }

    /// Replaces the stored object by a newer one with the same documents, so that the older one can be freed.
    pub(super) fn renew(&self, newer: &Self) {
        *self.stored.write() = newer.stored();
    }

    /// Returns the fields that field selectors may use in a version, without the leading dot.
    pub(super) fn selectable(&self, version: &str) -> Vec<&str> {
        let version = self.versions().find(|v| v.name == version);
        let fields = version.into_iter().flat_map(|version| &version.selectable_fields);
        fields.map(|field| field.json_path.strip_prefix('.').unwrap_or(&field.json_path)).collect()
    }

    /// Returns the description of one version.
    pub(super) fn kind<'a>(&'a self, version: &'a Version) -> Kind<'a> {
        let (group, names) = (self.facts.group(), self.facts.names());
        let gvk = GroupVersion::new(group, &version.name).kind(&names.kind);
        let verbs: &[&str] = if self.facts.is_terminating() { &LAST_VERBS } else { &VERBS };
        let stored = self.facts.storage().filter(|storage| storage.served);
        Kind {
            list_kind: &names.list_kind,
            resource: &names.plural,
            singular: &names.singular,
            short_names: &names.short_names,
            categories: &names.categories,
            namespaced: self.facts.is_namespaced(),
            verbs: verbs.to_vec(),
            subresources: subresources(version, &gvk),
            stored_as: stored.map(|v| format!("{group}/{}/{}", v.name, names.kind)).unwrap_or_default(),
            name_about: format!("name of the {}", names.kind),
            type_name: format!("{}.{}.{}", reversed(group), version.name, names.kind),
            delete_answers_object: false,
            gvk,
        }
    }
}

/// Returns the object without its decoded form, which is large and not needed here.
fn undecoded(stored: &Stored) -> Stored {
    Stored::new(Arc::clone(stored.record()))
}

fn subresources(version: &Version, own: &GroupVersionKind) -> Vec<Subresource<'static>> {
    let of = |name, kind| Subresource {
        name,
        kind,
        verbs: SUBRESOURCE_VERBS.to_vec(),
        name_about: format!("name of the {}", own.kind),
        connect: false,
        below: false,
        parameters: &[],
    };
    let status = version.subresources.status.as_ref().map(|_| of("status", own.clone()));
    let scale = || GroupVersion::new("autoscaling", "v1").kind("Scale");
    let scale = version.subresources.scale.as_ref().map(|_| of("scale", scale()));
    status.into_iter().chain(scale).collect()
}

/// Reverses the parts of a group: `stable.example.com` becomes `com.example.stable`.
fn reversed(group: &str) -> String {
    let parts: Vec<&str> = group.rsplit('.').collect();
    parts.join(".")
}

fn mark(facts: &Facts) -> String {
    let names = facts.names();
    let mut reported = vec![&*names.plural, &names.singular, &names.kind];
    for words in [&names.short_names, &names.categories] {
        reported.push("");
        reported.extend(words.iter().map(String::as_str));
    }
    let flag = |on| if on { "1" } else { "0" };
    reported.extend(["", flag(facts.is_namespaced()), flag(facts.is_terminating())]);
    for version in facts.versions() {
        let subresources = &version.subresources;
        reported.push(&version.name);
        reported.extend([version.served, version.storage].map(flag));
        reported.extend([subresources.status.is_some(), subresources.scale.is_some()].map(flag));
    }
    let reported: Vec<&[u8]> = reported.into_iter().map(str::as_bytes).collect();
    digest::made_of(&reported)
}
