//! Index of definitions by group: names in use, definitions that wait for names, and served versions.
//!
//! The cost of a change depends only on the definitions that it affects.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use portico_machinery::GroupVersion;
use portico_registry::DefinitionNames;

use super::definition::Definition;
use super::naming::{ClaimedNames, NamesInUse};
use super::status_change::{self, StatusChange};

/// Name of a definition.
pub type DefinitionName = Arc<str>;

/// Work caused by a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Definitions whose status must be decided.
    pub decide: Vec<DefinitionName>,
    /// Definitions whose instances must be deleted.
    pub finalize: Vec<DefinitionName>,
    /// Group versions that are newly served.
    pub appeared: Vec<GroupVersion>,
    /// Group versions that are no longer served.
    pub vanished: Vec<GroupVersion>,
}

/// Index of all definitions.
#[derive(Default)]
pub struct CrdIndex {
    definitions: HashMap<DefinitionName, IndexEntry>,
    groups: HashMap<String, DefinitionGroup>,
    /// Revision up to which all changes of definitions are applied.
    applied_revision: i64,
    /// Definitions with a pending acceptance of names, which requires all changes up to the revision.
    deferred: Vec<(i64, DefinitionName)>,
}

struct IndexEntry {
    definition: Arc<Definition>,
    revision: i64,
    /// Names that are being written as accepted and are reserved until the write ends.
    reserved_names: Option<Box<DefinitionNames>>,
}

#[derive(Default)]
struct DefinitionGroup {
    members: usize,
    in_use: NamesInUse,
    /// Definitions whose accepted names differ from the requested ones.
    waiting: BTreeSet<DefinitionName>,
    /// Number of definitions that serve each version.
    served: HashMap<String, usize>,
}

impl CrdIndex {
    /// Returns the indexed definition with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Definition>> {
        self.definitions.get(name).map(|entry| &entry.definition)
    }

    /// Returns the names of all definitions.
    pub fn names(&self) -> impl Iterator<Item = &DefinitionName> {
        self.definitions.keys()
    }

    /// Adds or replaces a definition as of a revision. Ignored if a newer revision is indexed.
    pub fn put(&mut self, name: &DefinitionName, definition: Definition, revision: i64) -> Effects {
        let before = self.definitions.get(name);
        if before.is_some_and(|entry| entry.revision >= revision) {
            return Effects::default();
        }
        // Deleted and created again between two events: the old definition is removed first.
        let mut effects = match before {
            Some(entry) if entry.definition.uid != definition.uid => self.remove(name),
            _ => Effects::default(),
        };
        let definition = Arc::new(definition);
        let entry = IndexEntry { definition: Arc::clone(&definition), revision, reserved_names: None };
        let before = self.definitions.insert(Arc::clone(name), entry);
        let group = self.groups.entry(definition.group.clone()).or_default();
        group.add(name, &definition, &mut effects);
        let is_new = before.as_ref().is_none_or(|before| before.definition != definition);
        if let Some(before) = before {
            group.remove(&before.definition, &mut effects);
            self.release_names(name, &definition.group, &before.definition.accepted, &mut effects);
            if let Some(entry) = self.definitions.get_mut(name) {
                entry.reserved_names = before.reserved_names;
            }
        }
        if is_new && definition.is_finalizing {
            effects.finalize.push(Arc::clone(name));
        }
        if self.decide_status(&definition).is_some() {
            effects.decide.push(Arc::clone(name));
        }
        effects
    }

    /// Removes a definition.
    pub fn remove(&mut self, name: &str) -> Effects {
        let mut effects = Effects::default();
        let Some((name, entry)) = self.definitions.remove_entry(name) else { return effects };
        let definition = entry.definition;
        let Some(group) = self.groups.get_mut(&definition.group) else { return effects };
        group.remove(&definition, &mut effects);
        group.waiting.remove(&name);
        let reserved = entry.reserved_names.unwrap_or_default();
        group.in_use.release(&reserved);
        if group.members == 0 {
            self.groups.remove(&definition.group);
            return effects;
        }
        for names in [&definition.accepted, &*reserved] {
            self.release_names(&name, &definition.group, names, &mut effects);
        }
        effects
    }

    /// Records that all changes of definitions up to a revision are applied.
    pub fn advance(&mut self, revision: i64) -> Effects {
        self.applied_revision = self.applied_revision.max(revision);
        let due = self.deferred.extract_if(.., |(revision, _)| *revision <= self.applied_revision);
        Effects { decide: due.map(|(_, name)| name).collect(), ..Effects::default() }
    }

    /// Decides the status of a definition, whose state may be newer than the indexed one. Reserves the accepted names until
    /// [`Index::finish_write`]. Names are accepted only once all changes up to `revision` are applied, so that definitions that
    /// requested them earlier are among the rivals.
    pub fn decide(
        &mut self,
        name: &DefinitionName,
        definition: &Definition,
        revision: i64,
    ) -> Option<StatusChange> {
        let verdict = self.decide_status(definition)?;
        if verdict.accepted_names.is_some() && self.applied_revision < revision {
            self.deferred.push((revision, Arc::clone(name)));
            return None;
        }
        if let (Some(accepted), Some(entry)) = (&verdict.accepted_names, self.definitions.get_mut(&**name))
            && let Some(group) = self.groups.get_mut(&definition.group)
        {
            group.in_use.acquire(accepted);
            if let Some(before) = entry.reserved_names.replace(Box::new(accepted.clone())) {
                group.in_use.release(&before);
            }
        }
        Some(verdict)
    }

    /// Releases the reservation after a write. `written` is the written definition and its revision, or `None` if the write
    /// failed. Definitions that wait for released names are decided again.
    pub fn finish_write(&mut self, name: &DefinitionName, written: Option<(Definition, i64)>) -> Effects {
        let indexed_uid = self.definitions.get(name).map(|entry| entry.definition.uid.clone());
        let mut effects = match (indexed_uid, written) {
            (Some(uid), Some((definition, revision))) if uid == definition.uid => {
                self.put(name, definition, revision)
            }
            _ => Effects::default(),
        };
        if let Some(entry) = self.definitions.get_mut(name)
            && let Some(reserved) = entry.reserved_names.take()
            && let Some(group) = self.groups.get_mut(&entry.definition.group)
        {
            group.in_use.release(&reserved);
            let group = entry.definition.group.clone();
            self.release_names(name, &group, &reserved, &mut effects);
        }
        effects
    }

    /// Returns other definitions that request names this one is about to get, with their indexed revisions: another process may
    /// be accepting these names for them.
    pub fn rivals(
        &self,
        name: &str,
        definition: &Definition,
        verdict: &StatusChange,
    ) -> Vec<(DefinitionName, i64)> {
        let group = self.groups.get(&definition.group);
        let (Some(accepted), Some(group)) = (&verdict.accepted_names, group) else { return Vec::new() };
        let claimed = ClaimedNames::from_names(accepted);
        let others = group.waiting.iter().filter(|other| &***other != name);
        let waiting_entries = others.filter_map(|other| Some((other, self.definitions.get(other)?)));
        let rivals = waiting_entries.filter(|(_, entry)| claimed.overlaps(&entry.definition.names));
        rivals.map(|(other, entry)| (Arc::clone(other), entry.revision)).collect()
    }

    fn decide_status(&self, definition: &Definition) -> Option<StatusChange> {
        match self.groups.get(&definition.group) {
            Some(group) => status_change::decide(definition, &group.in_use),
            None => status_change::decide(definition, &NamesInUse::default()),
        }
    }

    /// Enqueues the definitions that wait for any of these names that are no longer in use.
    fn release_names(&self, name: &str, group: &str, names: &DefinitionNames, effects: &mut Effects) {
        let Some(group) = self.groups.get(group).filter(|group| group.in_use.frees_any(names)) else {
            return;
        };
        let waiting = group.waiting.iter().filter(|other| &***other != name);
        let would_change =
            |other: &&DefinitionName| self.get(other).is_some_and(|d| self.decide_status(d).is_some());
        effects.decide.extend(waiting.filter(would_change).cloned());
    }
}

impl DefinitionGroup {
    fn add(&mut self, name: &DefinitionName, definition: &Definition, effects: &mut Effects) {
        self.members += 1;
        self.in_use.acquire(&definition.accepted);
        match definition.names == definition.accepted {
            true => drop(self.waiting.remove(name)),
            false => drop(self.waiting.insert(Arc::clone(name))),
        }
        for version in definition.served_versions() {
            let count = self.served.entry(version.to_owned()).or_default();
            *count += 1;
            if *count == 1 {
                effects.appeared.push(GroupVersion::new(&definition.group, version));
            }
        }
    }

    fn remove(&mut self, definition: &Definition, effects: &mut Effects) {
        self.members -= 1;
        self.in_use.release(&definition.accepted);
        for version in definition.served_versions() {
            let Some(count) = self.served.get_mut(version) else { continue };
            *count -= 1;
            if *count == 0 {
                self.served.remove(version);
                effects.vanished.push(GroupVersion::new(&definition.group, version));
            }
        }
    }
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
