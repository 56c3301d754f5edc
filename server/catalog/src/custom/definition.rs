//! A definition as documents describe it.

use std::sync::Arc;

use parking_lot::RwLock;
use portico_machinery::{GroupVersion, GroupVersionKind, digest};
use portico_registry::{Facts, Stored, Version};

use crate::local::{Kind, Subresource};

/// Verbs in upstream's order.
const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
/// What is left of them once the definition is on its way out: nothing new is made.
const LAST_VERBS: [&str; 5] = ["delete", "deletecollection", "get", "list", "watch"];
/// Verbs of its subresources, then as well.
const SUBRESOURCE_VERBS: [&str; 3] = ["get", "patch", "update"];

/// See the module.
#[derive(Debug)]
pub struct Definition {
    facts: Arc<Facts>,
    /// Its newest bytes; their spec is that of the facts.
    stored: RwLock<Stored>,
    /// Changes whenever discovery's description of it changes.
    mark: String,
}

impl Definition {
    /// What was read off an object, and the object.
    #[must_use]
    pub fn new(facts: Arc<Facts>, stored: &Stored) -> Self {
        let mark = mark(&facts);
        Self { facts, stored: RwLock::new(undecoded(stored)), mark }
    }

    /// `<plural>.<group>`.
    pub(crate) fn name(&self) -> &str {
        self.facts.name()
    }

    pub(super) fn facts(&self) -> &Facts {
        &self.facts
    }

    pub(super) fn stored(&self) -> Stored {
        self.stored.read().clone()
    }

    /// Whether documents describe it.
    pub(super) fn is_published(&self) -> bool {
        self.facts.is_established()
    }

    /// The versions that documents describe.
    pub(super) fn versions(&self) -> impl Iterator<Item = &Version> {
        self.facts.versions().iter().filter(|version| version.served)
    }

    /// The group versions of these.
    pub(super) fn group_versions(&self) -> impl Iterator<Item = GroupVersion> {
        self.versions().map(|version| GroupVersion::new(self.facts.group(), &version.name))
    }

    /// The name of discovery's description of it.
    pub(super) fn discovery_mark(&self) -> &str {
        &self.mark
    }

    /// The name of OpenAPI's description of it: its spec decides.
    pub(super) fn openapi_mark(&self) -> String {
        format!("{}/{}", self.facts.uid(), self.facts.generation())
    }

    /// Whether documents describe both alike.
    pub(super) fn is_published_like(&self, other: &Self) -> bool {
        self.is_published() == other.is_published()
            && self.mark == other.mark
            && self.facts.uid() == other.facts.uid()
            && self.facts.generation() == other.facts.generation()
    }

    /// Takes the bytes of a newer state that documents describe alike, so that the older ones can go.
    pub(super) fn renew(&self, newer: &Self) {
        *self.stored.write() = newer.stored();
    }

    /// What field selectors may name in a version, without the leading dot.
    pub(super) fn selectable(&self, version: &str) -> Vec<&str> {
        let version = self.versions().find(|v| v.name == version);
        let fields = version.into_iter().flat_map(|version| &version.selectable_fields);
        fields.map(|field| field.json_path.strip_prefix('.').unwrap_or(&field.json_path)).collect()
    }

    /// One of its versions as a kind.
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

/// The same bytes: what somebody decoded of them is large, and not needed here.
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

/// `stable.example.com` is `com.example.stable`.
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
