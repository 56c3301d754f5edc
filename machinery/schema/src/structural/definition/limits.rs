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
use crate::structural::languages;
use crate::structural::location::Location;

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
const PRINTED_NAME_BYTES: usize = 64;

/// Checks the limits of a schema before any other validation. Reports the first exceeded limit.
pub(super) fn validate(schema: &Value, location: &Location<'_>, errors: &mut Errors) {
    let mut found: Option<Error> = None;
    let (mut rules, mut patterns) = (0, HashSet::new());
    visit(schema, &mut |props| {
        rules += props.rules.len();
        if !props.pattern.is_empty() {
            patterns.insert(props.pattern);
        }
        found = found.take().or_else(|| check_node(props, location));
    });
    let found = found.or_else(|| {
        let field_location = location.field("x-kubernetes-validations");
        (rules > MAX_RULES).then(|| Error::too_many(&field_location.path(), rules, MAX_RULES))
    });
    let found = found.or_else(|| {
        let field_location = location.field("pattern");
        let text = format!("all patterns of a schema may take {MAX_PATTERN_BYTES} bytes together");
        exceeds_pattern_limit(&patterns).then(|| Error::forbidden(&field_location.path(), &text))
    });
    if let Some(error) = found {
        errors.push_with(|| error);
    }
}

fn check_node(props: &Props<'_>, location: &Location<'_>) -> Option<Error> {
    let counts = [
        ("required", props.required.len(), MAX_REQUIRED),
        ("x-kubernetes-list-map-keys", props.list_keys.len(), MAX_LIST_MAP_KEYS),
        ("allOf", props.all_of.len(), MAX_BRANCHES),
        ("anyOf", props.any_of.len(), MAX_BRANCHES),
        ("oneOf", props.one_of.len(), MAX_BRANCHES),
    ];
    if let Some((name, count, max)) = counts.into_iter().find(|(_, count, max)| count > max) {
        return Some(Error::too_many(&location.field(name).path(), count, max));
    }
    let maps = [
        ("properties", props.properties),
        ("patternProperties", props.pattern_properties),
        ("definitions", props.definitions),
        ("dependencies", props.dependencies),
    ];
    maps.into_iter().find_map(|(member, map)| {
        let (name, _) = entries(map).find(|(name, _)| name.len() > MAX_PROPERTY_NAME_BYTES)?;
        let printed_name = cut_at(name.to_owned(), PRINTED_NAME_BYTES);
        Some(Error::too_long(&location.field(member).key(&printed_name).path(), MAX_PROPERTY_NAME_BYTES))
    })
}

/// True if the patterns exceed the limit. Patterns that do not compile are reported at their location.
fn exceeds_pattern_limit(patterns: &HashSet<&str>) -> bool {
    if patterns.len() * MAX_COMPILED_BYTES <= MAX_PATTERN_BYTES {
        return false;
    }
    let mut remaining_bytes = MAX_PATTERN_BYTES;
    !patterns.iter().all(|pattern| {
        let difference = languages::patterns()
            .compiled_bytes(pattern)
            .ok()
            .map(|bytes| remaining_bytes.checked_sub(bytes));
        remaining_bytes = difference.unwrap_or(Some(remaining_bytes)).unwrap_or_default();
        difference != Some(None)
    })
}
