//! Mutable fields of a claim: volume and class can be set once, and a bound claim can change its size.

use portico_machinery::field::{Error, Path};
use portico_machinery::{Object, Quantity};

use crate::strategies::core::storage_cells::CLASS_ANNOTATION;
use portico_validation::Errors;
use portico_validation::checks;

const REQUEST: [&str; 4] = ["spec", "resources", "requests", "storage"];
const CLASS: [&str; 2] = ["spec", "storageClassName"];
const ATTRIBUTES: [&str; 2] = ["spec", "volumeAttributesClassName"];
const SPEC_IMMUTABLE: &str = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";

/// Validates an update.
pub(super) fn validate(new: &Object, old: &Object, errors: &mut Errors) {
    let class_may_change = class_may_change(new, old);
    let annotation = |claim: &Object| claim.annotation(CLASS_ANNOTATION).unwrap_or_default().to_owned();
    if !class_may_change && annotation(new) != annotation(old) {
        let path = Path::new(format!("metadata.annotations.{CLASS_ANNOTATION}"));
        errors.push(Error::invalid(&path, annotation(new), checks::IMMUTABLE));
    }
    let expected = with_mutable_fields(new, old, class_may_change);
    if !expected.at(&["spec"]).same_as(&new.at(&["spec"])) {
        errors.push(new.at(&["spec"]).forbidden(SPEC_IMMUTABLE));
    }
    check_no_shrink(new, old, errors);
    let mode = new.at(&["spec", "volumeMode"]);
    if !checks::is_same(&mode, &old.at(&["spec", "volumeMode"])) {
        let path = Path::new("volumeMode".to_owned());
        errors.push(Error::invalid_printed(&path, &mode.printed(), checks::IMMUTABLE));
    }
    validate_attributes(new, old, errors);
}

/// True if the class moves from the annotation to the field, or is set for the first time.
fn class_may_change(new: &Object, old: &Object) -> bool {
    let (class, old_class) = (new.at(&CLASS), old.at(&CLASS));
    if old_class.is_present() || !class.is_present() {
        return false;
    }
    old.annotation(CLASS_ANNOTATION).is_none_or(|annotated| annotated == class.str())
}

/// Returns the old claim with the mutable fields of the new one.
fn with_mutable_fields(new: &Object, old: &Object, moves_class: bool) -> Object {
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

fn check_no_shrink(new: &Object, old: &Object, errors: &mut Errors) {
    let size = |claim: &Object, path: &[&str]| -> Quantity {
        path.iter().fold(claim.cursor(), |at, field| at.field(field)).quantity().unwrap_or_default()
    };
    let requested = size(new, &REQUEST);
    if requested < size(old, &REQUEST) && requested <= size(old, &["status", "capacity", "storage"]) {
        errors.push(new.at(&REQUEST).forbidden("field can not be less than status.capacity"));
    }
}

fn validate_attributes(new: &Object, old: &Object, errors: &mut Errors) {
    let (class, old_class) = (new.at(&ATTRIBUTES), old.at(&ATTRIBUTES));
    let current = old.at(&["status", "currentVolumeAttributesClassName"]);
    if class.same_as(&old_class) || !current.is_present() {
        return;
    }
    let verb = match class.opt_str() {
        None => "nil",
        Some("") => "empty string",
        Some(_) => return,
    };
    let text =
        format!("update to {verb} is forbidden when status.currentVolumeAttributesClassName is not nil");
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
    fn only_few_fields_of_a_claim_are_mutable() {
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
