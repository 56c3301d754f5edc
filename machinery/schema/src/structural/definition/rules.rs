//! Form of `x-kubernetes-validations`, checked before the expressions are compiled.

use std::cell::LazyCell;

use serde_json::Value;

use super::errors::Errors;
use super::field_path;
use super::props::Props;
use super::survey::Survey;
use crate::structural::at::At;

/// Reasons that a rule may have.
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
const NO_BREAKS: &str = "must not contain line breaks";
const NOT_BLANK: &str = "must be non-empty if specified";

pub(super) fn validate(schema: &Value, props: &Props<'_>, at: &At<'_>, errors: &mut Errors) {
    let here = at.field("x-kubernetes-validations");
    // Paths cannot be checked in a schema without a structural form.
    let formed = LazyCell::new(|| Survey::of(schema).refused.is_none());
    let leads = |path: &str| !*formed || field_path::follow(schema, path, true).is_ok();
    for (index, rule) in props.rules.iter().enumerate() {
        self::rule(rule, &leads, &here.index(index), errors);
    }
}

fn rule(rule: &Value, leads: &dyn Fn(&str) -> bool, at: &At<'_>, errors: &mut Errors) {
    let text = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or_default();
    words(text("rule"), text("message"), at, errors);
    let expression = text("messageExpression");
    if !expression.is_empty() && expression.trim().is_empty() {
        let text = "messageExpression must be non-empty if specified";
        at.field("messageExpression").required(text, errors);
    }
    if let Some(reason) =
        rule.get("reason").and_then(Value::as_str).filter(|reason| !REASONS.contains(reason))
    {
        at.field("reason").not_supported(reason, &REASONS, errors);
    }
    field(text("fieldPath"), leads, &at.field("fieldPath"), errors);
}

fn words(rule: &str, message: &str, at: &At<'_>, errors: &mut Errors) {
    let here = at.field("message");
    if rule.trim().is_empty() {
        at.field("rule").required("rule is not specified", errors);
    } else if !message.is_empty() && message.trim().is_empty() {
        here.invalid(message, NOT_BLANK, errors);
    } else if has_breaks(message.trim()) {
        here.invalid(message, NO_BREAKS, errors);
    } else if has_breaks(rule.trim()) && message.trim().is_empty() {
        here.required("message must be specified if rule contains line breaks", errors);
    }
}

fn field(path: &str, leads: &dyn Fn(&str) -> bool, at: &At<'_>, errors: &mut Errors) {
    if path.is_empty() {
        return;
    }
    if path.trim().is_empty() {
        at.invalid(path, NOT_BLANK, errors);
    }
    if has_breaks(path) {
        at.invalid(path, NO_BREAKS, errors);
    }
    if !leads(path) {
        at.invalid(path, "must be a valid path", errors);
    }
}

fn has_breaks(text: &str) -> bool {
    text.contains(['\n', '\r'])
}
