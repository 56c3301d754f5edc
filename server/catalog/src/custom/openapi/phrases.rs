//! Descriptions of the fields that all custom resources have, with upstream's texts.

use serde_json::value::{RawValue, to_raw_value};

use crate::local::Kind;
use crate::local::openapi::{META, Words};

/// URL of upstream's API conventions.
const CONVENTIONS: &str =
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";

/// Descriptions as JSON strings.
pub(super) struct Phrases {
    pub api_version: Box<RawValue>,
    pub kind: Box<RawValue>,
    pub metadata: Box<RawValue>,
    pub list: Box<RawValue>,
    pub items: Box<RawValue>,
    pub list_metadata: Box<RawValue>,
    /// Description for a resource that is embedded in another.
    pub embedded_api_version: Box<RawValue>,
    pub embedded_kind: Box<RawValue>,
}

impl Phrases {
    /// Creates the descriptions for a kind. Those of `apiVersion` and `kind` come from the built-in types.
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

/// Encodes a string as JSON.
fn json(text: &str) -> Box<RawValue> {
    // Encoding strings cannot fail.
    to_raw_value(text).unwrap_or_default()
}
