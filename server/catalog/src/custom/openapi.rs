//! OpenAPI of custom resources: adapts the schemas of definitions to OpenAPI. Paths are generated as for all kinds.
//!
//! A definition whose schema cannot be decoded is described as an arbitrary object, without affecting other definitions.

mod additions;
mod dialects;
mod phrases;
mod props;

use std::sync::Arc;

use portico_registry::definition::schema_of;
use serde_json::value::to_raw_value;

use super::Definition;
use crate::local::openapi::{self, Dialect, Own, Words};
use crate::local::{Described, Kind};
use additions::Resource;
use phrases::Phrases;
use props::Props;

/// Returns the version 3 document of a group version. `words` is `None` to omit descriptions of operations.
pub(super) fn v3(described: &Described<'_>, members: &[Arc<Definition>], words: Option<&Words>) -> Vec<u8> {
    openapi::v3(described, types(described, members, Dialect::V3), words, "")
}

/// Returns the part of the version 2 document of a group version.
pub(super) fn v2(described: &Described<'_>, members: &[Arc<Definition>], words: Option<&Words>) -> Vec<u8> {
    openapi::v2(described, types(described, members, Dialect::V2), words)
}

/// Returns the types of all definitions: each kind and its list.
fn types(described: &Described<'_>, members: &[Arc<Definition>], dialect: Dialect) -> Own {
    let (words, mut types) = (Words::open(), Own::new());
    for kind in &described.kinds {
        let Some(member) = members.iter().find(|m| m.facts().names().plural == kind.resource) else {
            continue;
        };
        let (stored, phrases) = (member.stored(), Phrases::new(kind, &words));
        let resource = Resource { kind, selectable: member.selectable(&kind.gvk.version), dialect };
        let schema = member_schema(&stored, kind);
        let preserves = member.facts().preserves_unknown_fields();
        let one = resource.complete(schema, preserves, &phrases);
        let list = resource.list(&phrases);
        // Encoding maps with string keys cannot fail.
        types.extend(to_raw_value(&one).map(|schema| (kind.type_name.clone(), schema)));
        types.extend(to_raw_value(&list).map(|schema| (kind.list_type(), schema)));
    }
    types
}

/// Parses the schema of a version from the stored definition; `None` if there is none that OpenAPI can express.
fn member_schema<'a>(stored: &'a portico_registry::Stored, kind: &Kind<'_>) -> Option<Props<'a>> {
    let schema = schema_of(stored.record().value.json(), &kind.gvk.version);
    let read = schema.and_then(|schema| schema.map(Props::read).transpose());
    let read = read.inspect_err(|error| {
        tracing::warn!(
            kind = %kind.gvk.kind,
            group = %kind.gvk.group,
            %error,
            "cannot publish a schema in OpenAPI, schema skipped"
        );
    });
    read.ok().flatten().filter(Props::is_structural)
}
