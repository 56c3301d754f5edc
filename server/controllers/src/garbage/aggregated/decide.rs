//! Decides about a dependent on another API server. Pure.

use portico_machinery::object::OwnerReference;
use portico_registry::Propagation;

use super::super::decide::{self, Dependent, Owner, Verdict};
use super::{Action, ForeignObject, Outcome, Outcomes};

/// Returns the action, or `None` if the dependent stays unchanged. `others` are its owners without an outcome, each
/// with its state.
///
/// # Errors
/// Returns [`Undecided`] while the state of an owner is unknown.
pub fn action(
    object: &ForeignObject,
    outcomes: &Outcomes,
    others: Vec<(OwnerReference, Owner)>,
) -> Result<Option<Action>, Undecided> {
    let outcome = |owner: &OwnerReference| outcomes.get(&owner.uid).copied();
    let orphaned = object.owners.iter().any(|owner| outcome(owner) == Some(Outcome::Orphaned));
    let gone = object.owners.iter().filter(|o| outcome(o) == Some(Outcome::Deleted));
    let owners: Vec<_> = gone.map(|owner| (owner.clone(), Owner::Absent)).chain(others).collect();
    let keep = |gone: &[String]| {
        let stays = |o: &&OwnerReference| outcome(o) != Some(Outcome::Orphaned) && !gone.contains(&o.uid);
        Action::Keep(object.owners.iter().filter(stays).cloned().collect())
    };
    let finalizers = object.finalizers.iter().map(String::as_str).collect();
    let dependent = Dependent { owners, finalizers, has_dependents: false, waited_on: false };
    let absent = || dependent.owners.iter().filter(|o| o.1 == Owner::Absent).map(|o| o.0.uid.clone());
    Ok(match decide::decide(&dependent) {
        Verdict::Later => return Err(Undecided),
        Verdict::Keep => orphaned.then(|| keep(&[])),
        Verdict::Release(uids) => Some(keep(&uids)),
        // An owner was orphaned: the dependent stays, without owners.
        Verdict::Delete { .. } if orphaned => Some(keep(&absent().collect::<Vec<_>>())),
        Verdict::Delete { propagation, .. } => Some(Action::Delete(match propagation {
            Propagation::Orphan => "Orphan",
            Propagation::Foreground => "Foreground",
            Propagation::Background => "Background",
        })),
    })
}

/// Error: the state of an owner is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undecided;

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
    type Row<'a> = (&'a [&'a str], &'a [(&'a str, Owner)], Result<Option<Action>, Undecided>);

    #[test]
    fn a_dependent_goes_when_all_its_owners_went_and_stays_when_one_let_it() {
        let outcomes: Outcomes =
            [("d".to_owned(), Outcome::Deleted), ("o".to_owned(), Outcome::Orphaned)].into();
        let keep = |uids: &[&str]| Ok(Some(Action::Keep(uids.iter().map(|uid| reference(uid)).collect())));
        let deleted = Ok(Some(Action::Delete("Background")));
        let rows: [Row<'_>; 8] = [
            (&["d"], &[], deleted.clone()),
            (&["o"], &[], keep(&[])),
            (&["d", "o"], &[], keep(&[])),
            (&["d", "s"], &[("s", Owner::Solid)], keep(&["s"])),
            (&["o", "s"], &[("s", Owner::Solid)], keep(&["s"])),
            (&["d", "a"], &[("a", Owner::Absent)], deleted),
            (&["d", "u"], &[("u", Owner::Unknown)], Err(Undecided)),
            (&["d", "s", "u"], &[("s", Owner::Solid), ("u", Owner::Unknown)], keep(&["s", "u"])),
        ];
        for (owners, others, want) in rows {
            let known = others.iter().map(|(uid, owner)| (reference(uid), *owner)).collect();
            assert_eq!(action(&object(owners), &outcomes, known), want, "{owners:?}");
        }
    }
}
