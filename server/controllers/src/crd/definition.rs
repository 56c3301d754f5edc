//! What the controllers need to know of a CustomResourceDefinition, read off it once per change. Schemas are not kept.

use portico_registry::condition::Condition;
use portico_registry::definition::{self, Structure};
use portico_registry::{Conversion, Names, Stored};
use serde::Deserialize;

use portico_registry::definition::{ESTABLISHED, FINALIZER, NAMES_ACCEPTED};

use super::condition_types::{APPROVED, NON_STRUCTURAL};

/// A version, as far as it is of interest here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Version {
    /// Its name.
    pub name: String,
    /// Whether it is served.
    pub served: bool,
}

/// A definition. Two are equal when no controller could distinguish them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definition {
    /// `metadata.uid`
    pub uid: String,
    /// `metadata.generation`: of the schemas.
    pub generation: i64,
    /// `spec.group`
    pub group: String,
    /// What it asks for.
    pub names: Names,
    /// What it has.
    pub accepted: Names,
    /// All versions, in their order.
    pub versions: Box<[Version]>,
    /// The conditions that are decided here; the finalizer alone reports Terminating.
    pub conditions: Vec<Condition>,
    /// The approval annotation, for groups that need one.
    pub approval: Option<String>,
    /// Whether what its conversion webhook is to be trusted by can be read.
    pub has_sound_ca_bundle: bool,
    /// Whether its schemas are structural.
    pub structure: Structure,
    /// Whether it is being deleted and waits for its instances to go.
    pub is_finalizing: bool,
}

impl Definition {
    /// Reads a definition. What was known of the same generation of the same object is not worked out again, nor what
    /// its status reports.
    #[must_use]
    pub fn read(stored: &Stored, known: Option<&Self>) -> Self {
        Self::decided(stored.read().unwrap_or_default(), known, || Structure::of(stored.object()))
    }

    /// The same of an object that nobody has stored.
    #[cfg(test)]
    pub(super) fn of(object: &portico_machinery::Object) -> Self {
        Self::decided(object.decode(&[]).unwrap_or_default(), None, || Structure::of(object))
    }

    /// What cannot be read stands for nothing: what is stored has been decided.
    fn decided(reported: Parsed, known: Option<&Self>, structure: impl FnOnce() -> Structure) -> Self {
        let Parsed { metadata, spec, status } = reported;
        let decided = [NAMES_ACCEPTED, ESTABLISHED, APPROVED, NON_STRUCTURAL];
        let mut conditions = status.conditions.unwrap_or_default();
        conditions.retain(|condition| decided.contains(&&*condition.kind));
        // Kept for as long as the definition is there.
        conditions.shrink_to_fit();
        let same = known.filter(|k| k.uid == metadata.uid && k.generation == metadata.generation);
        let read = Self {
            approval: definition::is_protected(&spec.group)
                .then(|| metadata.annotations.unwrap_or_default().approval),
            uid: metadata.uid,
            generation: metadata.generation,
            group: spec.group,
            names: spec.names.unwrap_or_default(),
            accepted: status.accepted_names.unwrap_or_default(),
            versions: spec.versions.unwrap_or_default(),
            conditions,
            is_finalizing: metadata.deletion_timestamp.is_some()
                && metadata.finalizers.iter().flatten().any(|finalizer| finalizer == FINALIZER),
            ..Self::default()
        };
        let has_sound_ca_bundle =
            same.map_or_else(|| is_sound(&spec.conversion), |known| known.has_sound_ca_bundle);
        let structure = match same {
            Some(known) => known.structure.clone(),
            None if known.is_none() && read.is_reported_sound(spec.preserve_unknown_fields) => {
                Structure::Sound
            }
            None => structure(),
        };
        Self { has_sound_ca_bundle, structure, ..read }
    }

    /// Whether its status reports structural schemas: that was decided before it was established, and no change
    /// makes a structural schema another one. So nobody has to look into the schemas of all definitions at a start.
    fn is_reported_sound(&self, preserves_unknown_fields: bool) -> bool {
        self.is(ESTABLISHED) && self.condition(NON_STRUCTURAL).is_none() && !preserves_unknown_fields
    }

    /// The names of its served versions.
    pub(super) fn served(&self) -> impl Iterator<Item = &str> {
        self.versions.iter().filter(|version| version.served).map(|version| version.name.as_str())
    }

    /// A condition of those that are decided here.
    #[must_use]
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind == kind)
    }

    /// Whether a condition is there and `True`.
    #[must_use]
    pub fn is(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|condition| condition.status == "True")
    }

    /// Whether it has this condition already, whenever it began.
    pub(super) fn has_condition(&self, condition: &Condition) -> bool {
        self.condition(&condition.kind).is_some_and(|current| {
            (&current.status, &current.reason, &current.message)
                == (&condition.status, &condition.reason, &condition.message)
        })
    }
}

/// What of a definition is read; its schemas are passed over.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Parsed {
    metadata: Metadata,
    spec: Spec,
    status: State,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    uid: String,
    generation: i64,
    deletion_timestamp: Option<String>,
    finalizers: Option<Vec<String>>,
    annotations: Option<Annotations>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Annotations {
    /// [`definition::APPROVAL_ANNOTATION`]
    #[serde(rename = "api-approved.kubernetes.io")]
    approval: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    group: String,
    names: Option<Names>,
    versions: Option<Box<[Version]>>,
    preserve_unknown_fields: bool,
    conversion: Conversion,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct State {
    accepted_names: Option<Names>,
    conditions: Option<Vec<Condition>>,
}

/// Whether what its webhook is to be trusted by can be read, if it has one.
fn is_sound(conversion: &Conversion) -> bool {
    let webhook = conversion.webhook.as_ref();
    webhook.is_none_or(|webhook| definition::is_ca_bundle(&webhook.client_config.ca_bundle))
}
