//! OpenAPI of custom resources: adapts the schemas of definitions to OpenAPI. Paths are generated as for all kinds.
//!
//! A definition whose schema cannot be decoded is described as an arbitrary object, without affecting other definitions.

mod additions;
mod common_descriptions;
mod dialects;
mod schema_props;

use std::sync::Arc;

use portico_registry::definition::schema_of;
use serde_json::value::to_raw_value;

use super::Definition;
use crate::local::openapi::{self, CustomTypes, Descriptions, Dialect};
use crate::local::{GroupDescription, KindDescription};
use additions::KindTypes;
use common_descriptions::CommonDescriptions;
use schema_props::SchemaProps;

/// Returns the version 3 document of a group version. `descriptions` is `None` to omit descriptions of operations.
pub(super) fn v3_document(
    group: &GroupDescription<'_>,
    members: &[Arc<Definition>],
    descriptions: Option<&Descriptions>,
) -> Vec<u8> {
    openapi::v3_document(group, custom_types(group, members, Dialect::V3), descriptions, "")
}

/// Returns the part of the version 2 document of a group version.
pub(super) fn v2_part(
    group: &GroupDescription<'_>,
    members: &[Arc<Definition>],
    descriptions: Option<&Descriptions>,
) -> Vec<u8> {
    openapi::v2_part(group, custom_types(group, members, Dialect::V2), descriptions)
}

/// Returns the types of all definitions: each kind and its list.
fn custom_types(group: &GroupDescription<'_>, members: &[Arc<Definition>], dialect: Dialect) -> CustomTypes {
    let (descriptions, mut types) = (Descriptions::open(), CustomTypes::new());
    for kind in &group.kinds {
        let Some(member) = members.iter().find(|m| m.facts().names().plural == kind.resource) else {
            continue;
        };
        let (stored, common_descriptions) =
            (member.stored_object(), CommonDescriptions::new(kind, &descriptions));
        let resource = KindTypes { kind, selectable: member.selectable_fields(&kind.gvk.version), dialect };
        let schema = version_schema(&stored, kind);
        let preserves = member.facts().preserves_unknown_fields();
        let kind_schema = resource.type_schema(schema, preserves, &common_descriptions);
        let list = resource.list_schema(&common_descriptions);
        // Encoding maps with string keys cannot fail.
        types.extend(to_raw_value(&kind_schema).map(|schema| (kind.type_name.clone(), schema)));
        types.extend(to_raw_value(&list).map(|schema| (kind.list_type(), schema)));
    }
    types
}

/// Parses the schema of a version from the stored definition; `None` if there is none that OpenAPI can express.
fn version_schema<'a>(
    stored: &'a portico_registry::StoredObject,
    kind: &KindDescription<'_>,
) -> Option<SchemaProps<'a>> {
    let schema = schema_of(stored.record().value.json(), &kind.gvk.version);
    let parsed = schema.and_then(|schema| schema.map(SchemaProps::parse).transpose());
    let parsed = parsed.inspect_err(|error| {
        tracing::warn!(
            kind = %kind.gvk.kind,
            group = %kind.gvk.group,
            %error,
            "cannot publish a schema in OpenAPI, schema skipped"
        );
    });
    parsed.ok().flatten().filter(SchemaProps::is_structural)
}
