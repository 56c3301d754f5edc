//! Validation of subresources: paths of replicas and of their selector (upstream's
//! `ValidateCustomResourceDefinitionSubresources`).

use portico_machinery::Cursor;

use super::columns::check_simple_path;
use portico_validation::Errors;

/// Validates the subresources of one version, or of all versions.
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
            check_path_root(&path, &[root], &format!("should be a json path under {root}"), errors);
        }
    }
    let selector = scale.field("labelSelectorPath");
    if !selector.str().is_empty() {
        let text = "should be a json path under either .spec or .status";
        check_path_root(&selector, &[".spec", ".status"], text, errors);
    }
}

fn check_path_root(path: &Cursor<'_>, roots: &[&str], text: &str, errors: &mut Errors) {
    let is_below = |root: &&str| path.str().strip_prefix(*root).is_some_and(|rest| rest.starts_with('.'));
    if check_simple_path(path, errors) && !roots.iter().any(is_below) {
        errors.push(path.invalid(text));
    }
}
