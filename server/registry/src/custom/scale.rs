//! What a definition's scale paths demand of an object (4.9).

use portico_machinery::{Cursor, Object, field};

use super::ScalePaths;
use crate::strategies::Errors;

/// Judges what stands at the paths; writes of the status leave the wanted number alone.
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
    let complaint = match at {
        ..0 => "should be a non-negative integer".to_owned(),
        _ if at > i64::from(i32::MAX) => format!("should be less than or equal to {}", i32::MAX),
        _ => return,
    };
    errors.push(field::Error::invalid(&path.into(), at, &complaint));
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
    let found = match () {
        () if at.opt_str().is_some() => "string",
        () if at.i64().is_some() => "int64",
        () if at.is_number() => "float64",
        () if at.opt_bool().is_some() => "bool",
        () if at.is_map() => "map[string]interface {}",
        () => "[]interface {}",
    };
    format!("{path} accessor error: {} is of the type {found}, expected {expected}", at.printed())
}
