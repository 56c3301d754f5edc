//! Limits of schemas, which upstream does not have. Without them, work that grows with the product of two sizes would occupy a
//! processor for minutes; each compiled schema also stays in memory.

use std::collections::HashSet;

use portico_cel::pattern_cache::MAX_COMPILED_BYTES;
use portico_machinery::field::Error;
use portico_machinery::object::cut_at;
use serde_json::Value;

use super::errors::Errors;
use super::props::{Props, entries};
use super::visit::visit;
use crate::structural::at::At;
use crate::structural::languages;

/// Length of a property name in the schema of a definition.
///
/// Limit (Definitions and schemas, bytes): the definition is rejected.
pub const MAX_PROPERTY_NAME_BYTES: usize = 4 * 1024;
/// Names in one `required`.
///
/// Limit (Definitions and schemas): the definition is rejected.
pub const MAX_REQUIRED: usize = 10_000;
/// Names in one `x-kubernetes-list-map-keys`.
///
/// Limit (Definitions and schemas): the definition is rejected.
pub const MAX_LIST_MAP_KEYS: usize = 64;
/// Branches of one `allOf`, `anyOf` or `oneOf`.
///
/// Limit (Definitions and schemas): the definition is rejected.
pub const MAX_BRANCHES: usize = 10_000;
/// Entries in the `x-kubernetes-validations` of a schema.
///
/// Limit (Definitions and schemas): the definition is rejected.
pub const MAX_RULES: usize = 10_000;
/// Compiled size of all patterns of a schema, too large ones included.
///
/// Limit (Definitions and schemas, bytes): the definition is rejected.
pub const MAX_PATTERN_BYTES: usize = 128 * 1024 * 1024;

/// Maximum bytes that are printed of a name that is too long.
const SHOWN_BYTES: usize = 64;

/// Checks the limits of a schema before any other validation. Reports the first exceeded limit.
pub(super) fn validate(schema: &Value, at: &At<'_>, errors: &mut Errors) {
    let mut found: Option<Error> = None;
    let (mut rules, mut patterns) = (0, HashSet::new());
    visit(schema, &mut |props| {
        rules += props.rules.len();
        if !props.pattern.is_empty() {
            patterns.insert(props.pattern);
        }
        found = found.take().or_else(|| of_node(props, at));
    });
    let found = found.or_else(|| {
        let here = at.field("x-kubernetes-validations");
        (rules > MAX_RULES).then(|| Error::too_many(&here.path(), rules, MAX_RULES))
    });
    let found = found.or_else(|| {
        let here = at.field("pattern");
        let text = format!("all patterns of a schema may take {MAX_PATTERN_BYTES} bytes together");
        are_too_large(&patterns).then(|| Error::forbidden(&here.path(), &text))
    });
    if let Some(error) = found {
        errors.push_with(|| error);
    }
}

fn of_node(props: &Props<'_>, at: &At<'_>) -> Option<Error> {
    let counts = [
        ("required", props.required.len(), MAX_REQUIRED),
        ("x-kubernetes-list-map-keys", props.list_keys.len(), MAX_LIST_MAP_KEYS),
        ("allOf", props.all_of.len(), MAX_BRANCHES),
        ("anyOf", props.any_of.len(), MAX_BRANCHES),
        ("oneOf", props.one_of.len(), MAX_BRANCHES),
    ];
    if let Some((name, count, most)) = counts.into_iter().find(|(_, count, most)| count > most) {
        return Some(Error::too_many(&at.field(name).path(), count, most));
    }
    let maps = [
        ("properties", props.properties),
        ("patternProperties", props.pattern_properties),
        ("definitions", props.definitions),
        ("dependencies", props.dependencies),
    ];
    maps.into_iter().find_map(|(member, map)| {
        let (name, _) = entries(map).find(|(name, _)| name.len() > MAX_PROPERTY_NAME_BYTES)?;
        let shown = cut_at(name.to_owned(), SHOWN_BYTES);
        Some(Error::too_long(&at.field(member).key(&shown).path(), MAX_PROPERTY_NAME_BYTES))
    })
}

/// True if the patterns exceed the limit. Patterns that do not compile are reported at their location.
fn are_too_large(patterns: &HashSet<&str>) -> bool {
    if patterns.len() * MAX_COMPILED_BYTES <= MAX_PATTERN_BYTES {
        return false;
    }
    let mut left = MAX_PATTERN_BYTES;
    !patterns.iter().all(|pattern| {
        let taken = languages::patterns().compiled_bytes(pattern).ok().map(|bytes| left.checked_sub(bytes));
        left = taken.unwrap_or(Some(left)).unwrap_or_default();
        taken != Some(None)
    })
}
