//! Validation and reading of the fields at a definition's scale paths.

use portico_machinery::object::Plain;
use portico_machinery::{Cursor, Object, field};

use super::ScalePaths;
use portico_validation::Errors;

/// Validates the fields at the paths. `is_main` is false for writes of the status, which do not change the desired number.
pub(super) fn validate(paths: &ScalePaths, wanted: bool, object: &Object, errors: &mut Errors) {
    if wanted {
        number(&paths.spec_replicas_path, object, errors);
    }
    number(&paths.status_replicas_path, object, errors);
    if let Some(path) = paths.label_selector_path.as_deref().filter(|path| !path.is_empty())
        && let Err(text) = found(path, object, "string", |value| value.opt_str().is_some())
    {
        errors.push(field::Error::invalid(&path.into(), "", &text));
    }
}

fn number(path: &str, object: &Object, errors: &mut Errors) {
    let at = match found(path, object, "int64", |value| value.i64().is_some()) {
        Ok(at) => at.and_then(|value| value.i64()).unwrap_or(0),
        Err(text) => return errors.push(field::Error::invalid(&path.into(), 0, &text)),
    };
    let diagnostic = match at {
        ..0 => "should be a non-negative integer".to_owned(),
        _ if at > i64::from(i32::MAX) => format!("should be less than or equal to {}", i32::MAX),
        _ => return,
    };
    errors.push(field::Error::invalid(&path.into(), at, &diagnostic));
}

/// Values of the scale of an object.
pub(crate) struct Shown {
    /// Desired number of replicas; `None` if the object does not set it.
    pub(crate) wanted: Option<i32>,
    /// Current number of replicas.
    pub(crate) there: i32,
    /// Text of the label selector; empty if the definition or the object has none.
    pub(crate) selector: String,
}

impl Shown {
    /// Reads the values of an object. Returns upstream's error if a field has a wrong type, which objects written in a version
    /// without a scale may have.
    pub(crate) fn of(paths: &ScalePaths, object: &Object) -> Result<Self, String> {
        let wanted = int(&paths.spec_replicas_path, object)?;
        let there = int(&paths.status_replicas_path, object)?.unwrap_or(0);
        let selector = match paths.label_selector_path.as_deref().filter(|path| !path.is_empty()) {
            Some(path) => found(path, object, "string", |value| value.opt_str().is_some())?,
            None => None,
        };
        Ok(Self { wanted, there, selector: selector.map_or_else(String::new, |text| text.str().to_owned()) })
    }
}

/// Reads an integer, truncated to 32 bits as in upstream.
#[expect(clippy::cast_possible_truncation, reason = "only a version without a scale lets larger numbers in")]
fn int(path: &str, object: &Object) -> Result<Option<i32>, String> {
    let found = found(path, object, "int64", |value| value.i64().is_some())?;
    Ok(found.and_then(|value| value.i64()).map(|number| number as i32))
}

/// Value at a dotted path, if present; upstream's error if it has a wrong type.
fn found<'o>(
    path: &'o str,
    object: &'o Object,
    expected: &str,
    fits: impl Fn(&Cursor<'_>) -> bool,
) -> Result<Option<Cursor<'o>>, String> {
    let mut at = object.cursor();
    for name in path.trim_start_matches('.').split('.') {
        if !at.is_map() {
            return Err(misfit(path, &at, "map[string]interface{}"));
        }
        at = at.field(name);
        if at.node().is_none() {
            return Ok(None);
        }
    }
    if fits(&at) { Ok(Some(at)) } else { Err(misfit(path, &at, expected)) }
}

fn misfit(path: &str, at: &Cursor<'_>, expected: &str) -> String {
    let found = at.go_type();
    let printed = at.node().map_or_else(|| at.printed(), |node| Plain(&node.0).to_string());
    format!("{path} accessor error: {printed} is of the type {found}, expected {expected}")
}
