//! Tolerations, as pods and runtime classes have them.

use portico_machinery::{Cursor, names};

use super::checks;
use crate::strategies::Errors;

const EMPTY_KEY: &str =
    "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";

/// A list of tolerations.
pub(crate) fn tolerations(list: &Cursor<'_>, errors: &mut Errors) {
    for toleration in list.items() {
        one(&toleration, errors);
    }
}

fn one(toleration: &Cursor<'_>, errors: &mut Errors) {
    let [key, operator, value, effect] =
        ["key", "operator", "value", "effect"].map(|field| toleration.field(field));
    checks::optional(&key, names::qualified_name, errors);
    if key.str().is_empty() && operator.str() != "Exists" {
        errors.push(operator.invalid(EMPTY_KEY));
    }
    if toleration.field("tolerationSeconds").is_present() && effect.str() != "NoExecute" {
        errors.push(effect.invalid("effect must be 'NoExecute' when `tolerationSeconds` is set"));
    }
    match operator.str() {
        "Equal" | "" => checks::follows(&value, names::label_value, errors),
        "Exists" if !value.str().is_empty() => {
            errors.push(operator.invalid("value must be empty when `operator` is 'Exists'"));
        }
        "Exists" => {}
        _ => errors.push(operator.not_supported(&["Equal", "Exists"])),
    }
    if !effect.str().is_empty() {
        checks::one_of(&effect, &["NoSchedule", "PreferNoSchedule", "NoExecute"], errors);
    }
}
