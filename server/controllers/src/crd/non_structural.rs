//! Condition NonStructuralSchema. New schemas are always structural; the condition applies to definitions stored before that
//! was required.

use portico_registry::condition::Condition;
use portico_registry::definition::Structure;

use super::condition_types::NON_STRUCTURAL;
use super::definition::Definition;

/// Change of the condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NonStructuralChange {
    Set(Condition),
    Remove,
}

/// Returns the change; `None` if the condition is up to date.
#[must_use]
pub fn decide(definition: &Definition) -> Option<NonStructuralChange> {
    let reported = match &definition.structure {
        Structure::Sound => return definition.condition(NON_STRUCTURAL).map(|_| NonStructuralChange::Remove),
        Structure::Violated(why) => Condition::new(NON_STRUCTURAL, "True", "Violations", why),
        Structure::Unreadable(why) => Condition::new(NON_STRUCTURAL, "Unknown", "StructuralError", why),
    };
    (!definition.has_condition(&reported)).then_some(NonStructuralChange::Set(reported))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violations_are_reported_once_and_the_condition_goes_with_them() {
        let structure = Structure::Violated("spec: Invalid value".into());
        let mut definition = Definition { structure, ..Definition::default() };
        let Some(NonStructuralChange::Set(reported)) = decide(&definition) else { panic!() };
        assert_eq!((reported.status.as_str(), reported.reason.as_str()), ("True", "Violations"));
        assert_eq!(reported.message, "spec: Invalid value");
        definition.conditions.push(reported);
        assert_eq!(decide(&definition), None);
        definition.structure = Structure::Unreadable("odd".into());
        assert!(
            matches!(decide(&definition), Some(NonStructuralChange::Set(reported)) if reported.status == "Unknown")
        );
        definition.structure = Structure::Sound;
        assert_eq!(decide(&definition), Some(NonStructuralChange::Remove));
        definition.conditions.clear();
        assert_eq!(decide(&definition), None);
    }
}
