//! Discovery documents: the legacy lists and the aggregated form (`apidiscovery.k8s.io/v2`).

pub mod merge;

use serde::{Deserialize, Serialize};

use crate::gvk::GroupVersionKind;

/// Group version and its short form, in `APIGroup`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GroupVersionForDiscovery {
    /// `group/version`
    pub group_version: String,
    /// `version`
    pub version: String,
}

/// `APIGroup`; `kind` and `apiVersion` are omitted inside a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ApiGroup {
    /// `APIGroup`, or empty inside a list.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// `v1`, or empty inside a list.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Name of the group.
    pub name: String,
    /// Versions, preferred first.
    pub versions: Vec<GroupVersionForDiscovery>,
    /// Preferred version.
    pub preferred_version: GroupVersionForDiscovery,
}

/// Resource or subresource of an `APIResourceList`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ApiResource {
    /// `flunders` or `flunders/status`.
    pub name: String,
    /// `flunder`, empty for subresources.
    pub singular_name: String,
    /// True if the resource is namespaced.
    pub namespaced: bool,
    /// Group of the kind, if it differs from that of the list.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Version of the kind, if it differs from that of the list.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Kind of the objects.
    pub kind: String,
    /// Supported verbs, sorted.
    pub verbs: Vec<String>,
    /// Short names of the resource.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub short_names: Vec<String>,
    /// Categories, such as `all`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// Hash of the storage version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub storage_version_hash: String,
}

/// `APIResourceList`, the response of `/apis/G/V`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ApiResourceList {
    /// `APIResourceList`
    pub kind: String,
    /// `v1`, empty for the core group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// `group/version`
    pub group_version: String,
    /// Resources of the group version.
    pub resources: Vec<ApiResource>,
}

/// Kind of the responses of a resource; an empty object if unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResponseKind {
    /// API group of the kind.
    pub group: String,
    /// API version of the kind.
    pub version: String,
    /// Name of the kind.
    pub kind: String,
}

impl From<&GroupVersionKind> for ResponseKind {
    fn from(gvk: &GroupVersionKind) -> Self {
        Self { group: gvk.group.clone(), version: gvk.version.clone(), kind: gvk.kind.clone() }
    }
}

/// Resource of a version in the aggregated document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceDiscovery {
    /// Plural name of the resource.
    pub resource: String,
    /// Kind of the responses. Always an object, because clients panic if it is absent.
    pub response_kind: ResponseKind,
    /// `Namespaced` or `Cluster`.
    pub scope: String,
    /// Singular name of the resource.
    pub singular_resource: String,
    /// Supported verbs.
    pub verbs: Vec<String>,
    /// Short names of the resource.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub short_names: Vec<String>,
    /// Categories of the resource.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// Subresources of the resource.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subresources: Vec<SubresourceDiscovery>,
}

/// Subresource of a resource in the aggregated document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SubresourceDiscovery {
    /// Name of the subresource, such as `status`.
    pub subresource: String,
    /// Kind of the responses.
    pub response_kind: ResponseKind,
    /// Supported verbs.
    pub verbs: Vec<String>,
}

/// Version of a group in the aggregated document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VersionDiscovery {
    /// Version name.
    pub version: String,
    /// Resources of the version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceDiscovery>,
    /// `Current` or `Stale`.
    pub freshness: String,
}

/// Group in the aggregated document (`APIGroupDiscovery`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupDiscovery {
    /// Metadata with the group name.
    pub metadata: GroupMetadata,
    /// Versions, preferred first.
    pub versions: Vec<VersionDiscovery>,
}

/// Aggregated document in the form of a client (`APIGroupDiscoveryList`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct GroupDiscoveryList {
    /// Groups of the document.
    pub items: Vec<GroupDiscovery>,
}

/// Metadata of a group in the aggregated document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupMetadata {
    /// Group name, omitted for core.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
}

impl GroupDiscovery {
    /// Creates a group with this name.
    #[must_use]
    pub fn new(name: &str, versions: Vec<VersionDiscovery>) -> Self {
        Self { metadata: GroupMetadata { name: name.to_owned() }, versions }
    }
}

/// Server in the delegation chain that provides the discovery of a group version; the lower one wins per group version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// Backend behind an APIService (0).
    Aggregator,
    /// Built-in API (100).
    #[default]
    Builtin,
    /// Custom resource definition (200).
    Crd,
}

/// Discovery of one group version in the configuration stream; documents are referenced by content hash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServedVersion {
    /// Group, empty for core.
    pub group: String,
    /// Version of the group.
    pub version: String,
    /// Server that provides the group version.
    pub source: Source,
    /// True if the last fetch failed and an older document is served.
    pub stale: bool,
    /// SHA-256 (hex) of the JSON of the [`VersionDiscovery`].
    pub discovery: String,
    /// SHA-256 (hex) of the JSON of the [`ApiResourceList`]; empty for backends, which serve it themselves.
    pub resource_list: String,
    /// SHA-256 (hex) of the OpenAPI v3 document; empty if there is none.
    pub openapi_v3: String,
    /// SHA-256 (hex) of the part of the OpenAPI v2 document; empty if there is none.
    pub openapi_v2: String,
    /// ETag or hash of the backend's v3 document, used in `?hash=`; empty for local group versions.
    pub openapi_v3_etag: String,
}

impl Source {
    /// Returns the name in keys and logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Aggregator => "aggregator",
            Self::Builtin => "builtin",
            Self::Crd => "crd",
        }
    }
}

impl ServedVersion {
    /// Returns the key of the stream entry. One group version can have an entry for each source.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}/{}/{}", self.source.as_str(), self.group, self.version)
    }

    /// Returns the hashes of the referenced documents, without absent ones.
    pub fn documents(&self) -> impl Iterator<Item = &str> {
        let all = [&self.discovery, &self.resource_list, &self.openapi_v3, &self.openapi_v2];
        all.into_iter().map(String::as_str).filter(|hash| !hash.is_empty())
    }
}
