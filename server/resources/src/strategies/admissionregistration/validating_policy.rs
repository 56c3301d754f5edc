//! ValidatingAdmissionPolicy: expressions that validate objects.

use std::collections::HashSet;

use portico_machinery::field::Error;
use portico_machinery::object::to_go_json;
use portico_machinery::{Cursor, Object, names};

use super::expressions::{self, ExpressionValidator};
use portico_policy::Purpose;
use portico_validation::Errors;
use portico_validation::{checks, validate_conditions};

const CONTENT_REQUIRED: &str = "validations or auditAnnotations must contain at least one item";
const NOT_BLANK: &str = "must be non-empty if specified";
const ANNOTATIONS_MAX: usize = 20;
const VALUE_MAX: usize = 5_120;

/// Validates the fields of the spec that only this kind has.
pub(super) fn validate_spec(
    new: &Object,
    spec: &Cursor<'_>,
    expressions: &ExpressionValidator,
    errors: &mut Errors,
) {
    let (validations, annotations) = (spec.field("validations"), spec.field("auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        errors.extend([validations.required(CONTENT_REQUIRED), annotations.required(CONTENT_REQUIRED)]);
    }
    validations.items().for_each(|at| validate_validation(&at, expressions, errors));
    validate_audit_annotations(new, &annotations, expressions, errors);
}

/// Validates the status, which only this kind has.
pub(super) fn validate_status(status: &Cursor<'_>, errors: &mut Errors) {
    let warnings = status.field("typeChecking").field("expressionWarnings");
    let complete = |at: Cursor<'_>, fields: &[&str], errors: &mut Errors| {
        for field in fields.iter().map(|field| at.field(field)) {
            if field.str().is_empty() {
                errors.push(field.required(""));
            }
        }
    };
    for warning in warnings.items() {
        complete(warning, &["warning", "fieldRef"], errors);
    }
    validate_conditions(&status.field("conditions"), errors);
}

fn validate_validation(validation: &Cursor<'_>, expressions: &ExpressionValidator, errors: &mut Errors) {
    expressions.validate_expression(Purpose::Validation, &validation.field("expression"), errors);
    let (text, message) = (validation.field("messageExpression"), validation.field("message"));
    let blank = |at: &Cursor<'_>| !at.str().is_empty() && at.str().trim().is_empty();
    if blank(&text) {
        errors.push(text.invalid(NOT_BLANK));
    } else if !text.str().is_empty() {
        expressions::compile(&expressions.compiler, Purpose::Message, &text, text.str(), errors);
    }
    if blank(&message) {
        errors.push(message.invalid(NOT_BLANK));
    } else if message.str().trim().contains(['\n', '\r']) {
        errors.push(message.invalid("must not contain line breaks"));
    }
    let reasons = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
    checks::one_of(&validation.field("reason"), &reasons, errors);
}

/// Formats annotations as upstream prints them: with Go field names, because the internal type has no JSON names.
fn print_annotations(annotations: &Cursor<'_>) -> String {
    let item = |at: Cursor<'_>| {
        let mut annotation = Object::default();
        annotation.set(&["Key"], at.field("key").str());
        annotation.set(&["ValueExpression"], at.field("valueExpression").str());
        String::from_utf8_lossy(&to_go_json(annotation.map())).into_owned()
    };
    format!("[{}]", annotations.items().map(item).collect::<Vec<_>>().join(","))
}

fn validate_audit_annotations(
    new: &Object,
    annotations: &Cursor<'_>,
    expressions: &ExpressionValidator,
    errors: &mut Errors,
) {
    if annotations.len() > ANNOTATIONS_MAX {
        let text = format!("must not have more than {ANNOTATIONS_MAX} auditAnnotations");
        errors.push(Error::invalid_printed(&annotations.path(), &print_annotations(annotations), &text));
    }
    let mut seen = HashSet::new();
    for annotation in annotations.items() {
        let (key, value) = (annotation.field("key"), annotation.field("valueExpression"));
        if new.name().is_empty() {
            errors.push(key.invalid("requires metadata.name be non-empty"));
        } else {
            let full = format!("{}/{}", new.name(), key.str());
            errors.extend(names::to_field_errors(&key.path(), &full, names::qualified_name(&full)));
        }
        let text = value.str().trim();
        if text.is_empty() {
            errors.push(value.required("valueExpression is not specified"));
        } else if text.len() > VALUE_MAX {
            let limit = format!("must not exceed {VALUE_MAX} bytes in length");
            errors.push(Error::required(&value.path(), &limit));
        } else if let Err(error) = expressions.compiler.check(Purpose::Annotation, text) {
            errors.push(value.invalid(&error));
        }
        checks::unique(&mut seen, &key, errors);
    }
}
