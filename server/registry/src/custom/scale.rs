//! Validation and reading of the fields at a definition's scale paths.

use portico_machinery::object::GoValue;
use portico_machinery::{Cursor, Object, field};

use super::ScalePaths;
use portico_validation::Errors;

/// Validates the fields at the paths. `is_main` is false for writes of the status, which do not change the desired number.
pub(super) fn validate(paths: &ScalePaths, is_main: bool, object: &Object, errors: &mut Errors) {
    if is_main {
        validate_number(&paths.spec_replicas_path, object, errors);
    }
    validate_number(&paths.status_replicas_path, object, errors);
    if let Some(path) = paths.label_selector_path.as_deref().filter(|path| !path.is_empty())
        && let Err(text) = value_at(path, object, "string", |value| value.opt_str().is_some())
    {
        errors.push(field::Error::invalid(&path.into(), "", &text));
    }
}

fn validate_number(path: &str, object: &Object, errors: &mut Errors) {
    let replicas = match value_at(path, object, "int64", |value| value.i64().is_some()) {
        Ok(found) => found.and_then(|value| value.i64()).unwrap_or(0),
        Err(text) => return errors.push(field::Error::invalid(&path.into(), 0, &text)),
    };
    let diagnostic = match replicas {
        ..0 => "should be a non-negative integer".to_owned(),
        _ if replicas > i64::from(i32::MAX) => format!("should be less than or equal to {}", i32::MAX),
        _ => return,
    };
    errors.push(field::Error::invalid(&path.into(), replicas, &diagnostic));
}

/// Values of the scale of an object.
pub(crate) struct ScaleValues {
    /// Desired number of replicas; `None` if the object does not set it.
    pub(crate) spec_replicas: Option<i32>,
    /// Current number of replicas.
    pub(crate) status_replicas: i32,
    /// Text of the label selector; empty if the definition or the object has none.
    pub(crate) selector: String,
}

impl ScaleValues {
    /// Reads the values of an object. Returns upstream's error if a field has a wrong type, which objects written in a version
    /// without a scale may have.
    pub(crate) fn from_object(paths: &ScalePaths, object: &Object) -> Result<Self, String> {
        let spec_replicas = int(&paths.spec_replicas_path, object)?;
        let status_replicas = int(&paths.status_replicas_path, object)?.unwrap_or(0);
        let selector = match paths.label_selector_path.as_deref().filter(|path| !path.is_empty()) {
            Some(path) => value_at(path, object, "string", |value| value.opt_str().is_some())?,
            None => None,
        };
        Ok(Self {
            spec_replicas,
            status_replicas,
            selector: selector.map_or_else(String::new, |text| text.str().to_owned()),
        })
    }
}

/// Reads an integer, truncated to 32 bits as in upstream.
#[expect(clippy::cast_possible_truncation, reason = "only a version without a scale lets larger numbers in")]
fn int(path: &str, object: &Object) -> Result<Option<i32>, String> {
    let found = value_at(path, object, "int64", |value| value.i64().is_some())?;
    Ok(found.and_then(|value| value.i64()).map(|number| number as i32))
}

/// Value at a dotted path, if present; upstream's error if it has a wrong type.
fn value_at<'o>(
    path: &'o str,
    object: &'o Object,
    expected: &str,
    has_type: impl Fn(&Cursor<'_>) -> bool,
) -> Result<Option<Cursor<'o>>, String> {
    let mut cursor = object.cursor();
    for name in path.trim_start_matches('.').split('.') {
        if !cursor.is_map() {
            return Err(type_mismatch(path, &cursor, "map[string]interface{}"));
        }
        cursor = cursor.field(name);
        if cursor.node().is_none() {
            return Ok(None);
        }
    }
    if has_type(&cursor) { Ok(Some(cursor)) } else { Err(type_mismatch(path, &cursor, expected)) }
}

fn type_mismatch(path: &str, cursor: &Cursor<'_>, expected: &str) -> String {
    let found = cursor.go_type();
    let printed = cursor.node().map_or_else(|| cursor.printed(), |node| GoValue(&node.0).to_string());
    format!("{path} accessor error: {printed} is of the type {found}, expected {expected}")
}
