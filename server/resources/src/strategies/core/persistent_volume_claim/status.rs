//! What is validated of a claim's status.

use portico_machinery::field::{Error, ErrorType, Path};
use portico_machinery::{Cursor, Object, names};

use portico_validation::Errors;

const STATES: [&str; 5] = [
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

/// Validates the status.
pub(super) fn validate(claim: &Object, errors: &mut Errors) {
    if claim.at(&["spec", "accessModes"]).is_empty() {
        errors.push(Error::required(&Path::new("Spec.accessModes".to_owned()), ""));
    }
    for (_, value) in claim.at(&["status", "capacity"]).entries() {
        valid_quantity(&value, errors);
    }
    let states = claim.at(&["status", "allocatedResourceStatuses"]);
    let path = states.path();
    for (name, state) in states.entries() {
        resource(name, &path, errors);
        if !STATES.contains(&state.str()) {
            // Upstream prints the key where the value is wrong.
            errors.push(unsupported(&path, name, &STATES));
        }
    }
    let list = claim.at(&["status", "allocatedResources"]);
    for (name, value) in list.entries() {
        // Upstream reports a bad name at the list, and then nothing about the amount.
        let before = errors.len();
        resource(name, &list.path(), errors);
        if errors.len() == before {
            valid_quantity(&value, errors);
        }
    }
}

fn valid_quantity(value: &Cursor<'_>, errors: &mut Errors) {
    let amount = value.quantity().unwrap_or_default();
    if amount.is_negative() {
        errors.push(Error::invalid(&value.path(), amount.value(), "must be a valid resource quantity"));
    }
}

/// A qualified name; of upstream's own only `storage`.
fn resource(name: &str, path: &Path, errors: &mut Errors) {
    let diagnostics = names::qualified_name(name);
    let is_native = !name.contains('/') || name.contains("kubernetes.io/");
    if !diagnostics.is_empty() {
        errors.extend(names::errors(path, name, diagnostics));
    } else if is_native && name != "storage" {
        errors.push(unsupported(path, name, &["storage"]));
    }
}

fn unsupported(path: &Path, value: &str, supported: &[&str]) -> Error {
    let quoted: Vec<String> = supported.iter().map(|word| format!("{word:?}")).collect();
    let body = format!("Unsupported value: {value:?}: supported values: {}", quoted.join(", "));
    Error { kind: ErrorType::NotSupported, path: path.clone(), body }
}
