//! What of a claim may change: the volume once, the class once, and the size of one that is bound.

use portico_machinery::field::{Error, Path};
use portico_machinery::{Object, Quantity};

use crate::strategies::core::storage_cells::OLD_CLASS;
use portico_validation::Errors;
use portico_validation::checks;

const REQUEST: [&str; 4] = ["spec", "resources", "requests", "storage"];
const CLASS: [&str; 2] = ["spec", "storageClassName"];
const ATTRIBUTES: [&str; 2] = ["spec", "volumeAttributesClassName"];
const FIXED: &str = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";

/// Validates a change.
pub(super) fn validate(new: &Object, old: &Object, errors: &mut Errors) {
    let moves_class = moves_class(new, old);
    let annotation = |claim: &Object| claim.annotation(OLD_CLASS).unwrap_or_default().to_owned();
    if !moves_class && annotation(new) != annotation(old) {
        let path = Path::new(format!("metadata.annotations.{OLD_CLASS}"));
        errors.push(Error::invalid(&path, annotation(new), checks::IMMUTABLE));
    }
    let expected = allowed(new, old, moves_class);
    if !expected.at(&["spec"]).same_as(&new.at(&["spec"])) {
        errors.push(new.at(&["spec"]).forbidden(FIXED));
    }
    shrink(new, old, errors);
    let mode = new.at(&["spec", "volumeMode"]);
    if !checks::same(&mode, &old.at(&["spec", "volumeMode"])) {
        let path = Path::new("volumeMode".to_owned());
        errors.push(Error::invalid_printed(&path, &mode.printed(), checks::IMMUTABLE));
    }
    attributes(new, old, errors);
}

/// Whether the class moves from the old annotation into the field, or is named for the first time.
fn moves_class(new: &Object, old: &Object) -> bool {
    let (class, was) = (new.at(&CLASS), old.at(&CLASS));
    if was.is_present() || !class.is_present() {
        return false;
    }
    old.annotation(OLD_CLASS).is_none_or(|annotated| annotated == class.str())
}

/// The old claim with everything that may change as it is in the new one.
fn allowed(new: &Object, old: &Object, moves_class: bool) -> Object {
    let mut expected = old.clone();
    if old.str_at("spec.volumeName").is_empty() {
        expected.copy_from(new, &["spec", "volumeName"]);
    }
    if moves_class {
        expected.copy_from(new, &CLASS);
    }
    if old.str_at("status.phase") == "Bound" {
        expected.copy_from(new, &ATTRIBUTES);
        if new.at(&REQUEST).is_present() {
            expected.copy_from(new, &REQUEST);
        }
    }
    expected
}

fn shrink(new: &Object, old: &Object, errors: &mut Errors) {
    let size = |claim: &Object, path: &[&str]| -> Quantity {
        path.iter().fold(claim.cursor(), |at, field| at.field(field)).quantity().unwrap_or_default()
    };
    let wanted = size(new, &REQUEST);
    if wanted < size(old, &REQUEST) && wanted <= size(old, &["status", "capacity", "storage"]) {
        errors.push(new.at(&REQUEST).forbidden("field can not be less than status.capacity"));
    }
}

fn attributes(new: &Object, old: &Object, errors: &mut Errors) {
    let (class, was) = (new.at(&ATTRIBUTES), old.at(&ATTRIBUTES));
    let current = old.at(&["status", "currentVolumeAttributesClassName"]);
    if class.same_as(&was) || !current.is_present() {
        return;
    }
    let what = match class.opt_str() {
        None => "nil",
        Some("") => "empty string",
        Some(_) => return,
    };
    let text =
        format!("update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil");
    errors.push(class.forbidden(&text));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(spec: &str, phase: &str) -> Object {
        let json =
            format!(r#"{{"spec":{spec},"status":{{"phase":"{phase}","capacity":{{"storage":"2Gi"}}}}}}"#);
        Object::from_json(json.as_bytes()).unwrap()
    }

    #[test]
    fn little_of_a_claim_may_change() {
        let sized = |size: &str| format!(r#"{{"resources":{{"requests":{{"storage":"{size}"}}}}}}"#);
        for (old, new, phase, errors) in [
            (sized("2Gi"), sized("3Gi"), "Bound", 0),
            (sized("2Gi"), sized("3Gi"), "Pending", 1),
            (sized("3Gi"), sized("1Gi"), "Bound", 1),
            ("{}".to_owned(), r#"{"volumeName":"v"}"#.to_owned(), "Pending", 0),
            (r#"{"volumeName":"v"}"#.to_owned(), r#"{"volumeName":"w"}"#.to_owned(), "Pending", 1),
            ("{}".to_owned(), r#"{"storageClassName":"c"}"#.to_owned(), "Pending", 0),
        ] {
            let mut found = Errors::new();
            validate(&claim(&new, phase), &claim(&old, phase), &mut found);
            assert_eq!(found.len(), errors, "{old} to {new}: {found:?}");
        }
    }
}
