//! OpenAPI documents of kinds as data: version 3 whole, version 2 as a part to be merged.
//!
//! One walk lists the operations ([`operation`]) and the types they reach ([`types`]); the two versions differ only in
//! how these are written ([`v3`], [`v2`]). Descriptions of types come from [`words`], of operations and parameters from here.

mod names;
mod operation;
mod parameter;
mod paths;
mod schema;
mod types;
mod words;
mod write_v2;
mod write_v3;

use super::Fragment;
use names::Names;
pub(super) use words::Words;

/// The whole version 3 document.
pub(super) fn v3(fragment: &Fragment, words: Option<&Words>, version: &str) -> Vec<u8> {
    let paths = paths::all(fragment);
    write_v3::document(&paths, &types::reached(fragment, &paths), words, version)
}

/// The part of version 2.
pub(super) fn v2(fragment: &Fragment, words: Option<&Words>) -> Vec<u8> {
    let paths = paths::all(fragment);
    write_v2::part(&paths, &types::reached(fragment, &paths), words)
}

/// Names of the `meta/v1` types that operations use.
pub(in crate::local) const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

fn names(fragment: &Fragment) -> Names {
    Names::new(&fragment.group_version)
}
