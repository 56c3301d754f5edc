//! What kinds that make pods from a template share: a selector that must match the template, warnings, Go's numbers.

use portico_machinery::field::Error;
use portico_machinery::selector::LabelSelector;
use portico_machinery::{Cursor, Object};

use portico_registry::options::number_error;
use portico_validation::Errors;
use portico_validation::label_selector;
use portico_validation::pod_spec;

/// What a kind's selector turned out to be.
pub(super) enum Selects {
    /// Nothing that can be read: what depends on it is not validated.
    Unusable,
    /// These labels; without a selector none at all.
    Labels(Option<LabelSelector>),
}

/// Validates a selector that must be there and must not be empty; `kind` is its kind in lower case.
pub(super) fn required_selector(selector: &Cursor<'_>, kind: &str, errors: &mut Errors) -> Selects {
    if selector.is_present() {
        label_selector(selector, errors);
        if is_empty_selector(selector) {
            errors.push(selector.invalid(&format!("empty selector is invalid for {kind}")));
        }
    } else {
        errors.push(selector.required(""));
    }
    selects(selector)
}

/// What a selector selects.
pub(super) fn selects(selector: &Cursor<'_>) -> Selects {
    LabelSelector::of_object(selector).map_or(Selects::Unusable, Selects::Labels)
}

/// Whether a selector is there and asks for nothing.
pub(super) fn is_empty_selector(selector: &Cursor<'_>) -> bool {
    selector.is_present() && ["matchLabels", "matchExpressions"].iter().all(|f| selector.field(f).is_empty())
}

/// The template's labels must be selected.
pub(super) fn must_match(selector: Option<&LabelSelector>, template: &Cursor<'_>, errors: &mut Errors) {
    let labels = template.field("metadata").field("labels");
    let matched = selector.is_some_and(|s| s.matches(labels.string_entries()));
    if !matched {
        errors.push(invalid_or_null(&labels, "`selector` does not match template `labels`"));
    }
}

/// `Invalid value` of a map or struct, which prints as null when there is none.
pub(super) fn invalid_or_null(at: &Cursor<'_>, detail: &str) -> Error {
    let printed = if at.is_present() { at.printed() } else { "null".to_owned() };
    Error::invalid_printed(&at.path(), &printed, detail)
}

/// Warnings about the pod template at a path: of a new object, and of one whose generation counts this change.
pub(super) fn template_warnings(new: &Object, old: Option<&Object>, path: &[&str]) -> Vec<String> {
    match old {
        Some(old) if new.at(&["spec"]).same_as(&old.at(&["spec"])) => Vec::new(),
        _ => pod_spec::template_warnings(&new.at(path), None),
    }
}

/// A number as Go's `strconv` reads it, or the error of Go's function of that name about the text.
pub(super) fn go_number(function: &str, text: &str) -> Result<i64, String> {
    text.parse::<i64>().map_err(|error| number_error(function, text, error.kind()))
}
