//! Decides about an object with owners (upstream's garbage collector). Pure.

use portico_machinery::object::OwnerReference;
use portico_registry::Propagation;

/// State of the owner that a reference names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The owner exists.
    Solid,
    /// The owner exists and is deleted after its dependents (foreground deletion).
    Waiting,
    /// No object with this kind, name and UID exists.
    Absent,
    /// Unknown: the kind is not served here, or its server does not respond.
    Unknown,
}

/// Action for a dependent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Keep,
    /// Decide later: the state of an owner is unknown.
    Later,
    /// Remove the owner references with these UIDs and keep the object.
    Release(Vec<String>),
    /// Delete the object.
    Delete {
        /// Propagation policy for the object's own dependents.
        propagation: Propagation,
        /// True if `blockOwnerDeletion` must be cleared first, because of a cycle of objects that wait for each other.
        unblock: bool,
    },
}

/// A dependent, with the facts that decide about its deletion.
#[derive(Clone, Debug)]
pub struct Dependent<'a> {
    /// Owner references with the state of each owner.
    pub owners: Vec<(OwnerReference, Owner)>,
    pub finalizers: Vec<&'a str>,
    /// True if the object has dependents.
    pub has_dependents: bool,
    /// True if one of these dependents waits for its own dependents: there may be a cycle.
    pub waited_on: bool,
}

/// Finalizer of foreground deletion.
pub const FOREGROUND: &str = "foregroundDeletion";
/// Finalizer of orphaning.
pub const ORPHAN: &str = "orphan";

/// Decides about a dependent.
#[must_use]
pub fn decide(dependent: &Dependent<'_>) -> Verdict {
    let is = |wanted: Owner| move |owner: &&(OwnerReference, Owner)| owner.1 == wanted;
    let count = |wanted| dependent.owners.iter().filter(is(wanted)).count();
    if dependent.owners.is_empty() {
        return Verdict::Keep;
    }
    let (solid, waiting, unknown) = (count(Owner::Solid), count(Owner::Waiting), count(Owner::Unknown));
    if solid > 0 {
        let gone = dependent.owners.iter().filter(|o| matches!(o.1, Owner::Absent | Owner::Waiting));
        let uids: Vec<String> = gone.map(|o| o.0.uid.clone()).collect();
        return if uids.is_empty() { Verdict::Keep } else { Verdict::Release(uids) };
    }
    if unknown > 0 {
        return Verdict::Later;
    }
    if waiting > 0 && dependent.has_dependents {
        return Verdict::Delete { propagation: Propagation::Foreground, unblock: dependent.waited_on };
    }
    let has = |finalizer: &str| dependent.finalizers.contains(&finalizer);
    let propagation = match () {
        () if has(ORPHAN) => Propagation::Orphan,
        () if has(FOREGROUND) => Propagation::Foreground,
        () => Propagation::Background,
    };
    Verdict::Delete { propagation, unblock: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dependent(owners: &[(&str, Owner)]) -> Dependent<'static> {
        let owner = |(uid, state): &(&str, Owner)| {
            (OwnerReference { uid: (*uid).to_owned(), ..OwnerReference::default() }, *state)
        };
        Dependent {
            owners: owners.iter().map(owner).collect(),
            finalizers: Vec::new(),
            has_dependents: false,
            waited_on: false,
        }
    }

    const BACKGROUND: Verdict = Verdict::Delete { propagation: Propagation::Background, unblock: false };

    #[test]
    fn a_dependent_goes_when_no_owner_is_left_and_loses_those_that_are_gone() {
        use Owner::{Absent, Solid, Unknown, Waiting};
        let release = |uids: &[&str]| Verdict::Release(uids.iter().map(|u| (*u).to_owned()).collect());
        let rows: [(&[(&str, Owner)], Verdict); 9] = [
            (&[], Verdict::Keep),
            (&[("a", Solid)], Verdict::Keep),
            (&[("a", Absent)], BACKGROUND),
            (&[("a", Absent), ("b", Absent)], BACKGROUND),
            (&[("a", Solid), ("b", Absent)], release(&["b"])),
            (&[("a", Solid), ("b", Waiting)], release(&["b"])),
            (&[("a", Waiting)], BACKGROUND),
            (&[("a", Absent), ("b", Unknown)], Verdict::Later),
            (&[("a", Solid), ("b", Unknown)], Verdict::Keep),
        ];
        for (owners, want) in rows {
            assert_eq!(decide(&dependent(owners)), want, "{owners:?}");
        }
    }

    #[test]
    fn under_a_waiting_owner_dependents_of_dependents_go_first() {
        let mut middle = Dependent { has_dependents: true, ..dependent(&[("a", Owner::Waiting)]) };
        let foreground = |unblock| Verdict::Delete { propagation: Propagation::Foreground, unblock };
        assert_eq!(decide(&middle), foreground(false));
        middle.waited_on = true;
        assert_eq!(decide(&middle), foreground(true));
    }

    #[test]
    fn finalizers_that_are_there_already_decide_the_policy() {
        for (finalizer, propagation) in [(ORPHAN, Propagation::Orphan), (FOREGROUND, Propagation::Foreground)]
        {
            let with = Dependent { finalizers: vec![finalizer], ..dependent(&[("a", Owner::Absent)]) };
            assert_eq!(decide(&with), Verdict::Delete { propagation, unblock: false });
        }
    }
}
