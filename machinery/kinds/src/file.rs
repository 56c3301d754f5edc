//! The format of the data files.
//!
//! `imports` names packages; `group` and `kinds` describe what is served; `types` describes types by package
//! (see [`portico_schema::description`] for type expressions). `copies` are versions whose types are those of another:
//! `{version: v1beta1, of: v1, resources: [...]}`, written out when this crate is built; they are off by default. `introduced`, `deprecated`,
//! `removed` and `replacement` of a copy are its own.
//! Defaults of the fields below are what most kinds have.

use indexmap::IndexMap;
use portico_machinery::expiration::Release;
use portico_schema::description::Packages;
use serde::Deserialize;

use crate::choice::{NameRule, Orphaning};

/// One file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct File {
    pub imports: IndexMap<String, String>,
    pub group: String,
    pub kinds: Vec<KindEntry>,
    pub types: Packages,
}

/// A kind in one version.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct KindEntry {
    pub kind: String,
    pub version: String,
    /// The whole name of its type; the type of its list, where it has the verb, is the same with `List` behind.
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
    /// `group/resource` that objects are stored under; absent means the kind's own.
    pub storage: Option<String>,
    /// Absent means this version.
    pub storage_version: Option<String>,
    /// The version in which upstream's server stores it, where that is none which is served here.
    pub upstream_storage_version: Option<String>,
    /// False for what is computed, reviewed or acted upon, and never kept.
    #[serde(default = "yes")]
    pub stored: bool,
    #[serde(default)]
    pub name_rule: NameRule,
    #[serde(default)]
    pub create_on_update: bool,
    /// Whether upstream's server has no cache of it.
    #[serde(default)]
    pub uncached: bool,
    #[serde(default = "yes")]
    pub unconditional_update: bool,
    #[serde(default)]
    pub delete_answers_object: bool,
    /// Whether OpenAPI documents name a Status as the answer of DELETE nevertheless.
    #[serde(default)]
    pub delete_documented_as_status: bool,
    #[serde(default)]
    pub graceful: bool,
    #[serde(default)]
    pub dependents: Orphaning,
    /// Paths whose change counts, `*` for everything outside metadata; none: 1 for ever; absent: never touched.
    pub generation: Option<Vec<String>>,
    /// Whether an empty list or map in the place of none counts, too.
    #[serde(default)]
    pub generation_counts_empty: bool,
    pub status: Option<StatusEntry>,
    /// Fields that a write resets, which nobody comes to own by sending them: by subresource, `main` for the object.
    /// Absent: what the status subresource implies.
    #[serde(default)]
    pub resets: IndexMap<String, Vec<String>>,
    /// For subresources that reset everything but these fields: `*` is any element of a list.
    #[serde(default)]
    pub keeps: IndexMap<String, Vec<String>>,
    #[serde(default)]
    pub unqualified_finalizers: bool,
    #[serde(default)]
    pub expires: bool,
    /// The first release that warns of it, `1.33`; absent: none.
    pub deprecated: Option<Release>,
    /// What it warns to use instead: `discovery.k8s.io/v1 EndpointSlice`.
    pub replacement: Option<String>,
    /// Whether it is served only when it is asked for (`--runtime-config`).
    #[serde(default)]
    pub off: bool,
    /// The first release with it, `1.36`; absent: always.
    pub introduced: Option<Release>,
    /// The first release without it; absent: never.
    pub removed: Option<Release>,
}

fn yes() -> bool {
    true
}

/// A subresource; its kind is the resource's own unless named.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct SubresourceEntry {
    pub name: String,
    pub kind: Option<String>,
    pub group: Option<String>,
    pub version: Option<String>,
    pub verbs: Vec<String>,
    /// Whether requests are handed on to something else: `exec`, `proxy`.
    #[serde(default)]
    pub connect: bool,
    /// Whether paths below it are served.
    #[serde(default)]
    pub below: bool,
    /// What its query takes, by the name that OpenAPI version 2 shares it under: the parameter's name, a dash, a mark.
    #[serde(default)]
    pub parameters: IndexMap<String, ParameterEntry>,
}

/// A parameter of a subresource.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ParameterEntry {
    #[serde(rename = "type")]
    pub ty: String,
    pub about: String,
}

/// A column; exactly one of `path` and the fields below it says where cells come from (`absent` belongs to `path`).
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
    /// What stands for an absent value at `path`.
    pub absent: String,
    /// Where a number stands that is 0 when absent.
    pub number: Option<String>,
    pub age: Option<String>,
    pub count: Vec<String>,
    /// A list and, as the last part, the field of its elements.
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

/// A group in `groups.yaml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct GroupEntry {
    pub group: String,
    pub priority: i32,
    pub versions: IndexMap<String, i32>,
    #[serde(default = "yes")]
    pub api_service: bool,
}
