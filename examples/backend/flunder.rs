//! The kind Flunder and its validation.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub const GROUP: &str = "wardle.example.com";
pub const VERSION: &str = "v1alpha1";
pub const KIND: &str = "Flunder";
pub const RESOURCE: &str = "flunders";
pub const API_VERSION: &str = "wardle.example.com/v1alpha1";

/// An object that refers to another object.
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

/// Desired state, written by users.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// Name of the other object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reference: String,
}

/// Users that the front proxy named, written by the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub created_by: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub changed_by: String,
}

/// The fields of ObjectMeta that this server uses.
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
    /// Returns the first invalid field with a message, or `None` if the object is valid.
    pub fn validation_error(&self) -> Option<(&'static str, String)> {
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
