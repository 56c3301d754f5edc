//! What serving needs to know of a definition, read off its bytes without looking into its schemas.

use portico_machinery::{GroupKind, GroupResource};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::definition::{ESTABLISHED, NAMES_ACCEPTED, TERMINATING};
use crate::webhooks::ClientConfig;

/// A CustomResourceDefinition but for its schemas, which stay bytes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Facts {
    metadata: Metadata,
    spec: Spec,
    status: State,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: String,
    uid: String,
    generation: i64,
    deletion_timestamp: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    group: String,
    scope: String,
    preserve_unknown_fields: bool,
    versions: Box<[Version]>,
    conversion: Conversion,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct State {
    accepted_names: Names,
    conditions: Conditions,
}

/// The conditions that serving asks for: which of them are `True`.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(from = "Option<Vec<Condition>>")]
struct Conditions {
    names_accepted: bool,
    established: bool,
    terminating: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

impl From<Option<Vec<Condition>>> for Conditions {
    /// Null stands before the first one.
    fn from(reported: Option<Vec<Condition>>) -> Self {
        let reported = reported.unwrap_or_default();
        let is = |kind: &str| reported.iter().any(|c| c.kind == kind && c.status == "True");
        Self {
            names_accepted: is(NAMES_ACCEPTED),
            established: is(ESTABLISHED),
            terminating: is(TERMINATING),
        }
    }
}

/// Under which names a definition asks to be served, or is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Names {
    /// The resource of paths.
    pub plural: String,
    /// One of them.
    pub singular: String,
    /// The kind.
    pub kind: String,
    /// The kind of lists.
    pub list_kind: String,
    /// Short names.
    pub short_names: Vec<String>,
    /// Categories.
    pub categories: Vec<String>,
}

/// One version of a definition.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Version {
    /// Its name.
    pub name: String,
    /// Whether requests may use it.
    pub served: bool,
    /// Whether objects are stored in it.
    pub storage: bool,
    /// Whether requests are warned.
    pub deprecated: bool,
    /// The words of the warning, when they are not upstream's.
    pub deprecation_warning: Option<String>,
    /// Which subresources there are.
    pub subresources: Subresources,
    /// The columns of tables besides the name.
    pub additional_printer_columns: Box<[PrinterColumn]>,
    /// What field selectors may name.
    pub selectable_fields: Box<[SelectableField]>,
}

/// The subresources of a version.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Subresources {
    /// Whether there is `/status`.
    pub status: Option<IgnoredAny>,
    /// Where the parts of `/scale` stand.
    pub scale: Option<ScalePaths>,
}

/// Where the parts of a scale stand, as dotted paths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ScalePaths {
    /// Below `.spec.`.
    pub spec_replicas_path: String,
    /// Below `.status.`.
    pub status_replicas_path: String,
    /// Below either, when there is one.
    pub label_selector_path: Option<String>,
}

/// A column of tables.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PrinterColumn {
    /// What stands above it.
    pub name: String,
    /// `integer`, `number`, `string`, `boolean` or `date`.
    #[serde(rename = "type")]
    pub kind: String,
    /// An OpenAPI format.
    pub format: String,
    /// For people.
    pub description: String,
    /// Above 0: only shown when asked for more.
    pub priority: i32,
    /// Where cells come from, in kubectl's dialect without braces.
    pub json_path: String,
}

/// What a field selector may name.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SelectableField {
    /// A simple path with a leading dot.
    pub json_path: String,
}

/// How objects come from one version into another.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Conversion {
    /// `None` or `Webhook`.
    pub strategy: String,
    /// Whom to ask.
    pub webhook: Option<Webhook>,
}

/// A conversion webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Webhook {
    /// Where it is.
    pub client_config: ClientConfig,
    /// Which reviews it reads, the best first.
    pub conversion_review_versions: Vec<String>,
}

impl Facts {
    /// Reads them off the JSON of a definition.
    ///
    /// # Errors
    /// What is no definition; the store holds none such, as they are typed.
    pub fn read(json: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(json)
    }

    /// `<plural>.<group>`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// The uid: a definition that is made again is another one.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.metadata.uid
    }

    /// The generation of the spec.
    #[must_use]
    pub fn generation(&self) -> i64 {
        self.metadata.generation
    }

    /// The group.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.spec.group
    }

    /// The names under which it is served.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.status.accepted_names
    }

    /// The resource as it is served.
    #[must_use]
    pub fn resource(&self) -> GroupResource {
        GroupResource::new(&self.spec.group, &self.names().plural)
    }

    /// The kind as it is served.
    #[must_use]
    pub fn kind(&self) -> GroupKind {
        GroupKind { group: self.spec.group.clone(), kind: self.names().kind.clone() }
    }

    /// Whether objects live in namespaces.
    #[must_use]
    pub fn is_namespaced(&self) -> bool {
        self.spec.scope == "Namespaced"
    }

    /// Whether unknown fields are kept everywhere (definitions of old).
    #[must_use]
    pub fn preserves_unknown_fields(&self) -> bool {
        self.spec.preserve_unknown_fields
    }

    /// All versions, in the definition's order.
    #[must_use]
    pub fn versions(&self) -> &[Version] {
        &self.spec.versions
    }

    /// The version that objects are stored in.
    #[must_use]
    pub fn storage(&self) -> Option<&Version> {
        self.versions().iter().find(|version| version.storage)
    }

    /// How objects come from one version into another.
    #[must_use]
    pub fn conversion(&self) -> &Conversion {
        &self.spec.conversion
    }

    /// Whether requests for its objects find it (4.1, step 5).
    #[must_use]
    pub fn is_reachable(&self) -> bool {
        self.status.conditions.names_accepted || self.is_established()
    }

    /// Whether discovery and OpenAPI describe it.
    #[must_use]
    pub fn is_established(&self) -> bool {
        self.status.conditions.established
    }

    /// Whether it is on its way out: nothing new is made of it.
    #[must_use]
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some() || self.status.conditions.terminating
    }

    /// Whether what was compiled of the other serves this one: the same definition, spec and names.
    pub(crate) fn serves_like(&self, other: &Self) -> bool {
        self.metadata.uid == other.metadata.uid
            && self.metadata.generation == other.metadata.generation
            && self.names() == other.names()
    }
}
