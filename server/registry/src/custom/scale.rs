//! What a definition's scale paths demand of an object (4.9), and what stands at them.

use portico_machinery::object::Plain;
use portico_machinery::{Cursor, Object, field};

use super::ScalePaths;
use portico_validation::Errors;

/// Validates what stands at the paths; writes of the status leave the wanted number alone.
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

/// What a scale shows of an object.
pub(crate) struct Shown {
    /// How many there should be; nothing when the object does not set it.
    pub(crate) wanted: Option<i32>,
    /// How many there are.
    pub(crate) there: i32,
    /// Which they are, as the text of a label selector; empty when the definition or the object does not say.
    pub(crate) selector: String,
}

impl Shown {
    /// Reads it off an object, or says in upstream's words what is of another type: another version without a scale may
    /// have written that.
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

/// Cut to 32 bits, as upstream does it.
#[expect(clippy::cast_possible_truncation, reason = "only a version without a scale lets larger numbers in")]
fn int(path: &str, object: &Object) -> Result<Option<i32>, String> {
    let found = found(path, object, "int64", |value| value.i64().is_some())?;
    Ok(found.and_then(|value| value.i64()).map(|number| number as i32))
}

/// What stands at a dotted path, if anything does; upstream's words when it is of another type.
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
