//! Decides about an object with owners (upstream's garbage collector). Pure.

use portico_machinery::object::OwnerReference;
use portico_registry::Propagation;

/// State of the owner that a reference names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerState {
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
pub enum DependentVerdict {
    Keep,
    /// Decide later: the state of an owner is unknown.
    Defer,
    /// Remove the owner references with these UIDs and keep the object.
    RemoveOwners(Vec<String>),
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
    pub owners: Vec<(OwnerReference, OwnerState)>,
    pub finalizers: Vec<&'a str>,
    /// True if the object has dependents.
    pub has_dependents: bool,
    /// True if one of these dependents waits for its own dependents: there may be a cycle.
    pub has_waiting_dependent: bool,
}

/// Finalizer of foreground deletion.
pub const FOREGROUND: &str = "foregroundDeletion";
/// Finalizer of orphaning.
pub const ORPHAN: &str = "orphan";

/// Decides about a dependent.
#[must_use]
pub fn decide(dependent: &Dependent<'_>) -> DependentVerdict {
    let has_state = |wanted: OwnerState| move |owner: &&(OwnerReference, OwnerState)| owner.1 == wanted;
    let count = |wanted| dependent.owners.iter().filter(has_state(wanted)).count();
    if dependent.owners.is_empty() {
        return DependentVerdict::Keep;
    }
    let (solid, waiting, unknown) =
        (count(OwnerState::Solid), count(OwnerState::Waiting), count(OwnerState::Unknown));
    if solid > 0 {
        let deleted =
            dependent.owners.iter().filter(|o| matches!(o.1, OwnerState::Absent | OwnerState::Waiting));
        let uids: Vec<String> = deleted.map(|o| o.0.uid.clone()).collect();
        return if uids.is_empty() { DependentVerdict::Keep } else { DependentVerdict::RemoveOwners(uids) };
    }
    if unknown > 0 {
        return DependentVerdict::Defer;
    }
    if waiting > 0 && dependent.has_dependents {
        return DependentVerdict::Delete {
            propagation: Propagation::Foreground,
            unblock: dependent.has_waiting_dependent,
        };
    }
    let has = |finalizer: &str| dependent.finalizers.contains(&finalizer);
    let propagation = match () {
        () if has(ORPHAN) => Propagation::Orphan,
        () if has(FOREGROUND) => Propagation::Foreground,
        () => Propagation::Background,
    };
    DependentVerdict::Delete { propagation, unblock: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dependent(owners: &[(&str, OwnerState)]) -> Dependent<'static> {
        let owner = |(uid, state): &(&str, OwnerState)| {
            (OwnerReference { uid: (*uid).to_owned(), ..OwnerReference::default() }, *state)
        };
        Dependent {
            owners: owners.iter().map(owner).collect(),
            finalizers: Vec::new(),
            has_dependents: false,
            has_waiting_dependent: false,
        }
    }

    const BACKGROUND: DependentVerdict =
        DependentVerdict::Delete { propagation: Propagation::Background, unblock: false };

    #[test]
    fn a_dependent_is_deleted_with_its_last_owner_and_loses_references_to_deleted_owners() {
        use OwnerState::{Absent, Solid, Unknown, Waiting};
        let release =
            |uids: &[&str]| DependentVerdict::RemoveOwners(uids.iter().map(|u| (*u).to_owned()).collect());
        let rows: [(&[(&str, OwnerState)], DependentVerdict); 9] = [
            (&[], DependentVerdict::Keep),
            (&[("a", Solid)], DependentVerdict::Keep),
            (&[("a", Absent)], BACKGROUND),
            (&[("a", Absent), ("b", Absent)], BACKGROUND),
            (&[("a", Solid), ("b", Absent)], release(&["b"])),
            (&[("a", Solid), ("b", Waiting)], release(&["b"])),
            (&[("a", Waiting)], BACKGROUND),
            (&[("a", Absent), ("b", Unknown)], DependentVerdict::Defer),
            (&[("a", Solid), ("b", Unknown)], DependentVerdict::Keep),
        ];
        for (owners, want) in rows {
            assert_eq!(decide(&dependent(owners)), want, "{owners:?}");
        }
    }

    #[test]
    fn dependents_of_dependents_are_deleted_first_under_a_waiting_owner() {
        let mut middle = Dependent { has_dependents: true, ..dependent(&[("a", OwnerState::Waiting)]) };
        let foreground = |unblock| DependentVerdict::Delete { propagation: Propagation::Foreground, unblock };
        assert_eq!(decide(&middle), foreground(false));
        middle.has_waiting_dependent = true;
        assert_eq!(decide(&middle), foreground(true));
    }

    #[test]
    fn existing_finalizers_decide_the_propagation_policy() {
        for (finalizer, propagation) in [(ORPHAN, Propagation::Orphan), (FOREGROUND, Propagation::Foreground)]
        {
            let with = Dependent { finalizers: vec![finalizer], ..dependent(&[("a", OwnerState::Absent)]) };
            assert_eq!(decide(&with), DependentVerdict::Delete { propagation, unblock: false });
        }
    }
}
