//! The message when a rule fails or cannot be evaluated.

use portico_machinery::field::{Error, Path};
use serde_json::Value;

use crate::structural::model::{JsonType, Node, Rule};
use crate::structural::printed;

/// Size of a message that the expression of a validation rule returns.
///
/// Limit (Expressions, bytes): the rule's fixed message is used.
const MAX_LENGTH: usize = 5_120;

/// What failed, as messages name it: the rule's message, else the rule.
pub(super) fn named(rule: &Rule) -> &str {
    if rule.message.is_empty() { rule.rule.trim() } else { rule.message.trim() }
}

/// What to say of a rule that failed and has no expression that says more.
pub(super) fn default(rule: &Rule) -> String {
    if rule.message.is_empty() {
        format!("failed rule: {}", named(rule))
    } else {
        rule.message.trim().to_owned()
    }
}

/// A message that an expression made; None for one that is blank, too long, or of several lines.
pub(super) fn usable(made: &str) -> Option<String> {
    let made = made.trim();
    (!made.is_empty() && made.len() <= MAX_LENGTH && !made.contains('\n')).then(|| made.to_owned())
}

/// An error that shows the type of the place instead of its value.
pub(super) fn of_type(path: &Path, node: &Node, detail: &str) -> Error {
    Error::invalid(path, node.ty.map_or("", JsonType::as_str), detail)
}

/// The error of a failed rule: by its reason, with the value unless it is an object or a list.
pub(super) fn of_rule(path: &Path, node: &Node, value: Option<&Value>, rule: &Rule, detail: &str) -> Error {
    let container = matches!(node.ty, Some(JsonType::Object | JsonType::Array));
    let value = value.filter(|_| !container);
    match (rule.reason.as_deref(), value) {
        (Some("FieldValueForbidden"), _) => Error::forbidden(path, detail),
        (Some("FieldValueRequired"), _) => Error::required(path, detail),
        (Some("FieldValueDuplicate"), value) => {
            Error::duplicate_printed(path, value.map(printed::value).as_deref())
        }
        (_, Some(value)) => Error::invalid_printed(path, &printed::value(value), detail),
        (_, None) => Error::invalid_unprinted(path, detail),
    }
}
