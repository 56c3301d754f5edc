//! Condition Established: a definition is established once its names are accepted, unless the CA bundle of its conversion
//! webhook is invalid.
//!
//! With several servers, upstream delays this for the slowest of their caches. Here a write is visible on all servers when
//! it is acknowledged.

use portico_registry::condition::Condition;

use super::definition::Definition;
use portico_registry::definition::{ESTABLISHED, NAMES_ACCEPTED};

/// Returns the condition to write; `None` if it is up to date, or if the names are not yet accepted.
#[must_use]
pub fn decide(definition: &Definition) -> Option<Condition> {
    if !definition.has_true_condition(NAMES_ACCEPTED) || definition.has_true_condition(ESTABLISHED) {
        return None;
    }
    let reported = if definition.has_sound_ca_bundle {
        Condition::new(ESTABLISHED, "True", "InitialNamesAccepted", "the initial names have been accepted")
    } else {
        Condition::new(ESTABLISHED, "False", "InvalidCABundle", "The conversion webhook CABundle is invalid")
    };
    (!definition.has_condition(&reported)).then_some(reported)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(names_accepted: &str, established: &str, has_sound_ca_bundle: bool) -> Option<String> {
        let conditions = vec![
            Condition::new(NAMES_ACCEPTED, names_accepted, "R", "m"),
            Condition::new(ESTABLISHED, established, "Installing", "m"),
        ];
        let definition = Definition { conditions, has_sound_ca_bundle, ..Definition::default() };
        decide(&definition).map(|reported| format!("{} {}", reported.status, reported.reason))
    }

    #[test]
    fn a_definition_with_accepted_names_is_established_permanently() {
        assert_eq!(decided("True", "False", true).as_deref(), Some("True InitialNamesAccepted"));
        assert_eq!(decided("True", "True", true), None);
        assert_eq!(decided("True", "True", false), None);
        assert_eq!(decided("False", "False", true), None);
        assert_eq!(decide(&Definition { has_sound_ca_bundle: true, ..Definition::default() }), None);
    }

    #[test]
    fn an_invalid_ca_bundle_is_reported_once() {
        assert_eq!(decided("True", "False", false).as_deref(), Some("False InvalidCABundle"));
        let names = Condition::new(NAMES_ACCEPTED, "True", "R", "m");
        let mut definition = Definition { conditions: vec![names], ..Definition::default() };
        definition.conditions.push(decide(&definition).unwrap());
        assert_eq!(decide(&definition), None);
    }
}
