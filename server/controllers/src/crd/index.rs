//! Index of definitions by group: names in use, definitions that wait for names, and served versions.
//!
//! The cost of a change depends only on the definitions that it affects.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use portico_machinery::GroupVersion;
use portico_registry::Names;

use super::definition::Definition;
use super::naming::{Claimed, InUse};
use super::verdict::{self, Verdict};

/// Name of a definition.
pub type Name = Arc<str>;

/// Work caused by a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Definitions whose status must be decided.
    pub decide: Vec<Name>,
    /// Definitions whose instances must be deleted.
    pub finalize: Vec<Name>,
    /// Group versions that are newly served.
    pub appeared: Vec<GroupVersion>,
    /// Group versions that are no longer served.
    pub vanished: Vec<GroupVersion>,
}

/// Index of all definitions.
#[derive(Default)]
pub struct Index {
    definitions: HashMap<Name, Entry>,
    groups: HashMap<String, Group>,
    /// Revision up to which all changes of definitions are applied.
    seen: i64,
    /// Definitions with a pending acceptance of names, which requires all changes up to the revision.
    deferred: Vec<(i64, Name)>,
}

struct Entry {
    definition: Arc<Definition>,
    revision: i64,
    /// Names that are being written as accepted and are reserved until the write ends.
    claimed: Option<Box<Names>>,
}

#[derive(Default)]
struct Group {
    members: usize,
    in_use: InUse,
    /// Definitions whose accepted names differ from the requested ones.
    wanting: BTreeSet<Name>,
    /// Number of definitions that serve each version.
    served: HashMap<String, usize>,
}

impl Index {
    /// Returns the indexed definition with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Definition>> {
        self.definitions.get(name).map(|entry| &entry.definition)
    }

    /// Returns the names of all definitions.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.definitions.keys()
    }

    /// Adds or replaces a definition as of a revision. Ignored if a newer revision is indexed.
    pub fn put(&mut self, name: &Name, definition: Definition, revision: i64) -> Effects {
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
        let entry = Entry { definition: Arc::clone(&definition), revision, claimed: None };
        let before = self.definitions.insert(Arc::clone(name), entry);
        let group = self.groups.entry(definition.group.clone()).or_default();
        group.join(name, &definition, &mut effects);
        let is_new = before.as_ref().is_none_or(|before| before.definition != definition);
        if let Some(before) = before {
            group.leave(&before.definition, &mut effects);
            self.free(name, &definition.group, &before.definition.accepted, &mut effects);
            if let Some(entry) = self.definitions.get_mut(name) {
                entry.claimed = before.claimed;
            }
        }
        if is_new && definition.is_finalizing {
            effects.finalize.push(Arc::clone(name));
        }
        if self.verdict(&definition).is_some() {
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
        group.leave(&definition, &mut effects);
        group.wanting.remove(&name);
        let claimed = entry.claimed.unwrap_or_default();
        group.in_use.release(&claimed);
        if group.members == 0 {
            self.groups.remove(&definition.group);
            return effects;
        }
        for names in [&definition.accepted, &*claimed] {
            self.free(&name, &definition.group, names, &mut effects);
        }
        effects
    }

    /// Records that all changes of definitions up to a revision are applied.
    pub fn saw(&mut self, revision: i64) -> Effects {
        self.seen = self.seen.max(revision);
        let due = self.deferred.extract_if(.., |(revision, _)| *revision <= self.seen);
        Effects { decide: due.map(|(_, name)| name).collect(), ..Effects::default() }
    }

    /// Decides the status of a definition, whose state may be newer than the indexed one. Reserves the accepted names until
    /// [`Index::finish_write`]. Names are accepted only once all changes up to `revision` are applied, so that definitions that
    /// requested them earlier are among the rivals.
    pub fn decide(&mut self, name: &Name, definition: &Definition, revision: i64) -> Option<Verdict> {
        let verdict = self.verdict(definition)?;
        if verdict.accepted.is_some() && self.seen < revision {
            self.deferred.push((revision, Arc::clone(name)));
            return None;
        }
        if let (Some(accepted), Some(entry)) = (&verdict.accepted, self.definitions.get_mut(&**name))
            && let Some(group) = self.groups.get_mut(&definition.group)
        {
            group.in_use.take(accepted);
            if let Some(before) = entry.claimed.replace(Box::new(accepted.clone())) {
                group.in_use.release(&before);
            }
        }
        Some(verdict)
    }

    /// Releases the reservation after a write. `now` is the written definition, or `None` if the write failed; definitions that
    /// wait for released names are decided again.
    pub fn written(&mut self, name: &Name, now: Option<(Definition, i64)>) -> Effects {
        let known = self.definitions.get(name).map(|entry| entry.definition.uid.clone());
        let mut effects = match (known, now) {
            (Some(uid), Some((definition, revision))) if uid == definition.uid => {
                self.put(name, definition, revision)
            }
            _ => Effects::default(),
        };
        if let Some(entry) = self.definitions.get_mut(name)
            && let Some(claimed) = entry.claimed.take()
            && let Some(group) = self.groups.get_mut(&entry.definition.group)
        {
            group.in_use.release(&claimed);
            let group = entry.definition.group.clone();
            self.free(name, &group, &claimed, &mut effects);
        }
        effects
    }

    /// Returns other definitions that request names this one is about to get, with their indexed revisions: another process may
    /// be accepting these names for them.
    pub fn rivals(&self, name: &str, definition: &Definition, verdict: &Verdict) -> Vec<(Name, i64)> {
        let group = self.groups.get(&definition.group);
        let (Some(accepted), Some(group)) = (&verdict.accepted, group) else { return Vec::new() };
        let claimed = Claimed::by(accepted);
        let others = group.wanting.iter().filter(|other| &***other != name);
        let known = others.filter_map(|other| Some((other, self.definitions.get(other)?)));
        let rivals = known.filter(|(_, entry)| claimed.overlaps(&entry.definition.names));
        rivals.map(|(other, entry)| (Arc::clone(other), entry.revision)).collect()
    }

    fn verdict(&self, definition: &Definition) -> Option<Verdict> {
        match self.groups.get(&definition.group) {
            Some(group) => verdict::decide(definition, &group.in_use),
            None => verdict::decide(definition, &InUse::default()),
        }
    }

    /// Enqueues the definitions that wait for any of these names that are no longer in use.
    fn free(&self, name: &str, group: &str, names: &Names, effects: &mut Effects) {
        let Some(group) = self.groups.get(group).filter(|group| group.in_use.frees_any(names)) else {
            return;
        };
        let waiting = group.wanting.iter().filter(|other| &***other != name);
        let gets_some = |other: &&Name| self.get(other).is_some_and(|d| self.verdict(d).is_some());
        effects.decide.extend(waiting.filter(gets_some).cloned());
    }
}

impl Group {
    fn join(&mut self, name: &Name, definition: &Definition, effects: &mut Effects) {
        self.members += 1;
        self.in_use.take(&definition.accepted);
        match definition.names == definition.accepted {
            true => drop(self.wanting.remove(name)),
            false => drop(self.wanting.insert(Arc::clone(name))),
        }
        for version in definition.served() {
            let count = self.served.entry(version.to_owned()).or_default();
            *count += 1;
            if *count == 1 {
                effects.appeared.push(GroupVersion::new(&definition.group, version));
            }
        }
    }

    fn leave(&mut self, definition: &Definition, effects: &mut Effects) {
        self.members -= 1;
        self.in_use.release(&definition.accepted);
        for version in definition.served() {
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
