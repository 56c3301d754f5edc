//! Validation of tolerations, for pods and runtime classes.

use portico_machinery::field::Error;
use portico_machinery::{Cursor, names};

use super::checks;
use crate::Errors;

const EMPTY_KEY: &str =
    "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";

/// Validates a list of tolerations.
pub fn tolerations(list: &Cursor<'_>, errors: &mut Errors) {
    for toleration in list.items() {
        validate_toleration(&toleration, errors);
    }
}

fn validate_toleration(toleration: &Cursor<'_>, errors: &mut Errors) {
    let [key, operator, value, effect] =
        ["key", "operator", "value", "effect"].map(|field| toleration.field(field));
    checks::optional(&key, names::qualified_name, errors);
    if key.str().is_empty() && operator.str() != "Exists" {
        errors.push(operator.invalid_text(EMPTY_KEY));
    }
    if toleration.field("tolerationSeconds").is_present() && effect.str() != "NoExecute" {
        errors.push(effect.invalid_text("effect must be 'NoExecute' when `tolerationSeconds` is set"));
    }
    match operator.str() {
        "Equal" | "" => {
            // Upstream reports an invalid value at the path of the operator.
            let diagnostics = names::label_value(value.str());
            if !diagnostics.is_empty() {
                errors.push(Error::invalid(&operator.path(), value.str(), &diagnostics.join(";")));
            }
        }
        "Exists" if !value.str().is_empty() => {
            let text = "value must be empty when `operator` is 'Exists'";
            errors.push(Error::invalid(&operator.path(), value.str(), text));
        }
        "Exists" => {}
        // Operators of a feature that is off by default.
        "Lt" | "Gt" => errors.push(operator.not_supported(&["Equal", "Exists", "Lt", "Gt"])),
        _ => errors.push(operator.not_supported(&["Equal", "Exists"])),
    }
    if !effect.str().is_empty() {
        checks::one_of(&effect, &["NoSchedule", "PreferNoSchedule", "NoExecute"], errors);
    }
}
