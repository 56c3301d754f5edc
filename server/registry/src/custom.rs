//! Custom resources: kinds that CustomResourceDefinitions add at run time.
//!
//! A definition is compiled into the same description that built-in kinds have, so that all verbs and representations also
//! serve custom resources. This module contains the code for custom resources alone: lookup of definitions, conversion
//! between versions, validation by schema, and paths.

mod check;
mod columns;
mod conversion_cache;
mod convert;
mod definition_facts;
mod definition_follower;
mod definitions;
mod field_values;
mod finalizers;
mod kind_defaults;
mod kind_info;
mod review;
mod scale;
mod schemas;
mod served_versions;
mod validate;
mod version_status;
mod webhook;
mod webhook_converter;
mod webhook_health;

pub use check::{CheckReport, Finding, FindingKind, MAX_OBJECTS};
pub(crate) use conversion_cache::ConversionCache;
pub use definition_facts::{
    Conversion, ConversionWebhook, DefinitionFacts, DefinitionNames, DefinitionVersion, PrinterColumn,
    ScalePaths, SelectableField, Subresources,
};
pub(crate) use definitions::{Definition, Definitions};
pub(crate) use field_values::field_values;
pub(crate) use finalizers::warnings;
pub(crate) use kind_defaults::KindDefaults;
pub use review::{
    Failure as ConversionFailure, Fault as ConversionFault, Review as ConversionReview, ReviewVersion,
};
pub(crate) use scale::ScaleValues as CustomScale;
pub(crate) use served_versions::ServedVersions;
pub(crate) use validate::CustomValidation;
pub use validate::validate_embedded_metadata;
pub use version_status::VersionStatus;
pub(crate) use webhook_converter::WebhookConverter;
pub use webhook_health::FailingWebhook;

use std::sync::{Arc, OnceLock};

use portico_kit::lifecycle::Signal;
use portico_schema::Schema;

use crate::webhooks::WebhookEndpoint;
use schemas::Schemas;
use webhook_health::Health;

/// Additional properties of a version of a custom resource.
pub(crate) struct CustomVersion {
    /// Content of the definition, as of its last change that affects serving.
    pub(crate) facts: Arc<DefinitionFacts>,
    /// `apiVersion` of stored objects.
    pub(crate) stored_as: String,
    /// Start of the JSON of objects that are stored in this version and need no conversion.
    json_prefix: Vec<u8>,
    /// Schema of this version.
    schema: Schema,
    /// Schemas of all versions, for objects that were stored in another version or with an older schema.
    schemas: Arc<Schemas>,
    /// Cached endpoint of the conversion webhook, created by the first call.
    endpoint: OnceLock<WebhookEndpoint>,
    /// True if the CA bundle of the conversion webhook can be read, or there is no such webhook.
    pub(crate) has_sound_ca_bundle: bool,
    /// Result of the last conversion by the webhook.
    health: Arc<Health>,
    /// Revision up to which objects may have been validated by an older schema.
    since_revision: i64,
    /// Paths of the fields of `/scale`, if it is served.
    scale: Option<ScalePaths>,
    /// Signaled when a newer state of the definition replaces this version.
    pub(crate) superseded: Signal,
}

impl CustomVersion {
    /// Number of bytes to parse before the schema of this version can be used: the size of the definition, or 0
    /// once it is compiled.
    pub(crate) fn bytes_to_compile(&self, for_write: bool) -> usize {
        let compiled = self.schema.custom().is_none_or(|schema| schema.is_compiled(for_write));
        if compiled { 0 } else { self.schemas.record().value.json().len() }
    }

    /// `apiVersion` of each version, and the path of the desired number of replicas if it has a scale.
    pub(crate) fn scales(&self) -> impl Iterator<Item = (String, Option<&str>)> {
        let version = |version: &definition_facts::DefinitionVersion| {
            format!("{}/{}", self.facts.group(), version.name)
        };
        self.facts.versions().iter().map(move |v| {
            let paths = v.subresources.scale.as_ref();
            (version(v), paths.map(|paths| paths.spec_replicas_path.as_str()))
        })
    }
}
