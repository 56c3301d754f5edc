//! Discovery documents: the legacy lists and the aggregated form (`apidiscovery.k8s.io/v2`).

pub mod merge;

use serde::{Deserialize, Serialize};

use crate::gvk::GroupVersionKind;

/// A group version and its short form, in `APIGroup`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GroupVersionForDiscovery {
    /// `group/version`
    pub group_version: String,
    /// `version`
    pub version: String,
}

/// `APIGroup`; `kind` and `apiVersion` are left out inside a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ApiGroup {
    /// `APIGroup`, or empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// `v1`, or empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// The group.
    pub name: String,
    /// Versions, preferred first.
    pub versions: Vec<GroupVersionForDiscovery>,
    /// The preferred version.
    pub preferred_version: GroupVersionForDiscovery,
}

/// One resource or subresource of an `APIResourceList`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ApiResource {
    /// `flunders` or `flunders/status`.
    pub name: String,
    /// `flunder`, empty for subresources.
    pub singular_name: String,
    /// Whether it lives in namespaces.
    pub namespaced: bool,
    /// The group of the kind where it differs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The version of the kind where it differs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The kind.
    pub kind: String,
    /// What can be done, sorted.
    pub verbs: Vec<String>,
    /// Short names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub short_names: Vec<String>,
    /// Categories, such as `all`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// A hash of the storage version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub storage_version_hash: String,
}

/// `APIResourceList`, the answer of `/apis/G/V`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ApiResourceList {
    /// `APIResourceList`
    pub kind: String,
    /// `v1`, absent in the core group's.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// `group/version`
    pub group_version: String,
    /// The resources.
    pub resources: Vec<ApiResource>,
}

/// The kind that a resource answers with; an empty object when unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResponseKind {
    /// Group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
}

impl From<&GroupVersionKind> for ResponseKind {
    fn from(gvk: &GroupVersionKind) -> Self {
        Self { group: gvk.group.clone(), version: gvk.version.clone(), kind: gvk.kind.clone() }
    }
}

/// One resource of an aggregated version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceDiscovery {
    /// The plural resource.
    pub resource: String,
    /// Always an object, never absent (clients panic otherwise).
    pub response_kind: ResponseKind,
    /// `Namespaced` or `Cluster`.
    pub scope: String,
    /// The singular name.
    pub singular_resource: String,
    /// What can be done.
    pub verbs: Vec<String>,
    /// Short names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub short_names: Vec<String>,
    /// Categories.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// Subresources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subresources: Vec<SubresourceDiscovery>,
}

/// One subresource of an aggregated resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SubresourceDiscovery {
    /// The subresource, such as `status`.
    pub subresource: String,
    /// The kind it answers with.
    pub response_kind: ResponseKind,
    /// What can be done.
    pub verbs: Vec<String>,
}

/// One version of a group in the aggregated document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VersionDiscovery {
    /// The version.
    pub version: String,
    /// Its resources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceDiscovery>,
    /// `Current` or `Stale`.
    pub freshness: String,
}

/// One group in the aggregated document (`APIGroupDiscovery`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupDiscovery {
    /// Its name.
    pub metadata: GroupMetadata,
    /// Its versions, preferred first.
    pub versions: Vec<VersionDiscovery>,
}

/// The aggregated document as it is read (`APIGroupDiscoveryList`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct GroupDiscoveryList {
    /// The groups.
    pub items: Vec<GroupDiscovery>,
}

/// The metadata of a group in the aggregated document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupMetadata {
    /// The group, left out for core.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
}

impl GroupDiscovery {
    /// A group of this name.
    #[must_use]
    pub fn new(name: &str, versions: Vec<VersionDiscovery>) -> Self {
        Self { metadata: GroupMetadata { name: name.to_owned() }, versions }
    }
}

/// Which server of the chain a group version's discovery comes from; the lower one wins per group version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// A backend behind an APIService (0).
    Aggregator,
    /// Built in (100).
    #[default]
    Builtin,
    /// A custom resource definition (200).
    Crd,
}

/// What is known of one group version, as the stream carries it; documents travel by content hash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// The group, empty for core.
    pub group: String,
    /// The version.
    pub version: String,
    /// Who serves it.
    pub source: Source,
    /// Whether the last fetch failed and an older answer is shown.
    pub stale: bool,
    /// SHA-256 (hex) of the JSON of its [`VersionDiscovery`].
    pub discovery: String,
    /// SHA-256 (hex) of the JSON of its [`ApiResourceList`]; empty for backends, which answer themselves.
    pub resource_list: String,
    /// SHA-256 (hex) of its OpenAPI v3 document; empty when there is none.
    pub openapi_v3: String,
    /// SHA-256 (hex) of its part of OpenAPI v2; empty when there is none.
    pub openapi_v2: String,
    /// The backend's own ETag or hash of its v3 document, used in `?hash=`; empty for local ones.
    pub openapi_v3_etag: String,
}

impl Source {
    /// The word in keys and logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Aggregator => "aggregator",
            Self::Builtin => "builtin",
            Self::Crd => "crd",
        }
    }
}

impl Served {
    /// The key of its stream entry: one group version may have an entry of each source.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}/{}/{}", self.source.as_str(), self.group, self.version)
    }

    /// The documents that the entry names, without those it does not have.
    pub fn documents(&self) -> impl Iterator<Item = &str> {
        let all = [&self.discovery, &self.resource_list, &self.openapi_v3, &self.openapi_v2];
        all.into_iter().map(String::as_str).filter(|hash| !hash.is_empty())
    }
}
