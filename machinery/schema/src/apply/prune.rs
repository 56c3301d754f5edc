//! Removes what a manager applied last time and does not name now, unless somebody owns it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use portico_machinery::Object;

use super::owned::{Owned, Owners};
use super::versions::{At, Unconverted};
use crate::fields::Set;

/// A merged object without what is gone from the configuration; `owners` have the new one already, `last` is the one before.
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
    // What nobody owned, or was not this manager's, comes back, too.
    let gone = then.named(&then.schema.fields_of(&merged_then));
    let gone = gone.difference(&then.named(&then.schema.fields_of(&pruned))).intersection(&last_set);
    let pruned = then.schema.without(&merged_then, &gone);
    then.convert(&pruned, at.version).map(|(pruned, _)| pruned.into_owned())
}

/// Puts back what anybody owns, version by version, beginning with the one that was pruned in. The object is in the last of
/// them then.
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
