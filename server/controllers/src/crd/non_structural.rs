//! Whether the schemas of a definition are structural (condition NonStructuralSchema). New ones always are; the condition is
//! for what was stored before it was asked of all.

use portico_machinery::Object;
use portico_registry::condition::Condition;

use super::NON_STRUCTURAL;
use super::definition::{Definition, condition};

/// What is to be done about the condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is to say this.
    Set(Condition),
    /// It is to go.
    Remove,
}

/// Nothing when it says, or is absent, as it should.
#[must_use]
pub fn judge(definition: &Definition) -> Option<Change> {
    match &definition.violations {
        None => definition.condition(NON_STRUCTURAL).map(|_| Change::Remove),
        Some(violations) => {
            let told = condition(NON_STRUCTURAL, "True", "Violations", violations);
            (!definition.says(&told)).then_some(Change::Set(told))
        }
    }
}

/// What is not structural, as one text.
pub(super) fn violations(object: &Object) -> Option<String> {
    let preserves = object.at(&["spec", "preserveUnknownFields"]);
    let mut errors: Vec<String> = Vec::new();
    if preserves.bool() {
        errors.push(preserves.invalid("must be false").to_string());
    }
    match errors.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violations_are_told_once_and_the_condition_goes_with_them() {
        let preserving = Object::from_json(br#"{"spec":{"preserveUnknownFields":true}}"#).unwrap();
        let mut definition = Definition { violations: violations(&preserving), ..Definition::default() };
        let Some(Change::Set(told)) = judge(&definition) else { panic!() };
        assert_eq!((told.status.as_str(), told.reason.as_str()), ("True", "Violations"));
        assert_eq!(told.message, "spec.preserveUnknownFields: Invalid value: true: must be false");
        definition.conditions.push(told);
        assert_eq!(judge(&definition), None);
        definition.violations = None;
        assert_eq!(judge(&definition), Some(Change::Remove));
        definition.conditions.clear();
        assert_eq!(judge(&definition), None);
    }
}
