//! Validation of node selectors: terms over labels and the name of a node.

use portico_machinery::{Cursor, names};

use super::checks;
use crate::Errors;

const VALUES_REQUIRED: &str = "must be specified when `operator` is 'In' or 'NotIn'";
const VALUES_FORBIDDEN: &str = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";

/// Validates a node selector, which needs at least one term.
pub fn validate(selector: &Cursor<'_>, errors: &mut Errors) {
    let terms = selector.field("nodeSelectorTerms");
    if terms.is_empty() {
        errors.push(terms.required("must have at least one node selector term"));
    }
    terms.items().for_each(|term| validate_term(&term, true, errors));
}

/// Validates one term. The values of a preferred term are not validated, they cause warnings.
pub fn validate_term(term: &Cursor<'_>, validate_values: bool, errors: &mut Errors) {
    for requirement in term.field("matchExpressions").items() {
        node_requirement(&requirement, validate_values, errors);
    }
    for requirement in term.field("matchFields").items() {
        node_field(&requirement, errors);
    }
}

fn node_requirement(requirement: &Cursor<'_>, validate_values: bool, errors: &mut Errors) {
    let (operator, values) = (requirement.field("operator"), requirement.field("values"));
    match operator.str() {
        "In" | "NotIn" if values.is_empty() => errors.push(values.required(VALUES_REQUIRED)),
        "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(values.forbidden(VALUES_FORBIDDEN)),
        "Gt" | "Lt" if values.len() != 1 => {
            errors.push(values.required("must be specified single value when `operator` is 'Lt' or 'Gt'"));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        _ => errors.push(operator.invalid("not a valid selector operator")),
    }
    checks::matches_rule(&requirement.field("key"), names::qualified_name, errors);
    if validate_values {
        values.items().for_each(|value| checks::matches_rule(&value, names::label_value, errors));
    }
}

fn node_field(requirement: &Cursor<'_>, errors: &mut Errors) {
    let (key, operator) = (requirement.field("key"), requirement.field("operator"));
    let values = requirement.field("values");
    match operator.str() {
        "In" | "NotIn" if values.len() != 1 => {
            errors.push(values.required(
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
            ))
        }
        "In" | "NotIn" => {}
        _ => errors.push(operator.invalid("not a valid selector operator")),
    }
    if key.str() != "metadata.name" {
        errors.push(key.invalid("not a valid field selector key"));
        return;
    }
    values.items().for_each(|value| checks::matches_rule(&value, names::dns1123_subdomain, errors));
}
