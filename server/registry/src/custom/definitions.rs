//! Index of all definitions, by the names in requests and stored objects.
//!
//! A lookup compares the definition's cached record in the store with the compiled one, so that the result includes all earlier
//! writes of this process. A compiled definition is kept across changes that do not affect serving.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;
use portico_machinery::{GroupKind, GroupResource, GroupVersion, GroupVersionKind};
use portico_store::{Record, Resource, Store};

use super::facts::{Facts, Version};
use super::health::FailingWebhook;
use super::serving::Serving;
use super::shapes::Shapes;
use crate::definition;

/// Definition at one state.
#[derive(Clone)]
pub(crate) struct Definition {
    /// Content that serving needs.
    pub(crate) facts: Arc<Facts>,
    /// Record in the store.
    pub(crate) record: Arc<Record>,
    /// Compiled versions, shared by all states that serve the same versions.
    pub(crate) serving: Arc<Serving>,
}

/// Index of all definitions.
pub(crate) struct Definitions {
    resource: Resource,
    shapes: Arc<Shapes>,
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    by_name: HashMap<Arc<str>, Definition>,
    by_kind: HashMap<GroupKind, Arc<str>>,
}

impl Definitions {
    /// Creates an empty index.
    pub(crate) fn new(shapes: Arc<Shapes>) -> Self {
        Self { resource: Resource::from(definition::resource()), shapes, known: RwLock::default() }
    }

    /// Storage resource of definitions.
    pub(crate) fn resource(&self) -> &Resource {
        &self.resource
    }

    /// Definition of a resource; `None` until the store has loaded the definitions.
    pub(crate) fn of_resource(&self, store: &dyn Store, resource: &GroupResource) -> Option<Definition> {
        self.named(store, &resource.to_string())
    }

    /// Definition of a kind. A definition that was not read since its last write is searched among those of its group.
    pub(crate) fn of_kind(&self, store: &dyn Store, kind: &GroupKind) -> Option<Definition> {
        let name = self.known.read().by_kind.get(kind).cloned();
        let is_of_kind = |definition: &Definition| definition.facts.kind() == *kind;
        let named = name.and_then(|name| self.named(store, &name)).filter(is_of_kind);
        let served = |definition: &Definition| is_of_kind(definition) && definition.facts.is_reachable();
        named.or_else(|| self.of_group(store, &kind.group).into_iter().find(served))
    }

    /// All definitions of a group in their current state.
    pub(crate) fn of_group(&self, store: &dyn Store, group: &str) -> Vec<Definition> {
        self.called(store, |_, of| of == group)
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
            "" => self.called(store, |plural, _| plural == resource),
            group => self.of_group(store, group),
        };
        let is_meant = |definition: &Definition| {
            let names = definition.facts.names();
            definition.facts.is_reachable()
                && (names.plural == resource || names.singular == resource)
                && definition.serving.version(version).is_some()
        };
        let kind = |definition: Definition| {
            let GroupKind { group, kind } = definition.facts.kind();
            GroupVersionKind { group, version: version.to_owned(), kind }
        };
        found.into_iter().filter(is_meant).map(kind).collect()
    }

    /// Content of all definitions that currently serve requests, without compiling them.
    pub(crate) fn reachable(&self, store: &dyn Store) -> Vec<Arc<Facts>> {
        let all = self.called(store, |_, _| true).into_iter().map(|definition| definition.facts);
        all.filter(|facts| facts.is_reachable()).collect()
    }

    /// Verbs of custom resources.
    pub(crate) fn verbs(&self) -> &[String] {
        &self.shapes.verbs
    }

    /// Definitions whose plural name and group match.
    fn called(&self, store: &dyn Store, is_meant: impl Fn(&str, &str) -> bool) -> Vec<Definition> {
        let Some(snapshot) = store.cached(&self.resource) else { return Vec::new() };
        let is_meant = |name: &str| name.split_once('.').is_some_and(|(plural, of)| is_meant(plural, of));
        snapshot
            .iter()
            .filter(|record| is_meant(record.key.name()))
            .filter_map(|record| self.take(record))
            .collect()
    }

    /// Definition with this name in its current state.
    fn named(&self, store: &dyn Store, name: &str) -> Option<Definition> {
        let snapshot = store.cached(&self.resource)?;
        let Some(record) = snapshot.get_path(name) else {
            self.forget(name, snapshot.revision());
            return None;
        };
        self.take(record)
    }

    /// Cached content of a definition, if it is of this state.
    pub(crate) fn facts(&self, record: &Record) -> Option<Arc<Facts>> {
        let known = self.known.read();
        let definition = known.by_name.get(record.key.name())?;
        (definition.record.revision == record.revision).then(|| Arc::clone(&definition.facts))
    }

    /// Cached definition, if it is of this state or a newer one.
    fn at_least(&self, record: &Record) -> Option<Definition> {
        let known = self.known.read();
        known.by_name.get(record.key.name()).filter(|d| d.record.revision >= record.revision).cloned()
    }

    /// Inserts a state of a definition unless a newer one is cached. Ends watches of versions that it no longer serves.
    pub(crate) fn take(&self, record: &Arc<Record>) -> Option<Definition> {
        if let Some(known) = self.at_least(record) {
            return Some(known);
        }
        let facts = match Facts::read(record.value.json()) {
            Ok(facts) => Arc::new(facts),
            Err(error) => {
                tracing::error!(name = record.key.name(), %error, "cannot read a CustomResourceDefinition");
                return None;
            }
        };
        let name: Arc<str> = record.key.name().into();
        let mut known = self.known.write();
        let before = known.by_name.get(&name);
        if let Some(newer) = before.filter(|before| before.record.revision >= record.revision) {
            return Some(newer.clone());
        }
        let serving = match before {
            Some(before) if before.facts.serves_like(&facts) => {
                before.serving.renew(record);
                Arc::clone(&before.serving)
            }
            _ => Arc::new(Serving::new(&facts, record, &self.shapes)),
        };
        let after = Definition { facts: Arc::clone(&facts), record: Arc::clone(record), serving };
        known.by_kind.insert(facts.kind(), Arc::clone(&name));
        if let Some(before) = known.by_name.insert(name, after.clone()) {
            known.leave(&before, Some(&after));
        }
        Some(after)
    }

    /// Removes a definition that was absent at a revision, unless it was created again since.
    pub(crate) fn forget(&self, name: &str, revision: i64) {
        let gone = |known: &Known| known.by_name.get(name).is_some_and(|d| d.record.revision <= revision);
        if !gone(&self.known.read()) {
            return;
        }
        let mut known = self.known.write();
        if gone(&known)
            && let Some(before) = known.by_name.remove(name)
        {
            known.leave(&before, None);
        }
    }

    /// Versions that a proposed definition would serve.
    pub(super) fn proposed(&self, facts: &Arc<Facts>, record: &Arc<Record>) -> Serving {
        Serving::new(facts, record, &self.shapes)
    }

    /// Failures of the conversion webhooks of definitions that serve a group version.
    pub(crate) fn failing_webhooks(&self, group_version: &GroupVersion) -> Vec<FailingWebhook> {
        let known = self.known.read();
        let of_it = known.by_name.values().filter(|definition| {
            let facts = &definition.facts;
            let serves = |v: &Version| v.served && v.name == group_version.version;
            facts.group() == group_version.group && facts.versions().iter().any(serves)
        });
        let mut failing_webhooks: Vec<FailingWebhook> =
            of_it.filter_map(|definition| definition.serving.failing()).collect();
        failing_webhooks.sort_by(|a, b| a.definition.cmp(&b.definition));
        failing_webhooks
    }

    /// Drops compiled versions that were not used since the last call.
    pub(crate) fn drop_idle(&self) {
        for definition in self.known.write().by_name.values_mut() {
            if let Some(empty) = definition.serving.unless_used() {
                definition.serving = Arc::new(empty);
            }
        }
    }

    /// Removes definitions that are not among these names at a revision.
    pub(crate) fn retain(&self, revision: i64, there: impl Fn(&str) -> bool) {
        let gone: Vec<Arc<str>> = {
            let known = self.known.read();
            known.by_name.keys().filter(|name| !there(name)).cloned().collect()
        };
        gone.iter().for_each(|name| self.forget(name, revision));
    }
}

impl Known {
    /// Ends the served versions of a state that the next state changes.
    fn leave(&mut self, before: &Definition, after: Option<&Definition>) {
        let kind = before.facts.kind();
        let kept = after.is_some_and(|after| after.facts.kind() == kind);
        let own = self.by_kind.get(&kind).is_some_and(|name| **name == *before.record.key.name());
        if own && !kept {
            self.by_kind.remove(&kind);
        }
        if !after.is_some_and(|after| Arc::ptr_eq(&after.serving, &before.serving)) {
            before.serving.over.signal();
        }
    }
}
