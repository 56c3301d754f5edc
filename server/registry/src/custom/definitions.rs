//! Index of all definitions, by the names in requests and stored objects.
//!
//! A lookup compares the definition's cached record in the store with the compiled one, so that the result includes all earlier
//! writes of this process. A compiled definition is kept across changes that do not affect serving.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;
use portico_machinery::{GroupKind, GroupResource, GroupVersion, GroupVersionKind};
use portico_store::{Record, Resource, Store};

use super::definition_facts::{DefinitionFacts, DefinitionVersion};
use super::kind_defaults::KindDefaults;
use super::served_versions::ServedVersions;
use super::webhook_health::FailingWebhook;
use crate::definition;

/// Definition at one state.
#[derive(Clone)]
pub(crate) struct Definition {
    /// Content that serving needs.
    pub(crate) facts: Arc<DefinitionFacts>,
    /// Record in the store.
    pub(crate) record: Arc<Record>,
    /// Compiled versions, shared by all states that serve the same versions.
    pub(crate) versions: Arc<ServedVersions>,
}

/// Index of all definitions.
pub(crate) struct Definitions {
    resource: Resource,
    kind_defaults: Arc<KindDefaults>,
    index: RwLock<DefinitionIndex>,
}

#[derive(Default)]
struct DefinitionIndex {
    by_name: HashMap<Arc<str>, Definition>,
    by_kind: HashMap<GroupKind, Arc<str>>,
}

impl Definitions {
    /// Creates an empty index.
    pub(crate) fn new(kind_defaults: Arc<KindDefaults>) -> Self {
        Self { resource: Resource::from(definition::resource()), kind_defaults, index: RwLock::default() }
    }

    /// Storage resource of definitions.
    pub(crate) fn resource(&self) -> &Resource {
        &self.resource
    }

    /// Definition of a resource; `None` until the store has loaded the definitions.
    pub(crate) fn of_resource(&self, store: &dyn Store, resource: &GroupResource) -> Option<Definition> {
        self.by_name(store, &resource.to_string())
    }

    /// Definition of a kind. A definition that was not read since its last write is searched among those of its group.
    pub(crate) fn of_kind(&self, store: &dyn Store, kind: &GroupKind) -> Option<Definition> {
        let name = self.index.read().by_kind.get(kind).cloned();
        let is_of_kind = |definition: &Definition| definition.facts.kind() == *kind;
        let cached = name.and_then(|name| self.by_name(store, &name)).filter(is_of_kind);
        let serves_kind = |definition: &Definition| is_of_kind(definition) && definition.facts.is_reachable();
        cached.or_else(|| self.of_group(store, &kind.group).into_iter().find(serves_kind))
    }

    /// All definitions of a group in their current state.
    pub(crate) fn of_group(&self, store: &dyn Store, group: &str) -> Vec<Definition> {
        self.find_matching(store, |_, definition_group| definition_group == group)
    }

    /// Kinds of a resource with this plural or singular name, version and group; an empty group matches any, but then only plural
    /// names match.
    pub(crate) fn kinds_for(
        &self,
        store: &dyn Store,
        group: &str,
        version: &str,
        resource: &str,
    ) -> Vec<GroupVersionKind> {
        let found = match group {
            "" => self.find_matching(store, |plural, _| plural == resource),
            group => self.of_group(store, group),
        };
        let matches = |definition: &Definition| {
            let names = definition.facts.names();
            definition.facts.is_reachable()
                && (names.plural == resource || names.singular == resource)
                && definition.versions.version(version).is_some()
        };
        let kind = |definition: Definition| {
            let GroupKind { group, kind } = definition.facts.kind();
            GroupVersionKind { group, version: version.to_owned(), kind }
        };
        found.into_iter().filter(matches).map(kind).collect()
    }

    /// Content of all definitions that currently serve requests, without compiling them.
    pub(crate) fn reachable(&self, store: &dyn Store) -> Vec<Arc<DefinitionFacts>> {
        let all = self.find_matching(store, |_, _| true).into_iter().map(|definition| definition.facts);
        all.filter(|facts| facts.is_reachable()).collect()
    }

    /// Verbs of custom resources.
    pub(crate) fn verbs(&self) -> &[String] {
        &self.kind_defaults.verbs
    }

    /// Definitions whose plural name and group match.
    fn find_matching(
        &self,
        store: &dyn Store,
        matches_names: impl Fn(&str, &str) -> bool,
    ) -> Vec<Definition> {
        let Some(snapshot) = store.cached_snapshot(&self.resource) else { return Vec::new() };
        let matches_name =
            |name: &str| name.split_once('.').is_some_and(|(plural, group)| matches_names(plural, group));
        snapshot
            .iter()
            .filter(|record| matches_name(record.key.name()))
            .filter_map(|record| self.insert(record))
            .collect()
    }

    /// Definition with this name in its current state.
    fn by_name(&self, store: &dyn Store, name: &str) -> Option<Definition> {
        let snapshot = store.cached_snapshot(&self.resource)?;
        let Some(record) = snapshot.get_path(name) else {
            self.remove(name, snapshot.revision());
            return None;
        };
        self.insert(record)
    }

    /// Cached content of a definition, if it is of this state.
    pub(crate) fn facts(&self, record: &Record) -> Option<Arc<DefinitionFacts>> {
        let index = self.index.read();
        let definition = index.by_name.get(record.key.name())?;
        (definition.record.revision == record.revision).then(|| Arc::clone(&definition.facts))
    }

    /// Cached definition, if it is of this state or a newer one.
    fn cached_at_least(&self, record: &Record) -> Option<Definition> {
        let index = self.index.read();
        index.by_name.get(record.key.name()).filter(|d| d.record.revision >= record.revision).cloned()
    }

    /// Inserts a state of a definition unless a newer one is cached. Ends watches of versions that it no longer serves.
    pub(crate) fn insert(&self, record: &Arc<Record>) -> Option<Definition> {
        if let Some(cached) = self.cached_at_least(record) {
            return Some(cached);
        }
        let facts = match DefinitionFacts::read(record.value.json()) {
            Ok(facts) => Arc::new(facts),
            Err(error) => {
                tracing::error!(name = record.key.name(), %error, "cannot read a CustomResourceDefinition");
                return None;
            }
        };
        let name: Arc<str> = record.key.name().into();
        let mut index = self.index.write();
        let before = index.by_name.get(&name);
        if let Some(newer) = before.filter(|before| before.record.revision >= record.revision) {
            return Some(newer.clone());
        }
        let versions = match before {
            Some(before) if before.facts.serves_same_versions(&facts) => {
                before.versions.update_record(record);
                Arc::clone(&before.versions)
            }
            _ => Arc::new(ServedVersions::new(&facts, record, &self.kind_defaults)),
        };
        let after = Definition { facts: Arc::clone(&facts), record: Arc::clone(record), versions };
        index.by_kind.insert(facts.kind(), Arc::clone(&name));
        if let Some(before) = index.by_name.insert(name, after.clone()) {
            index.end_replaced(&before, Some(&after));
        }
        Some(after)
    }

    /// Removes a definition that was absent at a revision, unless it was created again since.
    pub(crate) fn remove(&self, name: &str, revision: i64) {
        let is_outdated =
            |index: &DefinitionIndex| index.by_name.get(name).is_some_and(|d| d.record.revision <= revision);
        if !is_outdated(&self.index.read()) {
            return;
        }
        let mut index = self.index.write();
        if is_outdated(&index)
            && let Some(before) = index.by_name.remove(name)
        {
            index.end_replaced(&before, None);
        }
    }

    /// Versions that a proposed definition would serve.
    pub(super) fn compile_proposed(
        &self,
        facts: &Arc<DefinitionFacts>,
        record: &Arc<Record>,
    ) -> ServedVersions {
        ServedVersions::new(facts, record, &self.kind_defaults)
    }

    /// Failures of the conversion webhooks of definitions that serve a group version.
    pub(crate) fn failing_webhooks(&self, group_version: &GroupVersion) -> Vec<FailingWebhook> {
        let index = self.index.read();
        let definitions = index.by_name.values().filter(|definition| {
            let facts = &definition.facts;
            let serves = |v: &DefinitionVersion| v.served && v.name == group_version.version;
            facts.group() == group_version.group && facts.versions().iter().any(serves)
        });
        let mut failing_webhooks: Vec<FailingWebhook> =
            definitions.filter_map(|definition| definition.versions.webhook_failure()).collect();
        failing_webhooks.sort_by(|a, b| a.definition.cmp(&b.definition));
        failing_webhooks
    }

    /// Drops compiled versions that were not used since the last call.
    pub(crate) fn drop_idle(&self) {
        for definition in self.index.write().by_name.values_mut() {
            if let Some(empty) = definition.versions.reset_if_unused() {
                definition.versions = Arc::new(empty);
            }
        }
    }

    /// Removes definitions that are not among these names at a revision.
    pub(crate) fn retain(&self, revision: i64, is_present: impl Fn(&str) -> bool) {
        let removed_names: Vec<Arc<str>> = {
            let index = self.index.read();
            index.by_name.keys().filter(|name| !is_present(name)).cloned().collect()
        };
        removed_names.iter().for_each(|name| self.remove(name, revision));
    }
}

impl DefinitionIndex {
    /// Ends the served versions of a state that the next state changes.
    fn end_replaced(&mut self, before: &Definition, after: Option<&Definition>) {
        let kind = before.facts.kind();
        let keeps_kind = after.is_some_and(|after| after.facts.kind() == kind);
        let owns_kind = self.by_kind.get(&kind).is_some_and(|name| **name == *before.record.key.name());
        if owns_kind && !keeps_kind {
            self.by_kind.remove(&kind);
        }
        if !after.is_some_and(|after| Arc::ptr_eq(&after.versions, &before.versions)) {
            before.versions.superseded.signal();
        }
    }
}
