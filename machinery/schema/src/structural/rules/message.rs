//! Messages of rules that fail or cannot be evaluated.

use portico_machinery::field::{Error, Path};
use serde_json::Value;

use crate::structural::model::{JsonType, Rule, SchemaNode};
use crate::structural::printed;

/// Size of a message that the expression of a validation rule returns.
///
/// Limit (Expressions, bytes): the rule's fixed message is used.
const MAX_LENGTH: usize = 5_120;

/// Returns the label of a rule in messages: the rule's message, or the rule itself.
pub(super) fn rule_label(rule: &Rule) -> &str {
    if rule.message.is_empty() { rule.rule.trim() } else { rule.message.trim() }
}

/// Returns the message of a failed rule without a message expression.
pub(super) fn default_message(rule: &Rule) -> String {
    if rule.message.is_empty() {
        format!("failed rule: {}", rule_label(rule))
    } else {
        rule.message.trim().to_owned()
    }
}

/// Returns the result of a message expression, or `None` if it is blank, too long, or has several lines.
pub(super) fn usable_message(message: &str) -> Option<String> {
    let message = message.trim();
    (!message.is_empty() && message.len() <= MAX_LENGTH && !message.contains('\n'))
        .then(|| message.to_owned())
}

/// Returns an error that prints the type of the node instead of the value.
pub(super) fn type_error(path: &Path, node: &SchemaNode, detail: &str) -> Error {
    Error::invalid(path, node.ty.map_or("", JsonType::as_str), detail)
}

/// Returns the error of a failed rule: the type depends on its reason; the value is included unless it is an object or a list.
pub(super) fn rule_error(
    path: &Path,
    node: &SchemaNode,
    value: Option<&Value>,
    rule: &Rule,
    detail: &str,
) -> Error {
    let container = matches!(node.ty, Some(JsonType::Object | JsonType::Array));
    let value = value.filter(|_| !container);
    match (rule.reason.as_deref(), value) {
        (Some("FieldValueForbidden"), _) => Error::forbidden(path, detail),
        (Some("FieldValueRequired"), _) => Error::required(path, detail),
        (Some("FieldValueDuplicate"), value) => {
            Error::duplicate_printed(path, value.map(printed::print_value).as_deref())
        }
        (_, Some(value)) => Error::invalid_printed(path, &printed::print_value(value), detail),
        (_, None) => Error::invalid_unprinted(path, detail),
    }
}
