//! Removal of fields that a manager applied last time and does not apply now, unless another manager owns them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use portico_machinery::Object;

use super::owned::{Owned, Owners};
use super::versions::{At, Unconverted};
use crate::fields::Set;

/// Removes the fields that are no longer in the configuration from a merged object. `owners` already contain the new set of
/// the manager; `last` is the previous one.
pub(super) fn prune<'a, K>(
    at: &At<'a>,
    merged: Object,
    owners: &'a Owners<K>,
    last: &'a Owned,
) -> Result<Object, Unconverted> {
    let converted = at.convert(&merged, &last.version);
    let (merged_then, then) = match converted {
        Err(Unconverted::Gone) => return Ok(merged),
        other => other.map_err(|e| e.during("failed to convert merged object to last applied version"))?,
    };
    let last_set = then.named(&last.set);
    let pruned = then.schema.without(&merged_then, &last_set);
    let (there, pruned) = keep_owned(then, &merged_then, pruned, owners)
        .map_err(|e| e.during("failed add back owned items"))?;
    let what = "failed add back dangling items: failed to convert pruned object to last applied version";
    let (pruned, _) = there.convert(&pruned, then.version).map_err(|e| e.during(what))?;
    // Restore fields that no manager owned, or that this manager did not own.
    let gone = then.named(&then.schema.fields_of(&merged_then));
    let gone = gone.difference(&then.named(&then.schema.fields_of(&pruned))).intersection(&last_set);
    let pruned = then.schema.without(&merged_then, &gone);
    then.convert(&pruned, at.version).map(|(pruned, _)| pruned.into_owned())
}

/// Restores the fields that any manager owns, version by version, starting with the version that was pruned. Also returns the
/// last version, which is the version of the object.
fn keep_owned<'a, K>(
    mut at: At<'a>,
    merged: &Object,
    mut pruned: Object,
    owners: &'a Owners<K>,
) -> Result<(At<'a>, Object), Unconverted> {
    let mut sets: BTreeMap<&str, Vec<Set>> = BTreeMap::new();
    for owned in owners.values() {
        sets.entry(&owned.version).or_default().push(owned.set.clone());
    }
    let mut by_version: BTreeMap<&str, Set> =
        sets.into_iter().map(|(version, sets)| (version, Set::union_of(sets))).collect();
    let own = by_version.remove_entry(at.version);
    let mut merged = Cow::Borrowed(merged);
    for (version, owned) in own.into_iter().chain(by_version) {
        let failed = |which: &str| format!("failed to convert {which} object at version {version}");
        let (merged_there, there) = match at.convert(&merged, version) {
            Err(Unconverted::Gone) => continue,
            other => other.map_err(|e| e.during(&failed("merged")))?,
        };
        let (held, _) = at.convert(&pruned, version).map_err(|e| e.during(&failed("pruned")))?;
        pruned = there.restored(&merged_there, &held, &owned);
        if let Cow::Owned(object) = merged_there {
            merged = Cow::Owned(object);
        }
        at = there;
    }
    Ok((at, pruned))
}
