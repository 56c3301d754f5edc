//! OpenAPI documents of kinds as data: version 3 whole, version 2 as a part to be merged.
//!
//! One walk lists the operations ([`operation`]) and the types they reach ([`types`]); the two versions differ only in
//! how these are written ([`v3`], [`v2`]). Descriptions of types come from [`words`], of operations and parameters from here.

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

/// Types that are written elsewhere, by name: those of custom resources. They refer to [`SHARED`] types.
pub(crate) type Own = BTreeMap<String, Box<RawValue>>;

/// The types of `meta/v1` that types of custom resources refer to.
const SHARED: [&str; 2] = ["ObjectMeta", "ListMeta"];

/// The whole version 3 document; `version` is the Kubernetes version in `info`.
pub(crate) fn v3(described: &Described<'_>, own: Own, words: Option<&Words>, version: &str) -> Vec<u8> {
    let paths = paths::all(described);
    let types = types::reached(described, &known(described), &paths, shared(&own));
    write_v3::document(described.custom, &paths, |pen| definitions(pen, &types, own), words, version)
}

/// The part of version 2.
pub(crate) fn v2(described: &Described<'_>, own: Own, words: Option<&Words>) -> Vec<u8> {
    let paths = paths::all(described);
    let types = types::reached(described, &scheme::of_server(), &paths, shared(&own));
    write_v2::part(&paths, |pen| definitions(pen, &types, own), words)
}

/// The group versions that a version 3 document knows: the core group's and its own, or, where upstream writes it along
/// client-go's types, all of those.
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
    // Where names clash the built-in type is meant.
    own.into_iter().map(|(name, schema)| (name, Definition::Own(schema))).chain(typed).collect()
}

fn names(described: &Described<'_>) -> Names {
    Names::new(described.group_version)
}
