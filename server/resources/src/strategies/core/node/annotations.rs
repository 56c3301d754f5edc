//! Annotations of nodes that contain JSON: taints, before they had a field, and pods to avoid.

use portico_machinery::field::{Error, Path};
use portico_machinery::{Cursor, Object};

use portico_gostd::json::{self, Container};

use super::taints::validate_taints;
use portico_validation::Errors;

const TAINTS: &str = "scheduler.alpha.kubernetes.io/taints";
const AVOID: &str = "scheduler.alpha.kubernetes.io/preferAvoidPods";

/// Validates the JSON in annotations and its content.
pub(super) fn validate(annotations: &Cursor<'_>, errors: &mut Errors) {
    let path = annotations.path();
    if let Some(text) = annotations.entry_str(TAINTS).filter(|text| !text.is_empty()) {
        match parse_json(text, Container::Array, "[]core.Taint") {
            Ok(holder) => validate_taints(&holder.at(&[VALUE]), &path.child(TAINTS), errors),
            Err(reason) => errors.push(Error::invalid(&path, TAINTS, &reason)),
        }
    }
    if let Some(text) = annotations.entry_str(AVOID).filter(|text| !text.is_empty()) {
        match parse_json(text, Container::Object, "v1.AvoidPods") {
            Ok(holder) => {
                validate_pods_to_avoid(&holder.at(&[VALUE, "preferAvoidPods"]), &path.child(AVOID), errors)
            }
            Err(reason) => errors.push(Error::invalid(&path.child("AvoidPods"), AVOID, &reason)),
        }
    }
}

/// Field of the object into which [`parse_json`] puts a value.
const VALUE: &str = "value";

/// Parses JSON into a field of an object, so that a cursor can read the value.
fn parse_json(text: &str, expected: Container, go_type: &str) -> Result<Object, String> {
    let mut holder = Object::default();
    holder.set(&[VALUE], json::container(text, expected, go_type)?);
    Ok(holder)
}

fn validate_pods_to_avoid(entries: &Cursor<'_>, path: &Path, errors: &mut Errors) {
    for (index, entry) in entries.items().enumerate() {
        let signature = path.index(index).child("PodSignature");
        let controller = entry.field("podSignature").field("podController");
        if !controller.is_present() {
            errors.push(Error::required(&signature, ""));
        } else if !controller.field("controller").bool() {
            let path = signature.child("PodController").child("Controller");
            errors.push(Error::invalid(&path, false, "must point to a controller"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_contain_json_of_their_type() {
        const CONTROLLER: &str = "metadata.annotations.scheduler.alpha.kubernetes.io/preferAvoidPods[0].PodSignature.PodController.Controller";
        for (key, value, expected) in [
            (TAINTS, r#"[{"key":"a","effect":"NoSchedule"}]"#, None),
            (TAINTS, "x", Some("metadata.annotations")),
            (TAINTS, "{}", Some("metadata.annotations")),
            (
                TAINTS,
                r#"[{"key":"a","effect":"X"}]"#,
                Some("metadata.annotations.scheduler.alpha.kubernetes.io/taints[0].effect"),
            ),
            (AVOID, "", None),
            (AVOID, "{}", None),
            (AVOID, "{", Some("metadata.annotations.AvoidPods")),
            (AVOID, "[]", Some("metadata.annotations.AvoidPods")),
            (
                AVOID,
                r#"{"preferAvoidPods":[{"podSignature":{"podController":{"controller":false}}}]}"#,
                Some(CONTROLLER),
            ),
        ] {
            let mut node = Object::default();
            node.set(&["metadata", "annotations", key], value);
            let mut errors = Errors::new();
            validate(&node.metadata().field("annotations"), &mut errors);
            let path = errors.first().map(|error| error.path.as_str().to_owned());
            assert_eq!(path.as_deref(), expected, "{value}");
        }
    }
}
