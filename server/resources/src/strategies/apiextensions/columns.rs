//! Validation of printer columns (upstream's `ValidateCustomResourceColumnDefinition`).

use portico_machinery::Cursor;

use portico_validation::Errors;

const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/// Validates one column.
pub(super) fn validate(column: &Cursor<'_>, errors: &mut Errors) {
    let name = column.field("name");
    if name.str().is_empty() {
        errors.push(name.required(""));
    }
    let (ty, of_types) = (column.field("type"), format!("must be one of {}", TYPES.join(",")));
    match ty.str() {
        "" => errors.push(ty.required(&of_types)),
        column_type if TYPES.contains(&column_type) => {}
        _ => errors.push(ty.invalid(&of_types)),
    }
    let format = column.field("format");
    if !format.str().is_empty() && !FORMATS.contains(&format.str()) {
        errors.push(format.invalid(&format!("must be one of {}", FORMATS.join(","))));
    }
    // The field has another name in upstream's internal type.
    let path = column.field("JSONPath").with_value_of(&column.field("jsonPath"));
    match path.str() {
        "" => errors.push(path.required("")),
        _ => {
            check_simple_path(&path, errors);
        }
    }
}

/// Checks that a path starts with a dot. Returns `true` if it does.
pub(super) fn check_simple_path(at: &Cursor<'_>, errors: &mut Errors) -> bool {
    let simple = at.str().starts_with('.');
    if !simple {
        errors.push(at.invalid("must be a simple json path starting with ."));
    }
    simple
}
