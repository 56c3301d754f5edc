//! What a policy or its binding is about.

use portico_machinery::Cursor;
use portico_machinery::field::Error;

use super::rules;
use portico_validation::Errors;
use portico_validation::{checks, label_selector};

/// Validates the matcher at a cursor; `mutates`: nothing can be changed in what is deleted.
pub(super) fn match_resources(at: &Cursor<'_>, mutates: bool, errors: &mut Errors) {
    checks::one_of(&at.field("matchPolicy"), &["Equivalent", "Exact"], errors);
    label_selector(&at.field("namespaceSelector"), errors);
    label_selector(&at.field("objectSelector"), errors);
    for list in ["resourceRules", "excludeResourceRules"] {
        for rule in at.field(list).items() {
            rules::named_rule(&rule, errors);
        }
    }
    if mutates {
        mutable(&at.field("resourceRules"), errors);
    }
}

/// Nothing can be changed in what is deleted. Upstream names the field without its places, once for each operation.
fn mutable(rules: &Cursor<'_>, errors: &mut Errors) {
    const KNOWN: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];
    let path = rules.path().child("operations");
    for rule in rules.items() {
        let operations = rule.field("operations");
        let others = operations.items().filter(|operation| !KNOWN.contains(&operation.str()));
        errors.extend(others.map(|operation| Error::not_supported(&path, operation.str(), &KNOWN)));
    }
}
