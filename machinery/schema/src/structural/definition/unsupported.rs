//! Members that a schema with a structural form must not have, in upstream's order.

use serde_json::Value;

use super::props::{Items, Props};
use crate::structural::compile_error::CompileError;

/// Returns the error for the first unsupported member of this node.
pub(in crate::structural) fn unsupported(node: &Value) -> Option<CompileError> {
    unsupported_in(&Props::of(node))
}

pub(super) fn unsupported_in(props: &Props<'_>) -> Option<CompileError> {
    let unsupported = [
        (!props.id.is_empty(), "id"),
        (!props.schema.is_empty(), "schema"),
        (props.reference.is_some_and(|text| !text.is_empty()), "$ref"),
        (props.pattern_properties.is_some(), "patternProperties"),
        (props.dependencies.is_some(), "dependencies"),
        (props.additional_items.is_some(), "additionalItems"),
        (props.definitions.is_some(), "definitions"),
    ];
    if let Some((_, name)) = unsupported.into_iter().find(|(is, _)| *is) {
        return Some(CompileError::Unsupported(name));
    }
    if props.preserve_unknown == Some(false) {
        return Some(CompileError::PreserveFalse);
    }
    let several = matches!(props.items, Some(Items::Many(list)) if !list.is_empty());
    several.then_some(CompileError::Items)
}
