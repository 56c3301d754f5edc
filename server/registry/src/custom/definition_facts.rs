//! Content of a definition that serving needs, deserialized without parsing the schemas.

use portico_machinery::{GroupKind, GroupResource};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::definition::{ESTABLISHED, NAMES_ACCEPTED, TERMINATING};
use crate::webhooks::ClientConfig;

/// CustomResourceDefinition without its schemas.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DefinitionFacts {
    metadata: Metadata,
    spec: Spec,
    status: DefinitionStatus,
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
    versions: Box<[DefinitionVersion]>,
    conversion: Conversion,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DefinitionStatus {
    accepted_names: DefinitionNames,
    conditions: Conditions,
}

/// Conditions that affect serving; true if the status is `True`.
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
    /// Reads the conditions; null before the first condition is set.
    fn from(reported: Option<Vec<Condition>>) -> Self {
        let reported = reported.unwrap_or_default();
        let is_true = |kind: &str| reported.iter().any(|c| c.kind == kind && c.status == "True");
        Self {
            names_accepted: is_true(NAMES_ACCEPTED),
            established: is_true(ESTABLISHED),
            terminating: is_true(TERMINATING),
        }
    }
}

/// Names of a custom resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DefinitionNames {
    /// Plural name, used as resource in paths.
    pub plural: String,
    /// Singular name.
    pub singular: String,
    /// Kind of the objects.
    pub kind: String,
    /// Kind of lists.
    pub list_kind: String,
    /// Short names.
    pub short_names: Vec<String>,
    /// Categories, such as `all`.
    pub categories: Vec<String>,
}

/// Version of a definition.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DefinitionVersion {
    /// Name of the version.
    pub name: String,
    /// True if requests may use the version.
    pub served: bool,
    /// True for the version in which objects are stored.
    pub storage: bool,
    /// True if requests receive a deprecation warning.
    pub deprecated: bool,
    /// Text of the warning, if it differs from upstream's default.
    pub deprecation_warning: Option<String>,
    /// Subresources of the version.
    pub subresources: Subresources,
    /// Table columns after the name.
    pub additional_printer_columns: Box<[PrinterColumn]>,
    /// Fields that field selectors may use.
    pub selectable_fields: Box<[SelectableField]>,
}

/// Subresources of a version.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Subresources {
    /// Present if `/status` is served.
    pub status: Option<IgnoredAny>,
    /// Paths of the fields of `/scale`, if it is served.
    pub scale: Option<ScalePaths>,
}

/// Dotted paths of the fields of a scale.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ScalePaths {
    /// Path of the desired number of replicas, below `.spec.`.
    pub spec_replicas_path: String,
    /// Path of the current number of replicas, below `.status.`.
    pub status_replicas_path: String,
    /// Path of the label selector, below `.spec.` or `.status.`, if any.
    pub label_selector_path: Option<String>,
}

/// Table column of a version.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PrinterColumn {
    /// Title of the column.
    pub name: String,
    /// Type: `integer`, `number`, `string`, `boolean` or `date`.
    #[serde(rename = "type")]
    pub kind: String,
    /// OpenAPI format.
    pub format: String,
    /// Human-readable description.
    pub description: String,
    /// Priority; columns above 0 are shown only in wide output.
    pub priority: i32,
    /// Path of the cells, in kubectl's JSONPath dialect without braces.
    pub json_path: String,
}

/// Field that field selectors may use.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SelectableField {
    /// Simple path with a leading dot.
    pub json_path: String,
}

/// Conversion of objects between versions.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Conversion {
    /// `None` or `Webhook`.
    pub strategy: String,
    /// Webhook of the strategy `Webhook`.
    pub webhook: Option<ConversionWebhook>,
}

/// Conversion webhook of a definition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ConversionWebhook {
    /// Address of the webhook.
    pub client_config: ClientConfig,
    /// Accepted versions of reviews, best first.
    pub conversion_review_versions: Vec<String>,
}

impl DefinitionFacts {
    /// Deserializes the content from the JSON of a definition.
    ///
    /// # Errors
    /// JSON that is not a definition, which the store never contains.
    pub fn read(json: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(json)
    }

    /// Name of the definition, `<plural>.<group>`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// UID, which distinguishes a definition from a later one with the same name.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.metadata.uid
    }

    /// Generation of the spec.
    #[must_use]
    pub fn generation(&self) -> i64 {
        self.metadata.generation
    }

    #[must_use]
    pub fn group(&self) -> &str {
        &self.spec.group
    }

    /// Accepted names.
    #[must_use]
    pub fn names(&self) -> &DefinitionNames {
        &self.status.accepted_names
    }

    /// Resource with its accepted name.
    #[must_use]
    pub fn resource(&self) -> GroupResource {
        GroupResource::new(&self.spec.group, &self.names().plural)
    }

    /// Kind with its accepted name.
    #[must_use]
    pub fn kind(&self) -> GroupKind {
        GroupKind { group: self.spec.group.clone(), kind: self.names().kind.clone() }
    }

    /// True if objects have namespaces.
    #[must_use]
    pub fn is_namespaced(&self) -> bool {
        self.spec.scope == "Namespaced"
    }

    /// True if unknown fields are preserved in all objects (definitions from `v1beta1`).
    #[must_use]
    pub fn preserves_unknown_fields(&self) -> bool {
        self.spec.preserve_unknown_fields
    }

    /// All versions, in the definition's order.
    #[must_use]
    pub fn versions(&self) -> &[DefinitionVersion] {
        &self.spec.versions
    }

    /// Storage version.
    #[must_use]
    pub fn storage(&self) -> Option<&DefinitionVersion> {
        self.versions().iter().find(|version| version.storage)
    }

    /// Conversion of objects between versions.
    #[must_use]
    pub fn conversion(&self) -> &Conversion {
        &self.spec.conversion
    }

    /// True if requests for the custom resources are served.
    #[must_use]
    pub fn is_reachable(&self) -> bool {
        self.status.conditions.names_accepted || self.is_established()
    }

    /// True if discovery and OpenAPI contain the custom resources.
    #[must_use]
    pub fn is_established(&self) -> bool {
        self.status.conditions.established
    }

    /// True if the definition is being deleted, so that no objects can be created.
    #[must_use]
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some() || self.status.conditions.terminating
    }

    /// True if the compiled versions of the other definition can be reused: same UID, spec and names.
    pub(crate) fn serves_same_versions(&self, other: &Self) -> bool {
        self.metadata.uid == other.metadata.uid
            && self.metadata.generation == other.metadata.generation
            && self.names() == other.names()
    }
}
