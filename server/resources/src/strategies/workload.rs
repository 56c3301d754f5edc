//! Code that kinds with a pod template share: label selector, warnings, and number parsing of Go.

use portico_machinery::field::Error;
use portico_machinery::selector::LabelSelector;
use portico_machinery::{Cursor, Object};

use portico_registry::options::number_error;
use portico_validation::Errors;
use portico_validation::label_selector;
use portico_validation::pod_spec;

/// Result of parsing a label selector.
pub(super) enum ParsedSelector {
    /// The selector is invalid. Rules that depend on it are not checked.
    Invalid,
    /// The parsed selector, or `None` if it is absent.
    Valid(Option<LabelSelector>),
}

/// Validates a required selector that must not be empty. `kind` is the kind in lower case.
pub(super) fn require_selector(selector: &Cursor<'_>, kind: &str, errors: &mut Errors) -> ParsedSelector {
    if selector.is_present() {
        label_selector(selector, errors);
        if is_empty_selector(selector) {
            errors.push(selector.invalid(&format!("empty selector is invalid for {kind}")));
        }
    } else {
        errors.push(selector.required(""));
    }
    parse_selector(selector)
}

/// Parses a label selector.
pub(super) fn parse_selector(selector: &Cursor<'_>) -> ParsedSelector {
    LabelSelector::from_object(selector).map_or(ParsedSelector::Invalid, ParsedSelector::Valid)
}

/// True if a selector is present and empty.
pub(super) fn is_empty_selector(selector: &Cursor<'_>) -> bool {
    selector.is_present() && ["matchLabels", "matchExpressions"].iter().all(|f| selector.field(f).is_empty())
}

/// Checks that the selector matches the labels of the template.
pub(super) fn check_template_labels(
    selector: Option<&LabelSelector>,
    template: &Cursor<'_>,
    errors: &mut Errors,
) {
    let labels = template.field("metadata").field("labels");
    let matched = selector.is_some_and(|s| s.matches(labels.string_entries()));
    if !matched {
        errors.push(invalid_or_null(&labels, "`selector` does not match template `labels`"));
    }
}

/// Error `Invalid value` about a map or struct, which prints as `null` if it is absent.
pub(super) fn invalid_or_null(at: &Cursor<'_>, detail: &str) -> Error {
    let printed = if at.is_present() { at.printed() } else { "null".to_owned() };
    Error::invalid_printed(&at.path(), &printed, detail)
}

/// Returns warnings about the pod template at `path`, for new objects and for updates that increase the generation.
pub(super) fn template_warnings(new: &Object, old: Option<&Object>, path: &[&str]) -> Vec<String> {
    match old {
        Some(old) if new.at(&["spec"]).same_as(&old.at(&["spec"])) => Vec::new(),
        _ => pod_spec::template_warnings(&new.at(path), None),
    }
}

/// Parses a number as `strconv` of Go. The error names the Go function `function` and the text.
pub(super) fn go_number(function: &str, text: &str) -> Result<i64, String> {
    text.parse::<i64>().map_err(|error| number_error(function, text, error.kind()))
}
