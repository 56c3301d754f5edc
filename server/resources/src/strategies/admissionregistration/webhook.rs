//! Validation of one webhook: rules, client configuration, timeout.

use portico_machinery::{Cursor, names};

use super::expressions::ExpressionValidator;
use super::rules;
use portico_validation::Errors;
use portico_validation::webhook::{REVIEW_VERSIONS, client_config, review_versions};
use portico_validation::{checks, label_selector};

const NOT_QUALIFIED: &str = "should be a domain with at least three segments separated by dots";

/// Validates a webhook of either kind of configuration.
pub(super) fn validate_webhook(webhook: &Cursor<'_>, expressions: &ExpressionValidator, errors: &mut Errors) {
    validate_qualified_domain(&webhook.field("name"), errors);
    let none = format!("must specify one of {}", REVIEW_VERSIONS.join(", "));
    review_versions(&webhook.field("admissionReviewVersions"), &none, true, errors);
    webhook.field("rules").items().for_each(|at| rules::validate_rule(&at, errors));
    checks::one_of(&webhook.field("failurePolicy"), &["Fail", "Ignore"], errors);
    checks::one_of(&webhook.field("matchPolicy"), &["Equivalent", "Exact"], errors);
    let effects = webhook.field("sideEffects");
    match effects.str() {
        "" => errors.push(effects.required("must specify one of None, NoneOnDryRun")),
        _ => checks::one_of(&effects, &["None", "NoneOnDryRun"], errors),
    }
    let timeout = webhook.field("timeoutSeconds");
    if timeout.i64().is_some_and(|n| !(1..=30).contains(&n)) {
        errors.push(timeout.invalid("the timeout value must be between 1 and 30 seconds"));
    }
    label_selector(&webhook.field("namespaceSelector"), errors);
    label_selector(&webhook.field("objectSelector"), errors);
    checks::one_of(&webhook.field("reinvocationPolicy"), &["IfNeeded", "Never"], errors);
    client_config(&webhook.field("clientConfig"), errors);
    expressions.validate_match_conditions(&webhook.field("matchConditions"), errors);
}

/// Validates a domain name of at least three segments.
fn validate_qualified_domain(name: &Cursor<'_>, errors: &mut Errors) {
    if name.str().is_empty() {
        errors.push(name.required(""));
        return;
    }
    let diagnostics = names::dns1123_subdomain(name.str());
    if diagnostics.is_empty() && name.str().split('.').count() < 3 {
        errors.push(name.invalid(NOT_QUALIFIED));
    }
    errors.extend(names::to_field_errors(&name.path(), name.str(), diagnostics));
}
