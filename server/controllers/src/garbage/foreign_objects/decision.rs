//! Decides about a dependent on another API server. Pure.

use portico_machinery::object::OwnerReference;
use portico_registry::Propagation;

use super::super::decision::{self, Dependent, DependentVerdict, OwnerState};
use super::{DependentAction, ForeignObject, OwnerOutcome, OwnerOutcomes};

/// Returns the action, or `None` if the dependent stays unchanged. `other_owners` are its owners without an outcome, each
/// with its state.
///
/// # Errors
/// Returns [`UnknownOwnerState`] while the state of an owner is unknown.
pub fn action(
    object: &ForeignObject,
    outcomes: &OwnerOutcomes,
    other_owners: Vec<(OwnerReference, OwnerState)>,
) -> Result<Option<DependentAction>, UnknownOwnerState> {
    let outcome = |owner: &OwnerReference| outcomes.get(&owner.uid).copied();
    let is_orphaned = object.owners.iter().any(|owner| outcome(owner) == Some(OwnerOutcome::Orphaned));
    let deleted = object.owners.iter().filter(|o| outcome(o) == Some(OwnerOutcome::Deleted));
    let owners: Vec<_> =
        deleted.map(|owner| (owner.clone(), OwnerState::Absent)).chain(other_owners).collect();
    let set_owners = |removed: &[String]| {
        let is_kept =
            |o: &&OwnerReference| outcome(o) != Some(OwnerOutcome::Orphaned) && !removed.contains(&o.uid);
        DependentAction::SetOwners(object.owners.iter().filter(is_kept).cloned().collect())
    };
    let finalizers = object.finalizers.iter().map(String::as_str).collect();
    let dependent = Dependent { owners, finalizers, has_dependents: false, has_waiting_dependent: false };
    let absent = || dependent.owners.iter().filter(|o| o.1 == OwnerState::Absent).map(|o| o.0.uid.clone());
    Ok(match decision::decide(&dependent) {
        DependentVerdict::Defer => return Err(UnknownOwnerState),
        DependentVerdict::Keep => is_orphaned.then(|| set_owners(&[])),
        DependentVerdict::RemoveOwners(uids) => Some(set_owners(&uids)),
        // An owner was orphaned: the dependent stays, without owners.
        DependentVerdict::Delete { .. } if is_orphaned => Some(set_owners(&absent().collect::<Vec<_>>())),
        DependentVerdict::Delete { propagation, .. } => Some(DependentAction::Delete(match propagation {
            Propagation::Orphan => "Orphan",
            Propagation::Foreground => "Foreground",
            Propagation::Background => "Background",
        })),
    })
}

/// Error: the state of an owner is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownOwnerState;

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(uid: &str) -> OwnerReference {
        OwnerReference { uid: uid.to_owned(), ..OwnerReference::default() }
    }

    fn object(owners: &[&str]) -> ForeignObject {
        ForeignObject {
            route: "v1.a".into(),
            path: "/apis/a/v1/things/x".into(),
            namespace: String::new(),
            uid: "x".into(),
            resource_version: "1".into(),
            finalizers: Vec::new(),
            owners: owners.iter().map(|uid| reference(uid)).collect(),
        }
    }

    /// UIDs of owners, states of owners without an outcome, and the expected result.
    type Row<'a> =
        (&'a [&'a str], &'a [(&'a str, OwnerState)], Result<Option<DependentAction>, UnknownOwnerState>);

    #[test]
    fn a_dependent_is_deleted_with_all_its_owners_and_kept_if_one_was_orphaned() {
        let outcomes: OwnerOutcomes =
            [("d".to_owned(), OwnerOutcome::Deleted), ("o".to_owned(), OwnerOutcome::Orphaned)].into();
        let keep = |uids: &[&str]| {
            Ok(Some(DependentAction::SetOwners(uids.iter().map(|uid| reference(uid)).collect())))
        };
        let deleted = Ok(Some(DependentAction::Delete("Background")));
        let rows: [Row<'_>; 8] = [
            (&["d"], &[], deleted.clone()),
            (&["o"], &[], keep(&[])),
            (&["d", "o"], &[], keep(&[])),
            (&["d", "s"], &[("s", OwnerState::Solid)], keep(&["s"])),
            (&["o", "s"], &[("s", OwnerState::Solid)], keep(&["s"])),
            (&["d", "a"], &[("a", OwnerState::Absent)], deleted),
            (&["d", "u"], &[("u", OwnerState::Unknown)], Err(UnknownOwnerState)),
            (&["d", "s", "u"], &[("s", OwnerState::Solid), ("u", OwnerState::Unknown)], keep(&["s", "u"])),
        ];
        for (owners, others, want) in rows {
            let states = others.iter().map(|(uid, owner)| (reference(uid), *owner)).collect();
            assert_eq!(action(&object(owners), &outcomes, states), want, "{owners:?}");
        }
    }
}
