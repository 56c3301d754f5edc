//! A definition, with the facts that documents describe.

use std::sync::Arc;

use parking_lot::RwLock;
use portico_machinery::{GroupVersion, GroupVersionKind, digest};
use portico_registry::{DefinitionFacts, DefinitionVersion, StoredObject};

use crate::local::{KindDescription, SubresourceDescription};

/// Verbs of custom resources, in upstream's order.
const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
/// Verbs of a definition that is being deleted: new objects are refused.
const TERMINATING_VERBS: [&str; 5] = ["delete", "deletecollection", "get", "list", "watch"];
/// Verbs of subresources, also while the definition is being deleted.
const SUBRESOURCE_VERBS: [&str; 3] = ["get", "patch", "update"];

/// A definition and its encoded object.
#[derive(Debug)]
pub struct Definition {
    facts: Arc<DefinitionFacts>,
    /// Newest stored object; its spec is that of the facts.
    stored: RwLock<StoredObject>,
    /// Digest of the definition's description in discovery.
    discovery_digest: String,
}

impl Definition {
    /// Creates a definition from an object and the facts parsed from it.
    #[must_use]
    pub fn new(facts: Arc<DefinitionFacts>, stored: &StoredObject) -> Self {
        let discovery_digest = digest_for_discovery(&facts);
        Self { facts, stored: RwLock::new(without_decoded(stored)), discovery_digest }
    }

    /// Returns the name, `<plural>.<group>`.
    pub(crate) fn name(&self) -> &str {
        self.facts.name()
    }

    pub(super) fn facts(&self) -> &DefinitionFacts {
        &self.facts
    }

    pub(super) fn stored_object(&self) -> StoredObject {
        self.stored.read().clone()
    }

    /// Returns true if documents describe the definition.
    pub(super) fn is_published(&self) -> bool {
        self.facts.is_established()
    }

    /// Returns the versions that documents describe.
    pub(super) fn versions(&self) -> impl Iterator<Item = &DefinitionVersion> {
        self.facts.versions().iter().filter(|version| version.served)
    }

    /// Returns the group versions that documents describe.
    pub(super) fn group_versions(&self) -> impl Iterator<Item = GroupVersion> {
        self.versions().map(|version| GroupVersion::new(self.facts.group(), &version.name))
    }

    /// Returns the digest of the description in discovery.
    pub(super) fn discovery_digest(&self) -> &str {
        &self.discovery_digest
    }

    /// Returns the identity of the description in OpenAPI, which depends only on the spec.
    pub(super) fn openapi_key(&self) -> String {
        format!("{}/{}", self.facts.uid(), self.facts.generation())
    }

    /// Returns true if documents describe both definitions in the same way.
    pub(super) fn has_same_documents(&self, other: &Self) -> bool {
        self.is_published() == other.is_published()
            && self.discovery_digest == other.discovery_digest
            && self.facts.uid() == other.facts.uid()
            && self.facts.generation() == other.facts.generation()
    }

    /// Replaces the stored object by a newer one with the same documents, so that the older one can be freed.
    pub(super) fn replace_stored(&self, newer: &Self) {
        *self.stored.write() = newer.stored_object();
    }

    /// Returns the fields that field selectors may use in a version, without the leading dot.
    pub(super) fn selectable_fields(&self, version: &str) -> Vec<&str> {
        let version = self.versions().find(|v| v.name == version);
        let fields = version.into_iter().flat_map(|version| &version.selectable_fields);
        fields.map(|field| field.json_path.strip_prefix('.').unwrap_or(&field.json_path)).collect()
    }

    /// Returns the description of one version.
    pub(super) fn kind<'a>(&'a self, version: &'a DefinitionVersion) -> KindDescription<'a> {
        let (group, names) = (self.facts.group(), self.facts.names());
        let gvk = GroupVersion::new(group, &version.name).kind(&names.kind);
        let verbs: &[&str] = if self.facts.is_terminating() { &TERMINATING_VERBS } else { &VERBS };
        let stored = self.facts.storage().filter(|storage| storage.served);
        KindDescription {
            list_kind: &names.list_kind,
            resource: &names.plural,
            singular: &names.singular,
            short_names: &names.short_names,
            categories: &names.categories,
            namespaced: self.facts.is_namespaced(),
            verbs: verbs.to_vec(),
            subresources: subresources(version, &gvk),
            stored_as: stored.map(|v| format!("{group}/{}/{}", v.name, names.kind)).unwrap_or_default(),
            name_description: format!("name of the {}", names.kind),
            type_name: format!("{}.{}.{}", reverse_domain(group), version.name, names.kind),
            delete_returns_object: false,
            gvk,
        }
    }
}

/// Returns the object without its decoded form, which is large and not needed here.
fn without_decoded(stored: &StoredObject) -> StoredObject {
    StoredObject::new(Arc::clone(stored.record()))
}

fn subresources(
    version: &DefinitionVersion,
    parent_kind: &GroupVersionKind,
) -> Vec<SubresourceDescription<'static>> {
    let subresource = |name, kind| SubresourceDescription {
        name,
        kind,
        verbs: SUBRESOURCE_VERBS.to_vec(),
        name_description: format!("name of the {}", parent_kind.kind),
        is_connect: false,
        has_subpaths: false,
        parameters: &[],
    };
    let status = version.subresources.status.as_ref().map(|_| subresource("status", parent_kind.clone()));
    let scale = || GroupVersion::new("autoscaling", "v1").kind("Scale");
    let scale = version.subresources.scale.as_ref().map(|_| subresource("scale", scale()));
    status.into_iter().chain(scale).collect()
}

/// Reverses the parts of a group: `stable.example.com` becomes `com.example.stable`.
fn reverse_domain(group: &str) -> String {
    let parts: Vec<&str> = group.rsplit('.').collect();
    parts.join(".")
}

fn digest_for_discovery(facts: &DefinitionFacts) -> String {
    let names = facts.names();
    let mut inputs = vec![&*names.plural, &names.singular, &names.kind];
    for list in [&names.short_names, &names.categories] {
        inputs.push("");
        inputs.extend(list.iter().map(String::as_str));
    }
    let flag = |is_set| if is_set { "1" } else { "0" };
    inputs.extend(["", flag(facts.is_namespaced()), flag(facts.is_terminating())]);
    for version in facts.versions() {
        let subresources = &version.subresources;
        inputs.push(&version.name);
        inputs.extend([version.served, version.storage].map(flag));
        inputs.extend([subresources.status.is_some(), subresources.scale.is_some()].map(flag));
    }
    let input_bytes: Vec<&[u8]> = inputs.into_iter().map(str::as_bytes).collect();
    digest::id_of_inputs(&input_bytes)
}
