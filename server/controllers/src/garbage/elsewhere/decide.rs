//! What becomes of a dependent that another API server holds, pure.

use portico_machinery::object::OwnerReference;
use portico_registry::Propagation;

use super::super::decide::{self, Dependent, Owner, Verdict};
use super::{Deed, Fate, Fates, ForeignObject};

/// What is to be done, or nothing; an error while an owner's fate is not known. `others` are those of its owners that are
/// not among the fates, each with what is known of it.
///
/// # Errors
/// Nobody can tell yet.
pub fn deed(
    object: &ForeignObject,
    fates: &Fates,
    others: Vec<(OwnerReference, Owner)>,
) -> Result<Option<Deed>, Undecided> {
    let fate = |owner: &OwnerReference| fates.get(&owner.uid).copied();
    let orphaned = object.owners.iter().any(|owner| fate(owner) == Some(Fate::Orphaned));
    let gone = object.owners.iter().filter(|o| fate(o) == Some(Fate::Deleted));
    let owners: Vec<_> = gone.map(|owner| (owner.clone(), Owner::Absent)).chain(others).collect();
    let keep = |gone: &[String]| {
        let stays = |o: &&OwnerReference| fate(o) != Some(Fate::Orphaned) && !gone.contains(&o.uid);
        Deed::Keep(object.owners.iter().filter(stays).cloned().collect())
    };
    let finalizers = object.finalizers.iter().map(String::as_str).collect();
    let dependent = Dependent { owners, finalizers, has_dependents: false, waited_on: false };
    let absent = || dependent.owners.iter().filter(|o| o.1 == Owner::Absent).map(|o| o.0.uid.clone());
    Ok(match decide::decide(&dependent) {
        Verdict::Later => return Err(Undecided),
        Verdict::Keep => orphaned.then(|| keep(&[])),
        Verdict::Release(uids) => Some(keep(&uids)),
        // Somebody wanted it to stay: it does, without owners.
        Verdict::Delete { .. } if orphaned => Some(keep(&absent().collect::<Vec<_>>())),
        Verdict::Delete { propagation, .. } => Some(Deed::Delete(match propagation {
            Propagation::Orphan => "Orphan",
            Propagation::Foreground => "Foreground",
            Propagation::Background => "Background",
        })),
    })
}

/// An owner's fate is not known.
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

    /// Its owners' uids, what is known of those that have no fate, and what follows.
    type Row<'a> = (&'a [&'a str], &'a [(&'a str, Owner)], Result<Option<Deed>, Undecided>);

    #[test]
    fn a_dependent_goes_when_all_its_owners_went_and_stays_when_one_let_it() {
        let fates: Fates = [("d".to_owned(), Fate::Deleted), ("o".to_owned(), Fate::Orphaned)].into();
        let keep = |uids: &[&str]| Ok(Some(Deed::Keep(uids.iter().map(|uid| reference(uid)).collect())));
        let deleted = Ok(Some(Deed::Delete("Background")));
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
            assert_eq!(deed(&object(owners), &fates, known), want, "{owners:?}");
        }
    }
}
