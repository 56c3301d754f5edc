//! Field ownership after an update or an apply, as structured-merge-diff's updater computes it.
//!
//! The caller chooses the type of manager keys. Sets of managers that wrote in another version are compared in that version;
//! managers of a version that no longer exists are dropped.

use std::collections::BTreeMap;

use portico_machinery::Object;

use super::compare::Comparison;
use super::misfit::TypeMismatch;
use super::owned::{Owned, Owners};
use super::prune::prune;
use super::versions::{At, Unconverted, Versions};
use crate::fields::Set;
use crate::schema::Schema;

/// Fields that other managers own and the configuration changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicts<K>(pub Vec<(K, Set)>);

/// Reason why ownership cannot be computed, or why a configuration is not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure<K> {
    /// A value does not match its type, or cannot be converted.
    TypeMismatch(String),
    /// An object is not available yet in another version, see [`ConversionError::Pending`].
    Pending,
    /// Other managers own fields that the configuration changes.
    Conflicts(Conflicts<K>),
}

impl<K> Failure<K> {
    fn during(what: &str, misfit: &TypeMismatch) -> Self {
        Self::TypeMismatch(format!("{what}: {misfit}"))
    }
}

impl<K> From<Unconverted> for Failure<K> {
    fn from(unconverted: Unconverted) -> Self {
        match unconverted {
            Unconverted::Gone => Self::TypeMismatch("the version is not there any more".to_owned()),
            Unconverted::Pending => Self::Pending,
            Unconverted::Failed(text) => Self::TypeMismatch(text),
        }
    }
}

/// Converts all sets to the current types, and drops managers of removed versions. Requires the object in each version of a set.
fn reconcile<K: Ord + Clone>(at: &At<'_>, live: &Object, owners: &mut Owners<K>) -> Result<(), Unconverted> {
    let mut known: BTreeMap<Box<str>, bool> = BTreeMap::new();
    for owned in owners.values_mut() {
        let is_there = match known.get(&owned.version) {
            Some(is_there) => *is_there,
            None => match at.convert(live, &owned.version) {
                Ok(_) => true,
                Err(Unconverted::Gone) => false,
                Err(other) => return Err(other),
            },
        };
        known.insert(owned.version.clone(), is_there);
        if is_there && let Some(set) = at.of(&owned.version)?.reconciled(&owned.set) {
            owned.set = set;
        }
    }
    owners.retain(|_, owned| known.get(&owned.version) != Some(&false));
    Ok(())
}

/// Function that compares two objects.
type Compare = fn(&Schema, &Object, &Object) -> Result<Comparison, TypeMismatch>;

/// Compares the objects in each version in which managers other than `except` wrote. The value is `None` for a version that
/// no longer exists.
fn comparisons<K: Ord>(
    at: &At<'_>,
    (live, new): (&Object, &Object),
    compare: Compare,
    owners: &Owners<K>,
    except: Option<&K>,
) -> Result<BTreeMap<Box<str>, Option<Comparison>>, Unconverted> {
    let mut known = BTreeMap::new();
    for (_, owned) in owners.iter().filter(|(manager, _)| Some(*manager) != except) {
        if *owned.version == *at.version || known.contains_key(&owned.version) {
            continue;
        }
        let live = at.convert(live, &owned.version).map_err(|e| e.during("failed to convert old object"));
        let new = at.convert(new, &owned.version).map_err(|e| e.during("failed to convert new object"));
        let compared = match live.and_then(|live| Ok((live, new?))) {
            Err(Unconverted::Gone) => None,
            Err(other) => return Err(other),
            Ok(((live, there), (new, _))) => {
                let comparison = compare(there.schema, &live, &new)
                    .map_err(|misfit| Unconverted::Failed(format!("failed to compare objects: {misfit}")))?;
                Some(comparison.filtered(|set| there.filtered(set)))
            }
        };
        known.insert(owned.version.clone(), compared);
    }
    Ok(known)
}

/// Removes the differences from the sets of all managers but `except`, and drops managers with empty sets. Returns the added
/// or modified fields that they owned.
fn take<K: Ord + Clone>(
    at: &At<'_>,
    states: (&Object, &Object),
    compare: Compare,
    mine: &Comparison,
    owners: &mut Owners<K>,
    except: Option<&K>,
) -> Result<Conflicts<K>, Unconverted> {
    let others = comparisons(at, states, compare, owners, except)?;
    let mut conflicts = Vec::new();
    owners.retain(|manager, owned| {
        if Some(manager) == except {
            return true;
        }
        let theirs = || others.get(&owned.version).and_then(Option::as_ref);
        let comparison = if *owned.version == *at.version { Some(mine) } else { theirs() };
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
    Ok(Conflicts(conflicts))
}

/// Removes the fields that an update (create, replace, patch) changed from all managers; the caller then assigns them to the
/// manager of the update. `changed` contains the filtered differences in this version. After an error, `owners` is unspecified.
///
/// # Errors
/// [`ApplyError`], but never [`ApplyError::Conflicts`].
pub fn update<K: Ord + Clone>(
    versions: &dyn Versions,
    version: &str,
    (live, new): (&Object, &Object),
    changed: &Comparison,
    owners: &mut Owners<K>,
) -> Result<(), Failure<K>> {
    let at = At::new(versions, version)?;
    reconcile(&at, live, owners)?;
    take(&at, (live, new), Schema::compare, changed, owners, None)?;
    Ok(())
}

/// Applies a checked configuration: merges it, and removes fields that the manager applied before, no longer applies, and no
/// other manager owns. Returns `None` if the object does not change. After an error, `owners` is unspecified.
///
/// # Errors
/// [`ApplyError`].
pub fn apply<K: Ord + Clone>(
    versions: &dyn Versions,
    version: &str,
    (live, config): (&Object, &Object),
    owners: &mut Owners<K>,
    manager: &K,
    force: bool,
) -> Result<Option<Object>, Failure<K>> {
    let at = At::new(versions, version)?;
    reconcile(&at, live, owners)?;
    let merged =
        at.schema.merge_applied(live, config).map_err(|e| Failure::during("failed to merge config", &e))?;
    let set = at.filtered(at.schema.fields_of(config));
    let last = owners.insert(manager.clone(), Owned { set, version: version.into(), applied: true });
    let new = match last.filter(|last| !last.set.is_empty()) {
        Some(last) => prune(&at, merged, owners, &last).map_err(|e| e.during("failed to prune fields"))?,
        None => merged,
    };
    let changed =
        at.schema.compare_raw(live, &new).map_err(|e| Failure::during("failed to compare objects", &e))?;
    let changed = changed.filtered(|set| at.filtered(set));
    let conflicts = take(&at, (live, &new), Schema::compare_raw, &changed, owners, Some(manager))?;
    if !force && !conflicts.0.is_empty() {
        return Err(Failure::Conflicts(conflicts));
    }
    if owners.get(manager).is_some_and(|owned| owned.set.is_empty()) {
        owners.remove(manager);
    }
    Ok((new != *live).then_some(new))
}
