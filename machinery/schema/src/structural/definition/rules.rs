//! Form of `x-kubernetes-validations`, checked before the expressions are compiled.

use std::cell::LazyCell;

use serde_json::Value;

use super::errors::Errors;
use super::facts::SchemaFacts;
use super::field_path;
use super::props::Props;
use crate::structural::location::Location;

/// Reasons that a rule may have.
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
const NO_BREAKS: &str = "must not contain line breaks";
const NOT_BLANK: &str = "must be non-empty if specified";

pub(super) fn validate(schema: &Value, props: &Props<'_>, location: &Location<'_>, errors: &mut Errors) {
    let field_location = location.field("x-kubernetes-validations");
    // Paths cannot be checked in a schema without a structural form.
    let is_structural = LazyCell::new(|| SchemaFacts::of(schema).unsupported.is_none());
    let is_valid_path =
        |path: &str| !*is_structural || field_path::resolve_tokens(schema, path, true).is_ok();
    for (index, rule) in props.rules.iter().enumerate() {
        self::rule(rule, &is_valid_path, &field_location.index(index), errors);
    }
}

fn rule(rule: &Value, is_valid_path: &dyn Fn(&str) -> bool, location: &Location<'_>, errors: &mut Errors) {
    let text = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or_default();
    text_members(text("rule"), text("message"), location, errors);
    let expression = text("messageExpression");
    if !expression.is_empty() && expression.trim().is_empty() {
        let text = "messageExpression must be non-empty if specified";
        location.field("messageExpression").required(text, errors);
    }
    if let Some(reason) =
        rule.get("reason").and_then(Value::as_str).filter(|reason| !REASONS.contains(reason))
    {
        location.field("reason").not_supported(reason, &REASONS, errors);
    }
    field(text("fieldPath"), is_valid_path, &location.field("fieldPath"), errors);
}

fn text_members(rule: &str, message: &str, location: &Location<'_>, errors: &mut Errors) {
    let field_location = location.field("message");
    if rule.trim().is_empty() {
        location.field("rule").required("rule is not specified", errors);
    } else if !message.is_empty() && message.trim().is_empty() {
        field_location.invalid(message, NOT_BLANK, errors);
    } else if has_breaks(message.trim()) {
        field_location.invalid(message, NO_BREAKS, errors);
    } else if has_breaks(rule.trim()) && message.trim().is_empty() {
        field_location.required("message must be specified if rule contains line breaks", errors);
    }
}

fn field(path: &str, is_valid_path: &dyn Fn(&str) -> bool, location: &Location<'_>, errors: &mut Errors) {
    if path.is_empty() {
        return;
    }
    if path.trim().is_empty() {
        location.invalid(path, NOT_BLANK, errors);
    }
    if has_breaks(path) {
        location.invalid(path, NO_BREAKS, errors);
    }
    if !is_valid_path(path) {
        location.invalid(path, "must be a valid path", errors);
    }
}

fn has_breaks(text: &str) -> bool {
    text.contains(['\n', '\r'])
}
