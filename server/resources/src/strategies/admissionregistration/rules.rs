//! Which operations on which resources a webhook or policy is about.

use std::collections::HashSet;

use portico_machinery::{Cursor, names};

use portico_validation::Errors;
use portico_validation::checks;

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];

/// Operations and resources.
pub(super) fn rule(rule: &Cursor<'_>, errors: &mut Errors) {
    let (operations, versions) = (rule.field("operations"), rule.field("apiVersions"));
    list(&operations, "operations", errors);
    for operation in operations.items() {
        checks::one_of(&operation, &OPERATIONS, errors);
    }
    list(&rule.field("apiGroups"), "API groups", errors);
    list(&versions, "API versions", errors);
    for version in versions.items().filter(|version| version.str().is_empty()) {
        errors.push(version.required(""));
    }
    resources(&rule.field("resources"), errors);
    checks::one_of(&rule.field("scope"), &["*", "Cluster", "Namespaced"], errors);
}

/// As [`rule`], for objects of certain names.
pub(super) fn named_rule(named: &Cursor<'_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for name in named.field("resourceNames").items() {
        checks::follows(&name, names::path_segment, errors);
        checks::unique(&mut seen, &name, errors);
    }
    rule(named, errors);
}

/// Something must be there, and `*` stands alone.
fn list(list: &Cursor<'_>, what: &str, errors: &mut Errors) {
    if list.is_empty() {
        errors.push(list.required(""));
    }
    if list.len() > 1 && list.items().any(|item| item.str() == "*") {
        errors.push(list.invalid(&format!("if '*' is present, must not specify other {what}")));
    }
}

fn resources(list: &Cursor<'_>, errors: &mut Errors) {
    if list.is_empty() {
        errors.push(list.required(""));
    }
    let (mut all_of, mut sub_of_all) = (HashSet::new(), HashSet::new());
    let (mut everything, mut any, mut plain) = (false, false, false);
    for item in list.items() {
        let text = item.str();
        if text.is_empty() {
            errors.push(item.required(""));
            continue;
        }
        everything |= text == "*/*";
        any |= text == "*";
        let Some((resource, sub)) = text.split_once('/') else {
            plain = text != "*";
            continue;
        };
        if all_of.contains(resource) {
            errors.push(item.invalid(&format!("if '{resource}/*' is present, must not specify {text}")));
        }
        if sub_of_all.contains(sub) {
            errors.push(item.invalid(&format!("if '*/{sub}' is present, must not specify {text}")));
        }
        if sub == "*" {
            all_of.insert(resource);
        }
        if resource == "*" {
            sub_of_all.insert(sub);
        }
    }
    if everything && list.len() > 1 {
        errors.push(list.invalid("if '*/*' is present, must not specify other resources"));
    }
    if any && plain {
        let text = "if '*' is present, must not specify other resources without subresources";
        errors.push(list.invalid(text));
    }
}
