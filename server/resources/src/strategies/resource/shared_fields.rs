//! Validation of fields that classes, claims and slices share: selectors, configuration, tolerations, taints and binding
//! conditions.

use std::collections::HashSet;

use portico_machinery::field::Error;
use portico_machinery::{Cursor, names};

use super::{naming, selector};
use portico_validation::Errors;
use portico_validation::checks;

/// Maximum number of selectors, constraints, requests or configurations.
pub(super) const LIST_MAX: usize = 32;
const EXPRESSION_MAX: usize = 10_240;
const PARAMETERS_MAX: usize = 10_240;
const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];

/// Validates device selectors. An expression that is too long is not compiled.
pub(super) fn validate_selectors(list: &Cursor<'_>, errors: &mut Errors) {
    if !checks::max_items(list, LIST_MAX, errors) {
        return;
    }
    for selector in list.items() {
        let cel = selector.field("cel");
        if cel.is_present() {
            let expression = cel.field("expression");
            if expression.str().len() > EXPRESSION_MAX {
                errors.push(Error::too_long(&expression.path(), EXPRESSION_MAX));
            } else {
                selector::compile(&expression, errors);
            }
        } else {
            errors.push(cel.required(""));
        }
    }
}

/// Validates configuration that only a driver interprets.
pub(super) fn validate_opaque(holder: &Cursor<'_>, errors: &mut Errors) {
    let opaque = holder.field("opaque");
    if !opaque.is_present() {
        errors.push(opaque.required(""));
        return;
    }
    naming::validate_driver(&opaque.field("driver"), errors);
    validate_raw(&opaque.field("parameters"), true, errors);
}

/// Validates an object that is stored verbatim.
pub(super) fn validate_raw(at: &Cursor<'_>, required: bool, errors: &mut Errors) {
    if !at.is_present() {
        if required {
            errors.push(at.required(""));
        }
        return;
    }
    let printed = at.printed();
    if printed.len() > PARAMETERS_MAX {
        errors.push(Error::too_long(&at.path(), PARAMETERS_MAX));
    } else if !printed.starts_with('{') {
        errors.push(Error::invalid_printed(&at.path(), "\"<value omitted>\"", "must be a valid JSON object"));
    }
}

/// Validates tolerations of device taints.
pub(super) fn validate_tolerations(list: &Cursor<'_>, errors: &mut Errors) {
    for toleration in list.items() {
        let [key, operator, value, effect] =
            ["key", "operator", "value", "effect"].map(|field| toleration.field(field));
        checks::optional(&key, names::qualified_name, errors);
        match operator.str() {
            "Exists" if !value.str().is_empty() => {
                errors.push(value.invalid("must be empty for operator `Exists`"));
            }
            "Exists" => {}
            "Equal" => checks::matches_rule(&value, names::label_value, errors),
            "" => errors.push(operator.required("")),
            _ => errors.push(operator.not_supported(&["Equal", "Exists"])),
        }
        if !effect.str().is_empty() {
            checks::one_of(&effect, &EFFECTS, errors);
        }
    }
}

/// Validates a device taint.
pub(super) fn validate_taint(taint: &Cursor<'_>, errors: &mut Errors) {
    let effect = taint.field("effect");
    checks::matches_rule(&taint.field("key"), names::qualified_name, errors);
    checks::matches_rule(&taint.field("value"), names::label_value, errors);
    match effect.str() {
        "" => errors.push(effect.required("")),
        _ => checks::one_of(&effect, &EFFECTS, errors),
    }
}

/// Validates the conditions that must be true before a pod is bound, and the conditions that end the wait.
pub(super) fn validate_binding_conditions(holder: &Cursor<'_>, errors: &mut Errors) {
    const CONDITIONS_MAX: usize = 4;
    let [conditions, failures] =
        ["bindingConditions", "bindingFailureConditions"].map(|field| holder.field(field));
    let condition_names: Vec<&str> = conditions.items().map(|condition| condition.str()).collect();
    for list in [&conditions, &failures] {
        if checks::max_items(list, CONDITIONS_MAX, errors) {
            list.items()
                .for_each(|condition| checks::matches_rule(&condition, names::qualified_name, errors));
        }
        let mut seen = HashSet::new();
        list.items().for_each(|condition| checks::unique(&mut seen, &condition, errors));
    }
    for failure in failures.items().filter(|failure| condition_names.contains(&failure.str())) {
        errors.push(failure.invalid("bindingFailureConditions must not overlap with bindingConditions"));
    }
    let text = |missing: &str, used: &str| format!("{missing} are required to use {used}");
    if !conditions.is_empty() && failures.is_empty() {
        let text = text("bindingFailureConditions", "bindingConditions");
        errors.push(Error::invalid_printed(&failures.path(), "null", &text));
    }
    if conditions.is_empty() && !failures.is_empty() {
        let text = text("bindingConditions", "bindingFailureConditions");
        errors.push(Error::invalid_printed(&conditions.path(), "null", &text));
    }
}
