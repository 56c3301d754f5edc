//! Generates OpenAPI documents of described kinds: complete for version 3, and for version 2 a part to be merged.
//!
//! One traversal lists the operations ([`operation`]) and the types that they reach ([`types`]); the two versions differ only in
//! the writers ([`write_v3`], [`write_v2`]). Descriptions of types come from [`descriptions`], those of operations and parameters
//! from this module.

mod definition;
mod meta;
mod names;
mod operation;
mod parameter;
mod paths;
mod schema;
mod scheme;
mod types;
mod words;
mod write_v2;
mod write_v3;

use std::collections::BTreeMap;

use portico_machinery::GroupVersion;
use serde_json::value::RawValue;

use super::Described;
use definition::Definition;
pub(crate) use meta::META;
use names::Names;
pub(crate) use schema::{Dialect, KindRef};
use schema::{Pen, definition};
use types::Reached;
pub(crate) use words::Words;

/// Encoded types of custom resources, by name. They refer to [`SHARED_META_TYPES`].
pub(crate) type Own = BTreeMap<String, Box<RawValue>>;

/// Types of `meta/v1` that types of custom resources refer to.
const SHARED: [&str; 2] = ["ObjectMeta", "ListMeta"];

/// Returns the version 3 document; `version` is the Kubernetes version in `info`.
pub(crate) fn v3(described: &Described<'_>, own: Own, words: Option<&Words>, version: &str) -> Vec<u8> {
    let paths = paths::all(described);
    let types = types::reached(described, &known(described), &paths, shared(&own));
    write_v3::document(described.custom, &paths, |pen| definitions(pen, &types, own), words, version)
}

/// Returns the part of the version 2 document.
pub(crate) fn v2(described: &Described<'_>, own: Own, words: Option<&Words>) -> Vec<u8> {
    let paths = paths::all(described);
    let types = types::reached(described, &scheme::of_server(), &paths, shared(&own));
    write_v2::part(&paths, |pen| definitions(pen, &types, own), words)
}

/// Returns the group versions in a version 3 document: the core group's and the document's own. Documents of custom resources
/// contain those of all client-go types, as upstream.
fn known(described: &Described<'_>) -> Vec<GroupVersion> {
    let own = described.group_version;
    let core = GroupVersion::new("", "v1");
    match described.custom {
        true => scheme::of_client(),
        false if own.is_core() => vec![core],
        false => vec![core, own.clone()],
    }
}

fn shared(own: &Own) -> impl Iterator<Item = String> {
    let names: &[&str] = if own.is_empty() { &[] } else { &SHARED };
    names.iter().map(|name| format!("{META}{name}"))
}

fn definitions(pen: Pen<'_>, types: &BTreeMap<String, Reached>, own: Own) -> BTreeMap<String, Definition> {
    let typed = types.iter().filter_map(|(name, ty)| {
        let schema = definition(pen, ty)?;
        Some((name.clone(), Definition::Typed(Box::new(schema))))
    });
    // Built-in types replace custom types with the same name.
    own.into_iter().map(|(name, schema)| (name, Definition::Own(schema))).chain(typed).collect()
}

fn names(described: &Described<'_>) -> Names {
    Names::new(described.group_version)
}
