//! Validation of taints, in the field of a node and in the annotation that preceded it.

use std::collections::HashSet;

use portico_machinery::field::{Error, ErrorType, Path};
use portico_machinery::{Cursor, names};
use portico_validation::{Errors, values};

/// Fields of a taint that hold strings, with the names of upstream's Go fields.
const TAINT: [(&str, &str); 3] = [("Key", "key"), ("Value", "value"), ("Effect", "effect")];

/// Validates taints; errors are reported below `base`.
pub(super) fn validate_taints(list: &Cursor<'_>, base: &Path, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for (index, taint) in list.items().enumerate() {
        let path = base.index(index);
        let (key, effect) = (taint.field("key").str(), taint.field("effect"));
        errors.extend(names::to_field_errors(&path.child("key"), key, names::qualified_name(key)));
        let value = taint.field("value").str();
        let diagnostics = names::label_value(value);
        if !diagnostics.is_empty() {
            errors.push(Error::invalid(&path.child("value"), value, &diagnostics.join(";")));
        }
        match effect.str() {
            "" => errors.push(Error::required(&path.child("effect"), "")),
            "NoSchedule" | "PreferNoSchedule" | "NoExecute" => {}
            other => errors.push(unsupported_effect(&path.child("effect"), other)),
        }
        if !seen.insert((key, effect.str())) {
            errors.push(Error {
                kind: ErrorType::Duplicate,
                path,
                body: format!(
                    "Duplicate value: {}: taints must be unique by key and effect pair",
                    values::format_go_struct(&taint, &TAINT, &[("TimeAdded", "timeAdded")])
                ),
            });
        }
    }
}

/// Lists the supported effects in upstream's order, which is not alphabetical.
fn unsupported_effect(path: &Path, effect: &str) -> Error {
    let body = format!(
        "Unsupported value: {effect:?}: supported values: \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\""
    );
    Error { kind: ErrorType::NotSupported, path: path.clone(), body }
}
