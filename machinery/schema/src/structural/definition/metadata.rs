//! `apiVersion`, `kind` and `metadata` at the root and in embedded resources: implied, with few restrictions allowed.

use serde_json::Value;

use super::errors::Errors;
use super::props::Props;
use crate::structural::location::Location;

pub(super) fn validate(props: &Props<'_>, root: bool, location: &Location<'_>, errors: &mut Errors) {
    let (field_location, resource) = (location.field("properties"), root || props.embedded);
    for name in ["kind", "apiVersion"] {
        if let Some(ty) = props.property(name).map(|schema| Props::of(schema).ty).filter(|ty| *ty != "string")
            && resource
        {
            field_location.key(name).field("type").invalid(ty, "must be string", errors);
        }
    }
    let Some(metadata) = props.property("metadata") else { return };
    let field_location = field_location.key("metadata");
    let ty = Props::of(metadata).ty;
    if resource && ty != "object" {
        field_location.field("type").invalid(ty, "must be object", errors);
    }
    if root && !restricts_only_names(metadata) {
        let text = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        field_location.forbidden(text, errors);
    }
}

/// True if metadata has only a type, properties `name` and `generateName`, and a default, which another rule rejects.
fn restricts_only_names(metadata: &Value) -> bool {
    metadata.as_object().into_iter().flatten().all(|(member, value)| match member.as_str() {
        "type" | "default" => true,
        "properties" => value
            .as_object()
            .is_some_and(|names| names.keys().all(|name| matches!(name.as_str(), "name" | "generateName"))),
        _ => false,
    })
}
