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
        no_deletion(&at.field("resourceRules"), errors);
    }
}

fn no_deletion(rules: &Cursor<'_>, errors: &mut Errors) {
    let operations = rules.items().flat_map(|rule| rule.field("operations").items().collect::<Vec<_>>());
    if operations.into_iter().any(|operation| operation.str() == "DELETE") {
        let path = rules.path().child("operations");
        errors.push(Error::not_supported(&path, "DELETE", &["*", "CONNECT", "CREATE", "UPDATE"]));
    }
}
