//! Field ownership after an update or an apply, as structured-merge-diff's updater computes it.
//!
//! The caller chooses the type of manager keys. Sets of managers that wrote in another version are compared in that version;
//! managers of a version that no longer exists are dropped.

use std::collections::BTreeMap;

use portico_machinery::Object;

use super::compare::Comparison;
use super::ownership::{FieldOwners, OwnedFields};
use super::prune::prune;
use super::type_mismatch::TypeMismatch;
use super::versions::{ConversionError, VersionView, Versions};
use crate::fields::FieldSet;
use crate::schema::Schema;

/// Fields that other managers own and the configuration changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicts<K>(pub Vec<(K, FieldSet)>);

/// Reason why ownership cannot be computed, or why a configuration is not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyError<K> {
    /// A value does not match its type, or cannot be converted.
    TypeMismatch(String),
    /// An object is not available yet in another version, see [`ConversionError::Pending`].
    Pending,
    /// Other managers own fields that the configuration changes.
    Conflicts(Conflicts<K>),
}

impl<K> ApplyError<K> {
    fn with_context(context: &str, type_mismatch: &TypeMismatch) -> Self {
        Self::TypeMismatch(format!("{context}: {type_mismatch}"))
    }
}

impl<K> From<ConversionError> for ApplyError<K> {
    fn from(unconverted: ConversionError) -> Self {
        match unconverted {
            ConversionError::VersionRemoved => {
                Self::TypeMismatch("the version is not there any more".to_owned())
            }
            ConversionError::Pending => Self::Pending,
            ConversionError::Failed(text) => Self::TypeMismatch(text),
        }
    }
}

/// Converts all sets to the current types, and drops managers of removed versions. Requires the object in each version of a set.
fn reconcile<K: Ord + Clone>(
    view: &VersionView<'_>,
    live: &Object,
    owners: &mut FieldOwners<K>,
) -> Result<(), ConversionError> {
    let mut version_exists: BTreeMap<Box<str>, bool> = BTreeMap::new();
    for owned in owners.values_mut() {
        let is_there = match version_exists.get(&owned.version) {
            Some(is_there) => *is_there,
            None => match view.convert(live, &owned.version) {
                Ok(_) => true,
                Err(ConversionError::VersionRemoved) => false,
                Err(other) => return Err(other),
            },
        };
        version_exists.insert(owned.version.clone(), is_there);
        if is_there && let Some(set) = view.in_version(&owned.version)?.reconcile_atomics(&owned.set) {
            owned.set = set;
        }
    }
    owners.retain(|_, owned| version_exists.get(&owned.version) != Some(&false));
    Ok(())
}

/// Function that compares two objects.
type CompareFn = fn(&Schema, &Object, &Object) -> Result<Comparison, TypeMismatch>;

/// Compares the objects in each version in which managers other than `except` wrote. The value is `None` for a version that
/// no longer exists.
fn compare_in_versions<K: Ord>(
    view: &VersionView<'_>,
    (live, new): (&Object, &Object),
    compare: CompareFn,
    owners: &FieldOwners<K>,
    except: Option<&K>,
) -> Result<BTreeMap<Box<str>, Option<Comparison>>, ConversionError> {
    let mut comparisons = BTreeMap::new();
    for (_, owned) in owners.iter().filter(|(manager, _)| Some(*manager) != except) {
        if *owned.version == *view.version || comparisons.contains_key(&owned.version) {
            continue;
        }
        let live =
            view.convert(live, &owned.version).map_err(|e| e.with_context("failed to convert old object"));
        let new =
            view.convert(new, &owned.version).map_err(|e| e.with_context("failed to convert new object"));
        let compared = match live.and_then(|live| Ok((live, new?))) {
            Err(ConversionError::VersionRemoved) => None,
            Err(other) => return Err(other),
            Ok(((live, other_view), (new, _))) => {
                let comparison = compare(other_view.schema, &live, &new).map_err(|mismatch| {
                    ConversionError::Failed(format!("failed to compare objects: {mismatch}"))
                })?;
                Some(comparison.map_sets(|set| other_view.filter_set(set)))
            }
        };
        comparisons.insert(owned.version.clone(), compared);
    }
    Ok(comparisons)
}

/// Removes the differences from the sets of all managers but `except`, and drops managers with empty sets. Returns the added
/// or modified fields that they owned.
fn take_fields<K: Ord + Clone>(
    view: &VersionView<'_>,
    states: (&Object, &Object),
    compare: CompareFn,
    own_comparison: &Comparison,
    owners: &mut FieldOwners<K>,
    except: Option<&K>,
) -> Result<Conflicts<K>, ConversionError> {
    let other_comparisons = compare_in_versions(view, states, compare, owners, except)?;
    let mut conflicts = Vec::new();
    owners.retain(|manager, owned| {
        if Some(manager) == except {
            return true;
        }
        let other_comparison = || other_comparisons.get(&owned.version).and_then(Option::as_ref);
        let comparison =
            if *owned.version == *view.version { Some(own_comparison) } else { other_comparison() };
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
pub fn update_owners<K: Ord + Clone>(
    versions: &dyn Versions,
    version: &str,
    (live, new): (&Object, &Object),
    changed: &Comparison,
    owners: &mut FieldOwners<K>,
) -> Result<(), ApplyError<K>> {
    let view = VersionView::new(versions, version)?;
    reconcile(&view, live, owners)?;
    take_fields(&view, (live, new), Schema::compare, changed, owners, None)?;
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
    owners: &mut FieldOwners<K>,
    manager: &K,
    force: bool,
) -> Result<Option<Object>, ApplyError<K>> {
    let view = VersionView::new(versions, version)?;
    reconcile(&view, live, owners)?;
    let merged = view
        .schema
        .merge_applied(live, config)
        .map_err(|e| ApplyError::with_context("failed to merge config", &e))?;
    let set = view.filter_set(view.schema.fields_of(config));
    let last = owners.insert(manager.clone(), OwnedFields { set, version: version.into(), applied: true });
    let new = match last.filter(|last| !last.set.is_empty()) {
        Some(last) => {
            prune(&view, merged, owners, &last).map_err(|e| e.with_context("failed to prune fields"))?
        }
        None => merged,
    };
    let changed = view
        .schema
        .compare_raw(live, &new)
        .map_err(|e| ApplyError::with_context("failed to compare objects", &e))?;
    let changed = changed.map_sets(|set| view.filter_set(set));
    let conflicts = take_fields(&view, (live, &new), Schema::compare_raw, &changed, owners, Some(manager))?;
    if !force && !conflicts.0.is_empty() {
        return Err(ApplyError::Conflicts(conflicts));
    }
    if owners.get(manager).is_some_and(|owned| owned.set.is_empty()) {
        owners.remove(manager);
    }
    Ok((new != *live).then_some(new))
}
