//! Who owns what after an update or an apply: structured-merge-diff's updater.
//!
//! Managers are keys of the caller's choosing. Sets of managers who wrote in another version are compared in that
//! version; managers of a version that is no longer served are forgotten.

use std::collections::BTreeMap;

use portico_machinery::Object;

use super::{Comparison, Misfit, along};
use crate::fields::{Node, PathElement, Set};
use crate::schema::Schema;

/// What a manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// The fields.
    pub set: Set,
    /// The `apiVersion` in which they are named.
    pub version: Box<str>,
    /// Whether they were applied, not updated.
    pub applied: bool,
}

/// All managers of an object.
pub type Owners<K> = BTreeMap<K, Owned>;

/// What other managers own of what is to be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicts<K>(pub Vec<(K, Set)>);

/// Why a configuration is not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure<K> {
    /// It does not fit the type.
    Misfit(Misfit),
    /// Others own what it changes.
    Conflicts(Conflicts<K>),
}

impl<K> From<Misfit> for Failure<K> {
    fn from(misfit: Misfit) -> Self {
        Self::Misfit(misfit)
    }
}

/// Fields that managers do not own, whatever they send: those that the write resets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// All but these and what is below them.
    Drop(Set),
    /// Only what is at or below one of these paths, in which `None` is any element of a list.
    Keep(Vec<Vec<Option<PathElement>>>),
}

impl Default for Filter {
    fn default() -> Self {
        Self::Drop(Set::default())
    }
}

impl Filter {
    /// Keeps what is at or below these dotted paths, `*` for any element of a list.
    #[must_use]
    pub fn keeping<'p>(paths: impl IntoIterator<Item = &'p str>) -> Self {
        let step = |name: &str| (name != "*").then(|| PathElement::field(name));
        Self::Keep(paths.into_iter().map(|path| path.split('.').map(step).collect()).collect())
    }

    /// What passes.
    #[must_use]
    pub fn of(&self, mut set: Set) -> Set {
        match self {
            Self::Drop(gone) => {
                set.subtract_below(gone);
                set
            }
            Self::Keep(paths) => kept(&set, &paths.iter().map(Vec::as_slice).collect::<Vec<_>>()),
        }
    }
}

fn kept(set: &Set, paths: &[&[Option<PathElement>]]) -> Set {
    if paths.iter().any(|path| path.is_empty()) {
        return set.clone();
    }
    let nodes = set.nodes().iter().filter_map(|node| {
        let matches = |step: &Option<PathElement>| step.as_ref().is_none_or(|step| *step == node.element);
        let below: Vec<_> = paths
            .iter()
            .filter_map(|path| path.split_first().filter(|(s, _)| matches(s)))
            .map(|p| p.1)
            .collect();
        (!below.is_empty()).then(|| Node { children: kept(&node.children, &below), ..node.clone() })
    });
    Set::from_nodes(nodes.collect())
}

/// The versions of a kind.
pub trait Versions {
    /// The schema of a version; nothing when it is not served.
    fn schema(&self, version: &str) -> Option<&Schema>;
    /// An object of one version in another.
    fn convert(&self, object: &Object, from: &str, to: &str) -> Option<Object>;
    /// What a write of this version may make managers own.
    fn filter(&self, version: &str) -> &Filter;
}

/// An object in the version that it is written in.
struct At<'a> {
    versions: &'a dyn Versions,
    version: &'a str,
    schema: &'a Schema,
}

impl<'a> At<'a> {
    fn new(versions: &'a dyn Versions, version: &'a str) -> Result<Self, Misfit> {
        let schema = versions.schema(version);
        let schema = schema.ok_or_else(|| Misfit::at("", &format!("no such version: {version}")))?;
        Ok(Self { versions, version, schema })
    }

    fn named(&self, set: &Set) -> Set {
        along::with_named_fields(self.schema.types_in_use(), self.schema.shape(), set)
    }

    /// The object in another version, and that version.
    fn convert(&self, object: &Object, to: &'a str) -> Option<(Object, Self)> {
        let at = Self::new(self.versions, to).ok()?;
        if to == self.version {
            return Some((object.clone(), at));
        }
        Some((self.versions.convert(object, self.version, to)?, at))
    }

    /// `object` without what only `more` has, but for the fields in `owned`.
    fn restored(&self, merged: &Object, pruned: &Object, owned: &Set) -> Object {
        let kept = self.named(&self.schema.fields_of(pruned)).union(&self.named(owned));
        self.schema.without(merged, &self.named(&self.schema.fields_of(merged)).difference(&kept))
    }
}

/// Brings all sets to the types as they are now.
fn reconcile<K>(versions: &dyn Versions, owners: &mut Owners<K>) {
    for owned in owners.values_mut() {
        if let Some(schema) = versions.schema(&owned.version)
            && !along::fits(schema.types_in_use(), schema.shape(), &owned.set)
        {
            owned.set = along::reconciled(schema.types_in_use(), schema.shape(), &owned.set);
        }
    }
}

/// Takes what differs from everybody but `except`; who is left with nothing goes. Returns what they owned of what is new
/// or modified.
fn take<K: Ord + Clone>(
    at: &At<'_>,
    (live, new): (&Object, &Object),
    compare: fn(&Schema, &Object, &Object) -> Result<Comparison, Misfit>,
    mine: &Comparison,
    owners: &mut Owners<K>,
    except: Option<&K>,
) -> Conflicts<K> {
    let mut others: BTreeMap<Box<str>, Option<Comparison>> = BTreeMap::new();
    let mut conflicts = Vec::new();
    owners.retain(|manager, owned| {
        if Some(manager) == except {
            return true;
        }
        let comparison = if *owned.version == *at.version {
            Some(mine)
        } else {
            let known = others.entry(owned.version.clone()).or_insert_with(|| {
                let (live, there) = at.convert(live, &owned.version)?;
                let (new, _) = at.convert(new, &owned.version)?;
                let comparison = compare(there.schema, &live, &new).ok()?;
                Some(comparison.filtered(|set| at.versions.filter(&owned.version).of(set)))
            });
            known.as_ref()
        };
        let Some(comparison) = comparison else { return false };
        let mut conflict = owned.set.intersection(&comparison.modified);
        conflict.extend(owned.set.intersection(&comparison.added));
        owned.set.subtract(&conflict);
        owned.set.subtract(&comparison.removed);
        if !conflict.is_empty() {
            conflicts.push((manager.clone(), conflict));
        }
        !owned.set.is_empty()
    });
    Conflicts(conflicts)
}

/// Gives what an update (create, replace, patch) changed to nobody: takes it from everybody, as the caller gives it to
/// whoever updated. `changed` is what differs in this version, filtered.
///
/// # Errors
/// [`Misfit`] when the objects cannot be compared.
pub fn update<K: Ord + Clone>(
    versions: &dyn Versions,
    version: &str,
    (live, new): (&Object, &Object),
    changed: &Comparison,
    owners: &mut Owners<K>,
) -> Result<(), Misfit> {
    let at = At::new(versions, version)?;
    reconcile(versions, owners);
    take(&at, (live, new), Schema::compare, changed, owners, None);
    Ok(())
}

/// Applies a configuration, which was checked: merges it, removes what the manager applied before, no longer names, and
/// nobody else owns. Nothing is returned for the object when it stays as it is. After a failure the owners are spoilt.
///
/// # Errors
/// [`Failure`].
pub fn apply<K: Ord + Clone>(
    versions: &dyn Versions,
    version: &str,
    (live, config): (&Object, &Object),
    owners: &mut Owners<K>,
    manager: &K,
    force: bool,
) -> Result<Option<Object>, Failure<K>> {
    let at = At::new(versions, version)?;
    reconcile(versions, owners);
    let merged = at.schema.merge_applied(live, config)?;
    let set = versions.filter(version).of(at.schema.fields_of(config));
    let last = owners.insert(manager.clone(), Owned { set, version: version.into(), applied: true });
    let new = match last.filter(|last| !last.set.is_empty()) {
        Some(last) => prune(&at, merged, owners, &last),
        None => merged,
    };
    let changed = at.schema.compare_raw(live, &new)?.filtered(|set| versions.filter(version).of(set));
    let conflicts = take(&at, (live, &new), Schema::compare_raw, &changed, owners, Some(manager));
    if !force && !conflicts.0.is_empty() {
        return Err(Failure::Conflicts(conflicts));
    }
    if owners.get(manager).is_some_and(|owned| owned.set.is_empty()) {
        owners.remove(manager);
    }
    Ok((new != *live).then_some(new))
}

/// Removes what the manager applied last time and does not name now, unless somebody owns it.
fn prune<K>(at: &At<'_>, merged: Object, owners: &Owners<K>, last: &Owned) -> Object {
    let Some((merged_then, then)) = at.convert(&merged, &last.version) else { return merged };
    let last_set = then.named(&last.set);
    let pruned = then.schema.without(&merged_then, &last_set);
    let Some(pruned) = keep_owned(&then, &merged_then, pruned, owners) else { return merged };
    // What nobody owned, or was not this manager's, comes back, too.
    let gone = then.named(&then.schema.fields_of(&merged_then));
    let gone = gone.difference(&then.named(&then.schema.fields_of(&pruned))).intersection(&last_set);
    let pruned = then.schema.without(&merged_then, &gone);
    then.convert(&pruned, at.version).map_or(merged, |(pruned, _)| pruned)
}

/// Puts back what anybody owns, version by version, beginning with the one that was pruned in.
fn keep_owned<K>(then: &At<'_>, merged: &Object, pruned: Object, owners: &Owners<K>) -> Option<Object> {
    let mut by_version: BTreeMap<&str, Set> = BTreeMap::new();
    for owned in owners.values() {
        let set = by_version.entry(&owned.version).or_default();
        *set = set.union(&owned.set);
    }
    let own = by_version.remove(then.version).unwrap_or_default();
    let mut pruned = then.restored(merged, &pruned, &own);
    for (version, owned) in by_version {
        let Some(((merged, there), (held, _))) =
            then.convert(merged, version).zip(then.convert(&pruned, version))
        else {
            continue;
        };
        pruned = there.convert(&there.restored(&merged, &held, &owned), then.version)?.0;
    }
    Some(pruned)
}
