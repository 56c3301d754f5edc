//! Validation of `matchResources` of policies and bindings.

use portico_machinery::Cursor;
use portico_machinery::field::Error;

use super::rules;
use portico_validation::Errors;
use portico_validation::{checks, label_selector};

/// Validates `matchResources`. `mutates`: DELETE is not allowed, because mutation of a deleted object has no effect.
pub(super) fn validate_match_resources(at: &Cursor<'_>, mutates: bool, errors: &mut Errors) {
    checks::one_of(&at.field("matchPolicy"), &["Equivalent", "Exact"], errors);
    label_selector(&at.field("namespaceSelector"), errors);
    label_selector(&at.field("objectSelector"), errors);
    for list in ["resourceRules", "excludeResourceRules"] {
        for rule in at.field(list).items() {
            rules::validate_named_rule(&rule, errors);
        }
    }
    if mutates {
        check_mutating_operations(&at.field("resourceRules"), errors);
    }
}

/// Refuses DELETE in rules of a mutating policy. As upstream, the path has no index and each operation gives one error.
fn check_mutating_operations(rules: &Cursor<'_>, errors: &mut Errors) {
    const KNOWN: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];
    let path = rules.path().child("operations");
    for rule in rules.items() {
        let operations = rule.field("operations");
        let unsupported = operations.items().filter(|operation| !KNOWN.contains(&operation.str()));
        errors.extend(unsupported.map(|operation| Error::not_supported(&path, operation.str(), &KNOWN)));
    }
}
