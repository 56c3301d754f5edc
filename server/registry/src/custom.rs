//! Custom resources: kinds that arrive at run time, as CustomResourceDefinitions.
//!
//! A definition becomes the same description that built-in kinds have, so that all verbs and forms are theirs, too. What
//! is theirs alone stands here: finding them, versions that differ from what is stored, validating along a schema, paths.

mod check;
mod columns;
mod conversions;
mod convert;
mod converted;
mod definitions;
mod facts;
mod finalizers;
mod health;
mod keep;
mod kind;
mod review;
mod scale;
mod schemas;
mod select;
mod serving;
mod shapes;
mod validate;
mod version_status;
mod webhook;

pub use check::{Checked, Finding, FindingKind, MAX_OBJECTS};
pub(crate) use conversions::Conversions;
pub(crate) use converted::Converted;
pub(crate) use definitions::{Definition, Definitions};
pub use facts::{
    Conversion, Facts, Names, PrinterColumn, ScalePaths, SelectableField, Subresources, Version, Webhook,
};
pub(crate) use finalizers::warnings;
pub use health::FailingWebhook;
pub use review::{
    Failure as ConversionFailure, Fault as ConversionFault, Review as ConversionReview, ReviewVersion,
};
pub(crate) use scale::Shown as Scaled;
pub(crate) use select::field_values;
pub(crate) use serving::Serving;
pub(crate) use shapes::Shapes;
pub(crate) use validate::Validation;
pub use validate::embedded_metadata;
pub use version_status::VersionStatus;

use std::sync::{Arc, OnceLock};

use portico_kit::lifecycle::Signal;
use portico_schema::Schema;

use crate::webhooks::WebhookEndpoint;
use health::Health;
use schemas::Schemas;

/// What a version of a custom resource is besides a kind.
pub(crate) struct Custom {
    /// What is known of its definition, as of its last change that concerns serving.
    pub(crate) facts: Arc<Facts>,
    /// `apiVersion` of what is stored.
    pub(crate) stored_as: String,
    /// How the JSON of a stored object begins that this version shows as it is.
    head: Vec<u8>,
    /// The schema of this version.
    own: Schema,
    /// The schemas of all versions: what was stored under an older one is brought up to its own.
    schemas: Arc<Schemas>,
    /// Cached endpoint of the conversion webhook, from the first call on.
    endpoint: OnceLock<WebhookEndpoint>,
    /// True if the CA bundle of the conversion webhook can be read, or there is no such webhook.
    pub(crate) has_sound_ca_bundle: bool,
    /// How the last conversion by its webhook went.
    health: Arc<Health>,
    /// Objects written up to this revision may have been validated by an older schema.
    since: i64,
    /// Where the parts of `/scale` stand, if it is served.
    scale: Option<ScalePaths>,
    /// Given when something else is served in its place.
    pub(crate) over: Signal,
}

impl Custom {
    /// How many bytes have to be read before this version's schema can be used: those of the definition, none once it is
    /// compiled.
    pub(crate) fn bytes_to_compile(&self, for_write: bool) -> usize {
        let compiled = self.own.custom().is_none_or(|schema| schema.is_compiled(for_write));
        if compiled { 0 } else { self.schemas.record().value.json().len() }
    }

    /// Each version as `apiVersion`, and where it says how many there should be, if it has a scale.
    pub(crate) fn scales(&self) -> impl Iterator<Item = (String, Option<&str>)> {
        let version = |version: &facts::Version| format!("{}/{}", self.facts.group(), version.name);
        self.facts.versions().iter().map(move |v| {
            let paths = v.subresources.scale.as_ref();
            (version(v), paths.map(|paths| paths.spec_replicas_path.as_str()))
        })
    }
}
