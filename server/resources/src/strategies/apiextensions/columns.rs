//! Columns that a definition adds to tables (`ValidateCustomResourceColumnDefinition` upstream).

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
        known if TYPES.contains(&known) => {}
        _ => errors.push(ty.invalid(&of_types)),
    }
    let format = column.field("format");
    if !format.str().is_empty() && !FORMATS.contains(&format.str()) {
        errors.push(format.invalid(&format!("must be one of {}", FORMATS.join(","))));
    }
    // Upstream calls it otherwise inside.
    let path = column.field("JSONPath").holding(&column.field("jsonPath"));
    match path.str() {
        "" => errors.push(path.required("")),
        _ => {
            simple_path(&path, errors);
        }
    }
}

/// A path that begins with a dot, whatever follows; whether it does.
pub(super) fn simple_path(at: &Cursor<'_>, errors: &mut Errors) -> bool {
    let simple = at.str().starts_with('.');
    if !simple {
        errors.push(at.invalid("must be a simple json path starting with ."));
    }
    simple
}
