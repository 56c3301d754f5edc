//! Format of the data files.
//!
//! `imports` names packages; `group` and `kinds` describe the served kinds; `types` describes types by package
//! (see [`portico_schema::description`] for type expressions). `copies` lists versions with the types of another version:
//! `{version: v1beta1, of: v1, resources: [...]}`. The build script expands them, and they are off by default.
//! `introduced`, `deprecated`, `removed` and `replacement` of a copy are independent of the copied version.
//! The defaults of fields are the values of most kinds.

use indexmap::IndexMap;
use portico_machinery::expiration::Release;
use portico_schema::description::Packages;
use serde::Deserialize;

use crate::choice::{DefaultPropagation, NameRule};

/// Content of one data file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct DataFile {
    pub imports: IndexMap<String, String>,
    pub group: String,
    pub kinds: Vec<KindEntry>,
    pub types: Packages,
}

/// Kind in one version.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct KindEntry {
    pub kind: String,
    pub version: String,
    /// Full name of the type. The name of the list type, if the kind can be listed, has the suffix `List`.
    #[serde(rename = "type")]
    pub ty: String,
    pub resource: String,
    pub singular: String,
    #[serde(default)]
    pub short_names: Vec<String>,
    #[serde(default)]
    pub categories: Vec<String>,
    pub namespaced: bool,
    pub verbs: Vec<String>,
    #[serde(default)]
    pub subresources: Vec<SubresourceEntry>,
    #[serde(default)]
    pub columns: Vec<ColumnEntry>,
    #[serde(default)]
    pub selectable: Vec<String>,
    /// `group/resource` under which objects are stored; by default, group and resource of the kind.
    pub storage: Option<String>,
    /// Version in which objects are stored; by default, this version.
    pub storage_version: Option<String>,
    /// Version in which kube-apiserver stores objects, if this server does not serve that version.
    pub upstream_storage_version: Option<String>,
    /// False for kinds that are computed, reviews and actions, which are not stored.
    #[serde(default = "default_true")]
    pub stored: bool,
    #[serde(default)]
    pub name_rule: NameRule,
    #[serde(default)]
    pub create_on_update: bool,
    /// True if kube-apiserver does not cache the kind.
    #[serde(default)]
    pub uncached: bool,
    #[serde(default = "default_true")]
    pub unconditional_update: bool,
    #[serde(default)]
    pub delete_answers_object: bool,
    /// True if OpenAPI documents specify a Status as response to DELETE nevertheless.
    #[serde(default)]
    pub delete_documented_as_status: bool,
    #[serde(default)]
    pub graceful: bool,
    #[serde(default)]
    pub dependents: DefaultPropagation,
    /// Paths whose changes increase the generation; `*` matches everything outside metadata. An empty list means that the
    /// generation is always 1. If absent, the server does not set the generation.
    pub generation: Option<Vec<String>>,
    /// True if a change between an empty and an absent collection also increases the generation.
    #[serde(default)]
    pub generation_counts_empty: bool,
    pub status: Option<StatusEntry>,
    /// Fields that a write resets, so that its sender does not own them, by subresource (`main` for the object itself). By
    /// default, they follow from the status subresource.
    #[serde(default)]
    pub resets: IndexMap<String, Vec<String>>,
    /// Fields of subresources that reset all other fields. `*` matches any element of a list.
    #[serde(default)]
    pub keeps: IndexMap<String, Vec<String>>,
    #[serde(default)]
    pub unqualified_finalizers: bool,
    #[serde(default)]
    pub expires: bool,
    /// First release that warns about the kind, such as `1.33`; absent if there is none.
    pub deprecated: Option<Release>,
    /// Recommended replacement in the warning, such as `discovery.k8s.io/v1 EndpointSlice`.
    pub replacement: Option<String>,
    /// True if the kind is served only if `--runtime-config` enables it.
    #[serde(default)]
    pub off: bool,
    /// First release with the kind, such as `1.36`; absent for all releases.
    pub introduced: Option<Release>,
    /// First release without the kind; absent if there is none.
    pub removed: Option<Release>,
}

fn default_true() -> bool {
    true
}

/// Subresource. Its kind is that of the resource unless specified.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct SubresourceEntry {
    pub name: String,
    pub kind: Option<String>,
    pub group: Option<String>,
    pub version: Option<String>,
    pub verbs: Vec<String>,
    /// True if requests are proxied, such as `exec` and `proxy`.
    #[serde(default)]
    pub connect: bool,
    /// True if paths below the subresource are served.
    #[serde(default)]
    pub below: bool,
    /// Query parameters, by their names among the shared parameters of OpenAPI version 2: parameter name, dash, and suffix.
    #[serde(default)]
    pub parameters: IndexMap<String, ParameterEntry>,
}

/// Query parameter of a subresource.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ParameterEntry {
    #[serde(rename = "type")]
    pub ty: String,
    pub about: String,
}

/// Column. Exactly one of `path` and the fields below it specifies the source of the cells (`absent` belongs to `path`).
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ColumnEntry {
    pub name: String,
    #[serde(rename = "type")]
    pub ty: String,
    pub format: String,
    pub priority: i32,
    pub description: String,
    pub path: Option<String>,
    /// Text for an absent value at `path`.
    pub absent: String,
    /// Path of a number that is 0 if absent.
    pub number: Option<String>,
    pub age: Option<String>,
    pub count: Vec<String>,
    /// Path of a list, followed by the field of its elements.
    pub joined: Option<String>,
    pub labels: Option<String>,
    pub selector: Option<String>,
    pub function: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct StatusEntry {
    pub owns: Vec<String>,
    pub keeps_metadata: Vec<String>,
    pub kept_on_create: bool,
}

/// Group in `groups.yaml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct GroupEntry {
    pub group: String,
    pub priority: i32,
    pub versions: IndexMap<String, i32>,
    #[serde(default = "default_true")]
    pub api_service: bool,
}
