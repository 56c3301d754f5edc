//! Validation of access reviews.

use portico_machinery::{Cursor, Object, names};

use super::subject::AccessReview;
use portico_validation::Errors;

/// Returns all errors of a review, in the order of upstream.
pub(super) fn errors(review: AccessReview, object: &Object) -> Errors {
    let mut errors = Errors::new();
    let spec = object.at(&["spec"]);
    let (resource, path) = (spec.field("resourceAttributes"), spec.field("nonResourceAttributes"));
    if resource.is_present() && path.is_present() {
        let message = "cannot be specified in combination with resourceAttributes";
        errors.push(path.invalid_as(&print_path(&path), message));
    }
    if !resource.is_present() && !path.is_present() {
        let message = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        errors.push(resource.invalid_as("null", message));
    }
    if review != AccessReview::SelfSubject
        && spec.field("user").str().is_empty()
        && spec.field("groups").is_empty()
    {
        let message = "at least one of user or group must be specified";
        errors.push(spec.field("user").invalid_as("\"\"", message));
    }
    validate_selector(&resource.field("fieldSelector"), false, &mut errors);
    validate_selector(&resource.field("labelSelector"), true, &mut errors);
    validate_metadata(review, object, &mut errors);
    if review == AccessReview::LocalSubject {
        let namespace = resource.field("namespace");
        if resource.is_present() && namespace.str() != object.namespace() {
            errors.push(
                namespace.invalid_as(&format!("{:?}", namespace.str()), "must match metadata.namespace"),
            );
        }
        if path.is_present() {
            errors.push(path.invalid_as(&print_path(&path), "disallowed on this kind of request"));
        }
    }
    errors
}

/// Formats non-resource attributes as upstream prints the Go struct.
fn print_path(path: &Cursor<'_>) -> String {
    format!("{{\"Path\":{:?},\"Verb\":{:?}}}", path.field("path").str(), path.field("verb").str())
}

fn validate_metadata(review: AccessReview, object: &Object, errors: &mut Errors) {
    let metadata = object.at(&["metadata"]);
    let local = review == AccessReview::LocalSubject;
    let allowed = |key: &str| key == "managedFields" || (local && key == "namespace");
    if metadata.entries().all(|(key, value)| allowed(key) || is_zero(&value)) {
        return;
    }
    let message = if local { "must be empty except for namespace" } else { "must be empty" };
    errors.push(metadata.invalid(message));
}

fn is_zero(value: &Cursor<'_>) -> bool {
    !value.is_present() || matches!(value.printed().as_str(), "\"\"" | "{}" | "[]" | "0")
}

fn validate_selector(selector: &Cursor<'_>, labels: bool, errors: &mut Errors) {
    if !selector.is_present() {
        return;
    }
    let (raw, requirements) = (selector.field("rawSelector"), selector.field("requirements"));
    if !raw.str().is_empty() && !requirements.is_empty() {
        errors.push(raw.invalid("may not specified at the same time as requirements"));
    }
    if raw.str().is_empty() && requirements.is_empty() {
        let path = selector.path();
        let message = format!("when {path} is specified, requirements or rawSelector is required");
        errors.push(requirements.required(&message));
    }
    requirements.items().for_each(|requirement| validate_requirement(&requirement, labels, errors));
}

/// Unknown operators are valid, because the client may be newer than the server.
fn validate_requirement(requirement: &Cursor<'_>, labels: bool, errors: &mut Errors) {
    let (key, values) = (requirement.field("key"), requirement.field("values"));
    if !labels && key.str().is_empty() {
        errors.push(key.required("must be specified"));
    }
    match requirement.field("operator").str() {
        "In" | "NotIn" if values.is_empty() => {
            errors.push(values.required("must be specified when `operator` is 'In' or 'NotIn'"));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            errors
                .push(values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
        }
        _ => {}
    }
    if !labels {
        return;
    }
    errors.extend(names::to_field_errors(&key.path(), key.str(), names::qualified_name(key.str())));
    for value in values.items() {
        errors.extend(names::to_field_errors(&value.path(), value.str(), names::label_value(value.str())));
    }
}
