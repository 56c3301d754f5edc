//! Subresources: where replicas and their selector stand (`ValidateCustomResourceDefinitionSubresources` upstream).

use portico_machinery::Cursor;

use super::columns::simple_path;
use portico_validation::Errors;

/// Validates the subresources of one version, or of all.
pub(super) fn validate(subresources: &Cursor<'_>, errors: &mut Errors) {
    let scale = subresources.field("scale");
    if !scale.is_present() {
        return;
    }
    for (name, root) in [("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")] {
        let path = scale.field(name);
        if path.str().is_empty() {
            errors.push(path.required(""));
        } else {
            below(&path, &[root], &format!("should be a json path under {root}"), errors);
        }
    }
    let selector = scale.field("labelSelectorPath");
    if !selector.str().is_empty() {
        let either = "should be a json path under either .spec or .status";
        below(&selector, &[".spec", ".status"], either, errors);
    }
}

fn below(path: &Cursor<'_>, roots: &[&str], text: &str, errors: &mut Errors) {
    let under = |root: &&str| path.str().strip_prefix(*root).is_some_and(|rest| rest.starts_with('.'));
    if simple_path(path, errors) && !roots.iter().any(under) {
        errors.push(path.invalid(text));
    }
}
