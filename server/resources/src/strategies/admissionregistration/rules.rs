//! Validation of rules: operations and resources that a webhook or policy handles.

use std::collections::HashSet;

use portico_machinery::{Cursor, names};

use portico_validation::Errors;
use portico_validation::checks;

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];

/// Validates a rule.
pub(super) fn validate_rule(rule: &Cursor<'_>, errors: &mut Errors) {
    let (operations, versions) = (rule.field("operations"), rule.field("apiVersions"));
    validate_wildcard_list(&operations, "operations", errors);
    for operation in operations.items() {
        checks::one_of(&operation, &OPERATIONS, errors);
    }
    validate_wildcard_list(&rule.field("apiGroups"), "API groups", errors);
    validate_wildcard_list(&versions, "API versions", errors);
    for version in versions.items().filter(|version| version.str().is_empty()) {
        errors.push(version.required(""));
    }
    validate_resources(&rule.field("resources"), errors);
    checks::one_of(&rule.field("scope"), &["*", "Cluster", "Namespaced"], errors);
}

/// Validates a rule that also lists resource names.
pub(super) fn validate_named_rule(rule: &Cursor<'_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for name in rule.field("resourceNames").items() {
        checks::matches_rule(&name, names::path_segment, errors);
        checks::unique(&mut seen, &name, errors);
    }
    validate_rule(rule, errors);
}

/// Validates a required list in which `*` excludes other entries.
fn validate_wildcard_list(list: &Cursor<'_>, items: &str, errors: &mut Errors) {
    if list.is_empty() {
        errors.push(list.required(""));
    }
    if list.len() > 1 && list.items().any(|item| item.str() == "*") {
        errors.push(list.invalid(&format!("if '*' is present, must not specify other {items}")));
    }
}

fn validate_resources(list: &Cursor<'_>, errors: &mut Errors) {
    if list.is_empty() {
        errors.push(list.required(""));
    }
    let (mut with_all_subresources, mut subresources_of_all) = (HashSet::new(), HashSet::new());
    let (mut has_everything, mut has_wildcard, mut has_resource) = (false, false, false);
    for item in list.items() {
        let text = item.str();
        if text.is_empty() {
            errors.push(item.required(""));
            continue;
        }
        has_everything |= text == "*/*";
        has_wildcard |= text == "*";
        let Some((resource, sub)) = text.split_once('/') else {
            has_resource = text != "*";
            continue;
        };
        if with_all_subresources.contains(resource) {
            errors.push(item.invalid(&format!("if '{resource}/*' is present, must not specify {text}")));
        }
        if subresources_of_all.contains(sub) {
            errors.push(item.invalid(&format!("if '*/{sub}' is present, must not specify {text}")));
        }
        if sub == "*" {
            with_all_subresources.insert(resource);
        }
        if resource == "*" {
            subresources_of_all.insert(sub);
        }
    }
    if has_everything && list.len() > 1 {
        errors.push(list.invalid("if '*/*' is present, must not specify other resources"));
    }
    if has_wildcard && has_resource {
        let text = "if '*' is present, must not specify other resources without subresources";
        errors.push(list.invalid(text));
    }
}
