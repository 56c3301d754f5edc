//! Removal of fields that a manager applied last time and does not apply now, unless another manager owns them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use portico_machinery::Object;

use super::ownership::{FieldOwners, OwnedFields};
use super::versions::{ConversionError, VersionView};
use crate::fields::FieldSet;

/// Removes the fields that are no longer in the configuration from a merged object. `owners` already contain the new set of
/// the manager; `last` is the previous one.
pub(super) fn prune<'a, K>(
    view: &VersionView<'a>,
    merged: Object,
    owners: &'a FieldOwners<K>,
    last: &'a OwnedFields,
) -> Result<Object, ConversionError> {
    let converted = view.convert(&merged, &last.version);
    let (merged_in_last, last_view) = match converted {
        Err(ConversionError::VersionRemoved) => return Ok(merged),
        other => {
            other.map_err(|e| e.with_context("failed to convert merged object to last applied version"))?
        }
    };
    let last_set = last_view.with_named_fields(&last.set);
    let pruned = last_view.schema.without_fields(&merged_in_last, &last_set);
    let (other_view, pruned) = restore_owned(last_view, &merged_in_last, pruned, owners)
        .map_err(|e| e.with_context("failed add back owned items"))?;
    let context = "failed add back dangling items: failed to convert pruned object to last applied version";
    let (pruned, _) = other_view.convert(&pruned, last_view.version).map_err(|e| e.with_context(context))?;
    // Restore fields that no manager owned, or that this manager did not own.
    let removed = last_view.with_named_fields(&last_view.schema.fields_of(&merged_in_last));
    let removed = removed
        .difference(&last_view.with_named_fields(&last_view.schema.fields_of(&pruned)))
        .intersection(&last_set);
    let pruned = last_view.schema.without_fields(&merged_in_last, &removed);
    last_view.convert(&pruned, view.version).map(|(pruned, _)| pruned.into_owned())
}

/// Restores the fields that any manager owns, version by version, starting with the version that was pruned. Also returns the
/// last version, which is the version of the object.
fn restore_owned<'a, K>(
    mut view: VersionView<'a>,
    merged: &Object,
    mut pruned: Object,
    owners: &'a FieldOwners<K>,
) -> Result<(VersionView<'a>, Object), ConversionError> {
    let mut sets: BTreeMap<&str, Vec<FieldSet>> = BTreeMap::new();
    for owned in owners.values() {
        sets.entry(&owned.version).or_default().push(owned.set.clone());
    }
    let mut by_version: BTreeMap<&str, FieldSet> =
        sets.into_iter().map(|(version, sets)| (version, FieldSet::union_all(sets))).collect();
    let own_entry = by_version.remove_entry(view.version);
    let mut merged = Cow::Borrowed(merged);
    for (version, owned) in own_entry.into_iter().chain(by_version) {
        let failed =
            |object_name: &str| format!("failed to convert {object_name} object at version {version}");
        let (merged_converted, other_view) = match view.convert(&merged, version) {
            Err(ConversionError::VersionRemoved) => continue,
            other => other.map_err(|e| e.with_context(&failed("merged")))?,
        };
        let (pruned_converted, _) =
            view.convert(&pruned, version).map_err(|e| e.with_context(&failed("pruned")))?;
        pruned = other_view.restore_owned(&merged_converted, &pruned_converted, &owned);
        if let Cow::Owned(object) = merged_converted {
            merged = Cow::Owned(object);
        }
        view = other_view;
    }
    Ok((view, pruned))
}
