//! The descriptions of the fields that all custom resources have: upstream's words, as clients show them.

use serde_json::value::{RawValue, to_raw_value};

use crate::local::Kind;
use crate::local::openapi::{META, Words};

/// Where upstream explains its conventions.
const CONVENTIONS: &str =
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";

/// See the module; JSON strings.
pub(super) struct Phrases {
    pub api_version: Box<RawValue>,
    pub kind: Box<RawValue>,
    pub metadata: Box<RawValue>,
    pub list: Box<RawValue>,
    pub items: Box<RawValue>,
    pub list_metadata: Box<RawValue>,
    /// Of a resource in another one.
    pub embedded_api_version: Box<RawValue>,
    pub embedded_kind: Box<RawValue>,
}

impl Phrases {
    /// For the types of a kind. What all objects say of `apiVersion` and `kind` comes from the words of built-in types.
    pub fn new(kind: &Kind<'_>, words: &Words) -> Self {
        let status = words.of(&format!("{META}Status"));
        let of_all = |field: &str| json(status.field(field).unwrap_or_default());
        let more = |what: &str, anchor: &str| json(&format!("{what} More info: {CONVENTIONS}#{anchor}"));
        Self {
            api_version: of_all("apiVersion"),
            kind: of_all("kind"),
            metadata: more("Standard object's metadata.", "metadata"),
            list: json(&format!("{} is a list of {}", kind.list_kind, kind.gvk.kind)),
            items: json(&format!("List of {}. More info: {CONVENTIONS}", kind.resource)),
            list_metadata: more("Standard list metadata.", "types-kinds"),
            embedded_api_version: more(
                "apiVersion defines the versioned schema of this representation of an object.",
                "resources",
            ),
            embedded_kind: more(
                "kind is a string value representing the type of this object. In CamelCase.",
                "types-kinds",
            ),
        }
    }
}

/// A JSON string.
fn json(text: &str) -> Box<RawValue> {
    // Strings always encode.
    to_raw_value(text).unwrap_or_default()
}
