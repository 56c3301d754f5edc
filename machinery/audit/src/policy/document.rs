//! Serialized form of a policy file.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

pub(super) type UnknownFields = BTreeMap<String, IgnoredAny>;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PolicyFile {
    #[serde(deserialize_with = "or_empty")]
    pub(super) api_version: String,
    #[serde(deserialize_with = "or_empty")]
    pub(super) kind: String,
    #[serde(rename = "metadata")]
    _metadata: IgnoredAny,
    #[serde(deserialize_with = "or_empty")]
    pub(super) rules: Vec<RuleFile>,
    #[serde(deserialize_with = "or_empty")]
    pub(super) omit_stages: Vec<String>,
    #[serde(deserialize_with = "or_empty")]
    pub(super) omit_managed_fields: bool,
    #[serde(flatten)]
    pub(super) unknown: UnknownFields,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct RuleFile {
    #[serde(deserialize_with = "or_empty")]
    pub(super) level: String,
    #[serde(deserialize_with = "or_empty")]
    pub(super) users: Vec<String>,
    #[serde(deserialize_with = "or_empty")]
    pub(super) user_groups: Vec<String>,
    #[serde(deserialize_with = "or_empty")]
    pub(super) verbs: Vec<String>,
    #[serde(deserialize_with = "or_empty")]
    pub(super) resources: Vec<ResourcesFile>,
    #[serde(deserialize_with = "or_empty")]
    pub(super) namespaces: Vec<String>,
    #[serde(rename = "nonResourceURLs", deserialize_with = "or_empty")]
    pub(super) non_resource_urls: Vec<String>,
    #[serde(deserialize_with = "or_empty")]
    pub(super) omit_stages: Vec<String>,
    pub(super) omit_managed_fields: Option<bool>,
    #[serde(flatten)]
    pub(super) unknown: UnknownFields,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ResourcesFile {
    #[serde(deserialize_with = "or_empty")]
    pub(super) group: String,
    #[serde(deserialize_with = "or_empty")]
    pub(super) resources: Vec<String>,
    #[serde(deserialize_with = "or_empty")]
    pub(super) resource_names: Vec<String>,
    #[serde(flatten)]
    pub(super) unknown: UnknownFields,
}

/// Deserializes a value; `null` becomes the default, as in Go.
fn or_empty<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}
