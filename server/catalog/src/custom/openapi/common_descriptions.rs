//! Descriptions of the fields that all custom resources have, with upstream's texts.

use serde_json::value::{RawValue, to_raw_value};

use crate::local::KindDescription;
use crate::local::openapi::{Descriptions, META_PREFIX};

/// URL of upstream's API conventions.
const CONVENTIONS: &str =
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";

/// Descriptions as JSON strings.
pub(super) struct CommonDescriptions {
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

impl CommonDescriptions {
    /// Creates the descriptions for a kind. Those of `apiVersion` and `kind` come from the built-in types.
    pub fn new(kind: &KindDescription<'_>, descriptions: &Descriptions) -> Self {
        let status = descriptions.of_type(&format!("{META_PREFIX}Status"));
        let status_description = |field: &str| to_json(status.field(field).unwrap_or_default());
        let with_link =
            |text: &str, anchor: &str| to_json(&format!("{text} More info: {CONVENTIONS}#{anchor}"));
        Self {
            api_version: status_description("apiVersion"),
            kind: status_description("kind"),
            metadata: with_link("Standard object's metadata.", "metadata"),
            list: to_json(&format!("{} is a list of {}", kind.list_kind, kind.gvk.kind)),
            items: to_json(&format!("List of {}. More info: {CONVENTIONS}", kind.resource)),
            list_metadata: with_link("Standard list metadata.", "types-kinds"),
            embedded_api_version: with_link(
                "apiVersion defines the versioned schema of this representation of an object.",
                "resources",
            ),
            embedded_kind: with_link(
                "kind is a string value representing the type of this object. In CamelCase.",
                "types-kinds",
            ),
        }
    }
}

/// Encodes a string as JSON.
fn to_json(text: &str) -> Box<RawValue> {
    // Encoding strings cannot fail.
    to_raw_value(text).unwrap_or_default()
}
