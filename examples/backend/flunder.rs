//! The kind, and what it refuses.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub const GROUP: &str = "wardle.example.com";
pub const VERSION: &str = "v1alpha1";
pub const KIND: &str = "Flunder";
pub const RESOURCE: &str = "flunders";
pub const API_VERSION: &str = "wardle.example.com/v1alpha1";

/// A thing that refers to another.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Flunder {
    #[serde(default)]
    pub api_version: String,
    #[serde(default)]
    pub kind: String,
    #[serde(default)]
    pub metadata: Metadata,
    #[serde(default)]
    pub spec: Spec,
    #[serde(default)]
    pub status: Status,
}

/// What users write.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// What it refers to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reference: String,
}

/// What the server writes: it shows who the aggregator said was calling.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub created_by: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub changed_by: String,
}

/// ObjectMeta, as far as flunders need it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    #[serde(default)]
    pub name: String,
    #[serde(default, skip_serializing)]
    pub generate_name: String,
    #[serde(default)]
    pub namespace: String,
    #[serde(default)]
    pub uid: String,
    #[serde(default)]
    pub resource_version: String,
    #[serde(default)]
    pub generation: i64,
    #[serde(default)]
    pub creation_timestamp: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl Flunder {
    /// Why it cannot be stored: field and message.
    pub fn invalid(&self) -> Option<(&'static str, String)> {
        let legal =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'.';
        let name = &self.metadata.name;
        if name.is_empty() {
            return Some(("metadata.name", "Required value: name or generateName is required".to_owned()));
        }
        if name.len() > 253
            || !name.bytes().all(legal)
            || name.starts_with(['-', '.'])
            || name.ends_with(['-', '.'])
        {
            return Some((
                "metadata.name",
                format!("Invalid value: {name:?}: must be a lower-case DNS subdomain"),
            ));
        }
        (self.spec.reference.len() > 253)
            .then(|| ("spec.reference", "Too long: may not be more than 253 bytes".to_owned()))
    }
}
