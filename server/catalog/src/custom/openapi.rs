//! OpenAPI of custom resources: the types that definitions bring along, as OpenAPI wants them (spec 7), beside the paths
//! that all kinds have.
//!
//! A definition whose schema cannot be read has an object of any kind in its place: it breaks only itself.

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

/// The whole version 3 document of a group version; operations go without `words`, types never.
pub(super) fn v3(described: &Described<'_>, members: &[Arc<Definition>], words: Option<&Words>) -> Vec<u8> {
    openapi::v3(described, types(described, members, Dialect::V3), words, "")
}

/// Its part of version 2.
pub(super) fn v2(described: &Described<'_>, members: &[Arc<Definition>], words: Option<&Words>) -> Vec<u8> {
    openapi::v2(described, types(described, members, Dialect::V2), words)
}

/// The types of all members: each the kind and its list.
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
        // Maps with string keys always encode.
        types.extend(to_raw_value(&one).map(|schema| (kind.type_name.clone(), schema)));
        types.extend(to_raw_value(&list).map(|schema| (kind.list_type(), schema)));
    }
    types
}

/// The schema of a version, read off the definition's bytes; nothing when it has none that OpenAPI can express.
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
