//! Combines the conditions of all deciders into one change of a definition's status.

use jiff::Timestamp;
use portico_machinery::Object;
use portico_registry::DefinitionNames;
use portico_registry::condition::{self, Condition};

use super::condition_types::NON_STRUCTURAL;
use super::definition::Definition;
use super::naming::NamesInUse;
use super::non_structural::NonStructuralChange;
use super::{approval, establishing, naming, non_structural};

/// Change of a definition's status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusChange {
    /// `status.acceptedNames`, if they change.
    pub accepted_names: Option<DefinitionNames>,
    /// Conditions to set, in this order.
    pub conditions: Vec<Condition>,
    /// True if NonStructuralSchema must be removed.
    pub is_structural_again: bool,
}

/// Decides the status of a definition; `None` if it is up to date. Pure.
#[must_use]
pub fn decide(definition: &Definition, in_use: &NamesInUse) -> Option<StatusChange> {
    let mut verdict = StatusChange::default();
    match naming::decide(definition, in_use) {
        Some(decision) => {
            verdict.accepted_names = Some(decision.accepted);
            verdict.conditions.extend(decision.conditions);
        }
        // Established is written separately, so that watchers see the definition as installing first.
        None => verdict.conditions.extend(establishing::decide(definition)),
    }
    verdict.conditions.extend(approval::decide(definition));
    match non_structural::decide(definition) {
        Some(NonStructuralChange::Set(reported)) => verdict.conditions.push(reported),
        Some(NonStructuralChange::Remove) => verdict.is_structural_again = true,
        None => {}
    }
    (verdict != StatusChange::default()).then_some(verdict)
}

impl StatusChange {
    /// Applies the change to the object's status.
    pub fn apply(self, object: &mut Object, now: Timestamp) {
        if let Some(accepted) = self.accepted_names {
            object.set(&["status", "acceptedNames"], accepted);
        }
        for condition in self.conditions {
            condition::set(object, condition, now);
        }
        if self.is_structural_again {
            condition::remove(object, NON_STRUCTURAL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the conditions after each write, until the status is up to date.
    fn writes(object: &mut Object) -> Vec<Vec<String>> {
        let mut writes = Vec::new();
        while let Some(verdict) = decide(&Definition::from_object(object), &NamesInUse::default()) {
            verdict.apply(object, Timestamp::UNIX_EPOCH);
            let conditions = object.at(&["status", "conditions"]);
            let reported = |c: portico_machinery::object::Cursor<'_>| {
                format!("{}={}/{}", c.field("type").str(), c.field("status").str(), c.field("reason").str())
            };
            writes.push(conditions.items().map(reported).collect());
        }
        writes
    }

    fn definition(group: &str, more: &str) -> Object {
        let names = r#""plural":"bolts","singular":"bolt","kind":"Bolt","listKind":"BoltList""#;
        let spec = format!(r#"{{"group":"{group}","names":{{{names}}}{more}}}"#);
        Object::from_json(format!(r#"{{"metadata":{{"uid":"u","generation":1}},"spec":{spec}}}"#).as_bytes())
            .unwrap()
    }

    #[test]
    fn a_definition_is_installing_then_established_and_then_left_alone() {
        let mut object = definition("example.com", "");
        let (names, installing) = ("NamesAccepted=True/NoConflicts", "Established=False/Installing");
        let established = "Established=True/InitialNamesAccepted";
        assert_eq!(writes(&mut object), [vec![names, installing], vec![names, established]]);
        assert_eq!(object.at(&["status", "acceptedNames", "listKind"]).str(), "BoltList");
    }

    #[test]
    fn the_approval_of_a_protected_group_is_reported_in_the_first_write() {
        let mut object = definition("example.k8s.io", "");
        let writes = writes(&mut object);
        assert_eq!((writes.len(), writes[0].len()), (2, 3));
        assert_eq!(writes[0][2], "KubernetesAPIApprovalPolicyConformant=False/MissingAnnotation");
    }

    #[test]
    fn a_bad_bundle_is_reported_until_it_is_replaced() {
        let conversion = r#","conversion":{"webhook":{"clientConfig":{"caBundle":"bm8="}}}"#;
        let mut object = definition("example.com", conversion);
        assert_eq!(writes(&mut object).last().unwrap()[1], "Established=False/InvalidCABundle");
        object.remove(&["spec", "conversion"]);
        assert_eq!(writes(&mut object).last().unwrap()[1], "Established=True/InitialNamesAccepted");
    }

    #[test]
    fn the_observed_generation_that_clients_write_stays() {
        let mut object = definition("example.com", "");
        writes(&mut object);
        object.edit_each(&["status", "conditions"], |condition| condition.set(&["observedGeneration"], 7));
        object.set(&["spec", "names", "singular"], "other");
        writes(&mut object);
        let all = object.at(&["status", "conditions"]);
        assert!(all.items().all(|condition| condition.field("observedGeneration").i64() == Some(7)));
    }
}
